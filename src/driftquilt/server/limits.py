"""How much a request may hold, and how wide a stream may grow.

A small body can stand for much: rows that each have other columns, booleans of one bit, a long
text that many rows point to. So sizes are counted before anything is built.

>>> expect_size(10_001, 3, max_rows=10_000)
Traceback (most recent call last):
driftquilt.server.problems.Problem: there are 10001 rows; send at most 10000 in a request
"""

from __future__ import annotations

from collections.abc import Iterable

from driftquilt.server.problems import Problem

__all__ = [
    "MAX_ID_LETTERS",
    "MAX_LETTERS",
    "STREAM_COLUMNS",
    "expect_answer_size",
    "expect_letters",
    "expect_names",
    "expect_size",
    "expect_stream_size",
]

#: What a stream may come to have in its life: nets grow with both.
STREAM_COLUMNS, _STREAM_CLASSES = 4_000, 1_000
#: Letters of a label or the name of a column, and of an id.
MAX_LETTERS, MAX_ID_LETTERS = 1_000, 32
_COLUMNS = 10_000
_VALUES = 2_000_000
_LETTERS = 1 << 23


def expect_size(n_rows: int, n_columns: int, max_rows: int) -> None:
    """Refuse no rows, and too many rows, columns or values."""
    if not n_rows:
        raise Problem("body-invalid", "there are no rows")
    if n_rows > max_rows:
        raise Problem(
            "too-many-rows", f"there are {n_rows} rows; send at most {max_rows} in a request"
        )
    if n_columns > _COLUMNS:
        raise Problem("body-invalid", f"there are more than {_COLUMNS} columns")
    if n_rows * n_columns > _VALUES:
        raise Problem(
            "too-many-rows",
            f"{n_rows} rows of {n_columns} columns are more than {_VALUES} values; send fewer rows",
        )


def expect_names(names: Iterable[str]) -> None:
    """Refuse columns whose names are too long."""
    if any(len(name) > MAX_LETTERS for name in names):
        raise Problem("body-invalid", f"the name of a column has at most {MAX_LETTERS} letters")


def expect_answer_size(n_rows: int, n_classes: int) -> None:
    """Refuse rows whose answer would have too many probabilities."""
    if n_rows * n_classes > _VALUES:
        raise Problem(
            "too-many-rows",
            f"{n_rows} rows of {n_classes} classes have more than {_VALUES} probabilities; send "
            "fewer rows",
        )


def expect_stream_size(n_columns: int = 0, n_classes: int = 0) -> None:
    """Refuse what would make a stream wider than it may be."""
    if n_columns > STREAM_COLUMNS:
        raise Problem("rows-invalid", f"a stream has at most {STREAM_COLUMNS} columns")
    if n_classes > _STREAM_CLASSES:
        raise Problem("rows-invalid", f"a stream has at most {_STREAM_CLASSES} classes")


def expect_letters(columns: Iterable[list[str | None]]) -> None:
    """Refuse text that is far longer than the body it came in."""
    n_letters = sum(len(text) for column in columns for text in column if text is not None)
    if n_letters > _LETTERS:
        raise Problem("too-many-rows", f"the text of the rows has more than {_LETTERS} letters")
