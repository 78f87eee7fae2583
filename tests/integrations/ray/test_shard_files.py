"""Files of segments are read a part at a time, wherever they lie, or refused in a sentence."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from driftquilt.errors import InputError
from driftquilt.integrations.ray.shards import FileSummary, read_rows, scan_file

TABLE = pa.table({"a": range(10), "b": [None, *"bcdefghij"], "y": [0, 1] * 5})


def write_parquet(path: Path, table: pa.Table = TABLE) -> str:
    pq.write_table(table, path, row_group_size=4)
    return str(path)


def write_arrow(path: Path, table: pa.Table = TABLE) -> str:
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=4)
    return str(path)


WRITERS = pytest.mark.parametrize("write", [write_parquet, write_arrow])


@WRITERS
@pytest.mark.parametrize("scheme", ["", "file://"])
def test_a_look_tells_blocks_columns_and_classes(write, scheme: str, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    found = scan_file("y", scheme + write(tmp_path / "rows"))
    assert found == FileSummary((4, 4, 2), ("a", "b", "y"), (0, 1))
    assert found.n_rows == 10


@given(rows=st.sets(st.integers(0, 9), min_size=1))
def test_any_rows_are_read(rows: set[int], tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("rows")
    for path in (write_parquet(folder / "p"), write_arrow(folder / "a")):
        wanted = np.array(sorted(rows))
        assert read_rows(path, (4, 4, 2), wanted).equals(TABLE.take(wanted))


@WRITERS
def test_a_run_of_rows_with_some_columns_and_one_that_is_not_there(write, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    found = read_rows(write(tmp_path / "rows"), (4, 4, 2), slice(3, 9), ["y", "none", "a"])
    assert found.column_names == ["y", "none", "a"]
    assert found["a"].to_pylist() == [3, 4, 5, 6, 7, 8]
    assert found["none"].null_count == 6


def test_what_cannot_be_used_is_told(tmp_path: Path) -> None:
    good = write_parquet(tmp_path / "good")
    with pytest.raises(InputError, match=r"has no column 'z'; it has a, b, y"):
        scan_file("z", good)
    with pytest.raises(InputError, match="row 0 has no label"):
        scan_file("b", good)
    with pytest.raises(InputError, match="cannot be read"):
        scan_file("y", str(tmp_path / "nothing"))
    with pytest.raises(InputError, match="has no rows"):
        scan_file("y", write_parquet(tmp_path / "empty", TABLE.slice(0, 0)))
    (tmp_path / "text").write_text("a,b,y\n1,2,3\n")
    with pytest.raises(InputError, match="neither a Parquet"):
        scan_file("y", str(tmp_path / "text"))
    (tmp_path / "cut").write_bytes(Path(good).read_bytes()[:-20])
    with pytest.raises(InputError, match="cannot be read"):
        scan_file("y", str(tmp_path / "cut"))
    with pytest.raises(InputError, match="cannot be read"):
        scan_file("y", "nowhere://bucket/file")
    with pytest.raises(InputError, match="has other rows than before"):
        read_rows(good, (4, 4, 9), slice(0, 17))
    twice = pa.Table.from_arrays([TABLE["a"], TABLE["a"], TABLE["y"]], names=["a", "a", "y"])
    with pytest.raises(InputError, match="two columns of one name"):
        scan_file("y", write_arrow(tmp_path / "twice", twice))
