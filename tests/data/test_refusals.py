"""An input that cannot be read is refused in a line that says what to do."""

from __future__ import annotations

import gzip
import io
import os
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pytest
from pyarrow import parquet as pq

from driftquilt.data.files import open_data
from driftquilt.data.source import check_room
from driftquilt.errors import InputError
from tests.data.test_files import save

TABLE = pa.table({"x": range(1000), "y": [f"w{n}" for n in range(1000)]})


def refusal(*paths: Path | str) -> str:
    with pytest.raises(InputError) as caught, open_data(paths):
        pass
    message = str(caught.value)
    assert message.count("\n") <= 1
    return message


@pytest.mark.parametrize("name", ["a.csv", "a.parquet", "a.arrow", "a.jsonl", "a.csv.gz"])
def test_an_empty_file_is_refused(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(gzip.compress(b"") if name.endswith("gz") else b"")
    assert f"{name} is empty; give a file with rows" in refusal(tmp_path / name)


@pytest.mark.parametrize("suffix", ["csv", "parquet", "arrow", "arrows", "feather"])
def test_columns_without_rows_are_refused(suffix: str, tmp_path: Path) -> None:
    path = save(TABLE.slice(0, 0), tmp_path / f"a.{suffix}")
    assert "columns but no rows" in refusal(path)


def test_an_unknown_suffix_is_refused_with_those_that_are_known(tmp_path: Path) -> None:
    for name in ("a.xlsx", "a", "a.gz"):
        (tmp_path / name).write_text("x,y\n1,2\n")
        assert "unknown format; known are .csv, .tsv, .parquet" in refusal(tmp_path / name)


def test_the_first_bytes_count_more_than_the_suffix(tmp_path: Path) -> None:
    save(TABLE, tmp_path / "a.parquet").rename(tmp_path / "a.csv")
    with open_data([tmp_path / "a.csv"]) as data:
        assert data.table == TABLE


@pytest.mark.parametrize("suffix", ["parquet", "arrow", "arrows", "feather", "csv.gz"])
@pytest.mark.parametrize("share", [0.02, 0.5, 0.9])
def test_a_file_that_was_cut_short_is_refused(suffix: str, share: float, tmp_path: Path) -> None:
    path = save(TABLE, tmp_path / f"a.{suffix}")
    data = path.read_bytes()
    path.write_bytes(data[: int(share * len(data))])
    found = refusal(path)
    assert f"a.{suffix}" in found
    assert "fetch it again" in found


@pytest.mark.parametrize("suffix", ["parquet", "arrow", "feather"])
def test_a_file_that_is_something_else_is_refused(suffix: str, tmp_path: Path) -> None:
    (tmp_path / f"a.{suffix}").write_bytes(b"<html>not found</html>" * 50)
    assert f"a.{suffix} cannot be read: " in refusal(tmp_path / f"a.{suffix}")


def test_a_damaged_column_of_parquet_is_refused(tmp_path: Path) -> None:
    pq.write_table(TABLE, path := tmp_path / "a.parquet", compression="zstd")
    data = bytearray(path.read_bytes())
    data[4:100] = bytes(96)
    path.write_bytes(data)
    assert "a.parquet cannot be read: " in refusal(path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.csv").touch(mode=0)
    assert "cannot be read: permission denied" in refusal(tmp_path / "a.csv")


def test_standard_input_stands_alone_and_is_not_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "- is standard input" in refusal("-", "a.csv")
    for data, said in ((b"", "is empty"), (b"PK\3\4\0\0", "has an unknown format")):
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(data)))
        assert f"standard input {said}" in refusal("-")


def test_a_lack_of_room_is_seen_from_the_first_rows_on() -> None:
    check_room(written=10**9, share=0.5, free=10**9)
    with pytest.raises(InputError, match=r"4.0 GB are needed .* has only 1.9 GB; set TMPDIR"):
        check_room(written=10**9, share=0.25, free=9 * 10**8)


def test_a_temporary_folder_that_cannot_be_used_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = save(TABLE, tmp_path / "a.csv")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
    assert "the folder for temporary files cannot be used" in refusal(path)
