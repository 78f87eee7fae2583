"""Readings of one source do not disturb each other."""

from __future__ import annotations

import io
import os
from pathlib import Path

import pytest

from driftquilt.data.source import ByteSource, find_files, natural_key, open_file, spool
from driftquilt.errors import InputError


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


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("day1.csv", "day10.csv", "day2.csv", "notes.txt", ".hidden.csv"):
        (tmp_path / name).touch()
    (tmp_path / "day3.csv").mkdir()
    (tmp_path / "deep" / "er").mkdir(parents=True)
    (tmp_path / "deep" / "er" / "a.csv").touch()
    (tmp_path / "odd[1].csv").touch()
    return tmp_path


def names(*patterns: str) -> list[str]:
    return [path.name for path in find_files(patterns)]


@pytest.mark.usefixtures("folder")
def test_a_glob_gives_files_in_natural_order() -> None:
    assert names("day*.csv") == ["day1.csv", "day2.csv", "day10.csv"]
    assert names("**/*.csv")[:1] == ["day1.csv"]
    assert "a.csv" in names("**/*.csv")


def test_a_glob_may_be_absolute_and_start_at_home(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert names(f"{folder}/day?.csv") == ["day1.csv", "day2.csv"]
    monkeypatch.setenv("HOME", str(folder))
    assert names("~/day?.csv") == ["day1.csv", "day2.csv"]


@pytest.mark.usefixtures("folder")
def test_what_a_shell_made_of_a_glob_is_in_natural_order_too() -> None:
    assert names("day1.csv", "day10.csv", "day2.csv") == ["day1.csv", "day2.csv", "day10.csv"]


@pytest.mark.usefixtures("folder")
def test_an_order_of_the_users_own_is_kept() -> None:
    assert names("day2.csv", "day1.csv", "day10.csv") == ["day2.csv", "day1.csv", "day10.csv"]


@pytest.mark.usefixtures("folder")
def test_a_file_named_twice_is_read_once_and_at_its_first_place() -> None:
    assert names("day2.csv", "day*.csv", "./day1.csv") == ["day2.csv", "day1.csv", "day10.csv"]


@pytest.mark.usefixtures("folder")
def test_a_name_with_brackets_is_a_name_before_it_is_a_glob() -> None:
    assert names("odd[1].csv") == ["odd[1].csv"]


@pytest.mark.usefixtures("folder")
def test_a_file_that_is_not_there_is_refused_with_the_closest_name() -> None:
    with pytest.raises(InputError, match=r"no file dya2.csv; in .: did you mean 'day2.csv'\?"):
        find_files(["dya2.csv"])
    with pytest.raises(InputError, match="no folder nowhere either"):
        find_files(["nowhere/x.csv"])
    with pytest.raises(InputError, match="deep contains no file"):
        find_files(["deep/x.csv"])


@pytest.mark.usefixtures("folder")
def test_a_glob_without_a_match_is_refused() -> None:
    with pytest.raises(InputError, match=r"no file matches 'day\*.parquet'; in .: "):
        find_files(["day*.parquet"])
    with pytest.raises(InputError, match="check the folders"):
        find_files(["d*p/er/*.pq"])


def test_a_folder_is_refused_with_what_is_in_it(folder: Path) -> None:
    with pytest.raises(InputError, match=r"is a folder; .*\*.csv' \(it contains 'day1.csv', 'day2"):
        find_files([folder])
    with pytest.raises(InputError, match="is a folder without files"):
        find_files([folder / "deep"])


def test_a_folder_is_told_by_its_data_files(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").touch()
    with pytest.raises(InputError, match=r"without data files .*'model.safetensors'"):
        find_files([tmp_path])
    (tmp_path / "rows.parquet").touch()
    with pytest.raises(InputError, match=r"such as '.*\*.parquet'"):
        find_files([tmp_path])


def test_no_path_at_all_is_refused() -> None:
    with pytest.raises(InputError, match="no data file is named"):
        find_files([])


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_folder_that_may_not_be_read_is_refused(folder: Path) -> None:
    (folder / "deep").chmod(0)
    with pytest.raises(InputError, match="cannot be read"):
        find_files([folder / "deep"])
    (folder / "deep").chmod(0o700)


def test_numbers_in_names_sort_by_value() -> None:
    names = ["file10", "file2", "file1b", "file1", "2024-12", "2024-2", "a"]
    assert sorted(names, key=natural_key) == [
        "2024-2", "2024-12", "a", "file1", "file1b", "file2", "file10",
    ]  # fmt: skip
