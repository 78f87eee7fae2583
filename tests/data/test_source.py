"""Readings of one source do not disturb each other."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from driftquilt.data.source import ByteSource, open_file, spool


def opened(kind: str, folder: Path) -> ByteSource:
    if kind == "pipe":
        return spool("standard input", io.BytesIO(b"0123456789"))
    (folder / "a.txt").write_bytes(b"0123456789")
    return open_file(folder / "a.txt")


each_kind = pytest.mark.parametrize("kind", ["file", "pipe"])


@each_kind
def test_two_readings_go_on_where_each_was(kind: str, tmp_path: Path) -> None:
    source = opened(kind, tmp_path)
    with source.raw() as one, source.raw() as other:
        assert one.read(4) == b"0123"
        assert other.read(6) == b"012345"
        assert one.read() == b"456789"
        assert other.read() == b"6789"


@each_kind
def test_a_reading_that_has_ended_reads_no_more(kind: str, tmp_path: Path) -> None:
    source = opened(kind, tmp_path)
    with source.raw() as ended:
        ended.read(2)
    with source.raw() as file, pytest.raises(ValueError, match="closed"):
        ended.read(2)
    with source.raw() as file:
        assert file.read() == b"0123456789"


@each_kind
def test_seeking_goes_by_start_place_and_end(kind: str, tmp_path: Path) -> None:
    source = opened(kind, tmp_path)
    with source.raw() as file:
        assert (file.seek(3), file.read(1)) == (3, b"3")
        assert (file.seek(2, 1), file.read(1)) == (6, b"6")
        assert (file.seek(-1, 2), file.read(1)) == (9, b"9")
