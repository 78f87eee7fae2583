"""A file is written completely or not at all, and errors name the file that was meant."""

from __future__ import annotations

import errno
import os
import signal
import stat
from pathlib import Path
from types import SimpleNamespace
from typing import BinaryIO

import pytest

from driftquilt import files
from driftquilt.errors import StoreError
from driftquilt.files import atomic_write, describe_os_error, lock_file, os_errors_name


def test_a_file_is_replaced_when_the_block_ends_and_not_before(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"old")
    with atomic_write(path) as file:
        file.write(b"new")
        file.flush()
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [path]


def _write_half(file: BinaryIO, kind: type[BaseException]) -> None:
    file.write(b"half")
    raise kind


@pytest.mark.parametrize("kind", [ValueError, KeyboardInterrupt, SystemExit])
def test_whatever_ends_the_block_early_leaves_the_old_file_alone(
    tmp_path: Path, kind: type[BaseException]
) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"old")
    with pytest.raises(kind), atomic_write(path) as file:
        _write_half(file, kind)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_ctrl_c_while_the_file_is_synced_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "sync_file", lambda _: signal.raise_signal(signal.SIGINT))
    with pytest.raises(KeyboardInterrupt), atomic_write(tmp_path / "a.txt") as file:
        file.write(b"all")
    assert not list(tmp_path.iterdir())


def test_two_writers_of_one_file_do_not_meet(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    with atomic_write(path) as first, atomic_write(path) as second:
        first.write(b"first")
        second.write(b"second")
    assert path.read_bytes() == b"first"
    assert list(tmp_path.iterdir()) == [path]


def test_a_new_file_has_the_permissions_of_any_other(tmp_path: Path) -> None:
    (tmp_path / "usual").touch()
    with atomic_write(tmp_path / "ours"):
        pass
    modes = {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    assert len(modes) == 1


def test_a_folder_or_a_missing_one_is_named(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError) as caught, atomic_write(tmp_path):
        pass
    assert caught.value.filename == str(tmp_path)
    with pytest.raises(FileNotFoundError) as missing, atomic_write(tmp_path / "no" / "a.txt"):
        pass
    assert missing.value.filename == str(tmp_path / "no" / "a.txt")


def test_a_locked_file_is_refused_until_it_is_closed(tmp_path: Path) -> None:
    with (tmp_path / "lock").open("w") as first, (tmp_path / "lock").open("w") as second:
        lock_file(first.fileno())
        with pytest.raises(BlockingIOError):
            lock_file(second.fileno())
        first.close()
        lock_file(second.fileno())


def test_windows_locks_a_byte_past_the_contents(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = list[tuple[int, int]]()

    def locking(descriptor: int, _: int, n_bytes: int) -> None:
        calls.append((os.lseek(descriptor, 0, os.SEEK_CUR), n_bytes))
        if len(calls) > 1:
            raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(files, "fcntl", None)
    monkeypatch.setattr(files, "msvcrt", SimpleNamespace(locking=locking, LK_NBLCK=2))
    with (tmp_path / "lock").open("w") as file:
        lock_file(file.fileno())
        with pytest.raises(BlockingIOError):
            lock_file(file.fileno())
    assert calls[0] == (2**30, 1)


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (errno.ENOSPC, "the disk is full"),
        (errno.EDQUOT, "the disk is full"),
        (errno.EACCES, "permission denied"),
        (errno.EPERM, "permission denied"),
        (errno.EROFS, "read-only"),
        (errno.ENOTDIR, "is a file, not a folder"),
        (errno.EISDIR, "it is a folder; name a file"),
        (errno.EIO, os.strerror(errno.EIO)),
    ],
)
def test_the_reason_is_in_words_and_names_no_temporary_file(code: int, reason: str) -> None:
    message = describe_os_error(OSError(code, os.strerror(code), "/data/.out.csv.123.tmp"))
    assert reason in message
    assert "tmp" not in message


def test_an_error_without_a_code_is_described_on_one_line() -> None:
    assert describe_os_error(OSError("two\nlines")) == "two lines"
    assert describe_os_error(OSError()) == "OSError"


def test_errors_inside_name_the_file_that_was_meant(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as caught, os_errors_name(tmp_path / "a.csv"):
        (tmp_path / "nowhere" / ".a.csv.tmp").touch()
    assert caught.value.filename == str(tmp_path / "a.csv")


def test_our_own_errors_pass_unchanged() -> None:
    with pytest.raises(StoreError, match=r"^the store is in use$"), os_errors_name("a.csv"):
        raise StoreError("the store is in use")
