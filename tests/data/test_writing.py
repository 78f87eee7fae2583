"""What is written can be read again, and is there whole or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from driftquilt.data.files import open_data, write_table
from driftquilt.errors import InputError

TABLE = pa.table({"x": [1, None, 3], "word": ["a", 'b"\n,', None]})


@pytest.mark.parametrize("name", ["out.csv", "out.parquet", "out.PQ"])
def test_what_is_written_can_be_read_again(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(b"what was there before")
    assert write_table(TABLE.to_batches(max_chunksize=2), path) == 3
    with open_data([path]) as data:
        assert data.table.to_pylist() == TABLE.to_pylist()
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("stop", [KeyboardInterrupt, InputError, OSError])
@pytest.mark.parametrize("name", ["out.csv", "out.parquet"])
def test_nothing_half_written_is_left(name: str, stop: type[BaseException], tmp_path: Path) -> None:
    def batches() -> Iterator[Any]:
        yield from TABLE.to_batches()
        raise stop

    path = tmp_path / name
    path.write_bytes(b"what was there before")
    with pytest.raises(InputError if stop is OSError else stop):
        write_table(batches(), path)
    assert path.read_bytes() == b"what was there before"
    assert list(tmp_path.iterdir()) == [path]


def test_others_may_read_the_file_as_the_user_has_it(tmp_path: Path) -> None:
    (tmp_path / "like.csv").touch()
    write_table(TABLE.to_batches(), tmp_path / "out.csv")
    assert (tmp_path / "out.csv").stat().st_mode == (tmp_path / "like.csv").stat().st_mode


def test_a_refusal_of_the_system_names_the_file_and_no_draft(tmp_path: Path) -> None:
    (tmp_path / "taken").touch()
    for path in (tmp_path / "taken" / "out.csv", tmp_path / "nowhere" / "out.csv"):
        with pytest.raises(InputError) as caught:
            write_table(TABLE.to_batches(), path)
        assert str(caught.value).startswith(f"cannot write {path}: ")
        assert "tmp" not in str(caught.value).removeprefix(f"cannot write {path}")


def test_a_path_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"its suffix must be one of .parquet, .pq, .csv"):
        write_table(TABLE.to_batches(), tmp_path / "out.xlsx")
    with pytest.raises(InputError, match=r"cannot write .*nowhere.*No such file"):
        write_table(TABLE.to_batches(), tmp_path / "nowhere" / "out.csv")
    with pytest.raises(InputError, match="nothing to write"):
        write_table([], tmp_path / "out.csv")
    assert list(tmp_path.iterdir()) == []
