"""What the system refuses is told in a line that names the file that was meant."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from driftquilt.errors import StoreError
from driftquilt.files import about, why


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (errno.ENOSPC, "the disk is full; free some room"),
        (errno.EDQUOT, "the disk is full; free some room"),
        (errno.EACCES, "no permission; see to its rights"),
        (errno.EPERM, "no permission; see to its rights"),
        (errno.EROFS, "the disk can only be read"),
        (errno.ENOTDIR, "is a file, not a folder"),
        (errno.EISDIR, "it is a folder; name a file"),
        (errno.EIO, os.strerror(errno.EIO)),
    ],
)
def test_the_reason_is_in_words_and_names_no_draft(code: int, said: str) -> None:
    told = why(OSError(code, os.strerror(code), "/data/.out.csv.123.tmp"))
    assert said in told
    assert "tmp" not in told


def test_an_error_without_a_code_is_told_as_it_is_on_one_line() -> None:
    assert why(OSError("two\nlines")) == "two lines"
    assert why(OSError()) == "OSError"


def test_errors_inside_speak_of_the_file_that_was_meant(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as caught, about(tmp_path / "a.csv"):
        (tmp_path / "nowhere" / ".a.csv.tmp").touch()
    assert caught.value.filename == str(tmp_path / "a.csv")


def test_errors_of_our_own_pass_as_they_are() -> None:
    with pytest.raises(StoreError, match=r"^the store is in use$"), about("a.csv"):
        raise StoreError("the store is in use")
