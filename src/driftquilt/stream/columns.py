"""The columns and labels of a stream: what they have been so far, and how they go into a store.

A column is numbers or text for as long as the stream lives; it may be missing in any row, come
late or vanish. So are labels: all whole numbers, all booleans or all text. In the store a row
has its columns under their own names and its label under `LABEL`. A row has a column if it has a
value there: the store does not keep what is missing.

A row without any column that rows so far have had (a file with other names, another feed) would be
learned as one large gap, and nobody would notice. It is refused, with some names of both and the
closest of them. Before the first column is known anything goes.

>>> columns, rows, labels = Columns(), [{"age": 31.0, "city": "Rome"}, {"age": None}], ["yes", "no"]
>>> columns.expect(rows, labels)
>>> columns.remember(rows[0], labels[0])
['age', 'city']
>>> columns.to_batch(rows, labels).to_pydict()
{'age': [31.0, None], 'city': ['Rome', None], 'label': ['yes', 'no']}
>>> columns.expect([{"age": "old"}], ["no"])
Traceback (most recent call last):
driftquilt.errors.InputError: column 'age' holds the text 'old', but it has held numbers so far; \
make all of it numbers or all of it text
>>> columns.expect_related([{"Age": 7.0}])
Traceback (most recent call last):
driftquilt.errors.InputError: the row has the columns 'Age', but the rows so far had none of them, \
they had 'age', 'city' (close: 'Age' and 'age'); rename its columns, or give another feed a stream \
of its own
"""

from __future__ import annotations

import math
import struct
from collections.abc import Collection, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from itertools import islice
from typing import Any

import pyarrow as pa

from driftquilt.data.calendar import CLOCK_PARTS, PARTS, group, source
from driftquilt.data.frame import Label, Row
from driftquilt.errors import InputError
from driftquilt.text import closest, listing

__all__ = ["LABEL", "LABEL_WORDS", "Columns", "expect_no_date_among", "refuse_stranger"]

LABEL = "label"

_KINDS = {bool: pa.bool_(), int: pa.int64(), str: pa.string(), float: pa.float64()}
_ARROW = {True: pa.string(), False: pa.float64()}
_CODES = {pa.float64(): "d", pa.int64(): "q"}  # of numbers as `struct` writes them
#: What labels are called by their type.
LABEL_WORDS = {bool: "booleans", int: "whole numbers", str: "text", float: "numbers"}

_LISTED = 4  # names in a message
_KIND_OF_PARTS = {len(PARTS): "date", len(CLOCK_PARTS): "time"}


class Columns:
    """What each column and the labels have been so far, and which columns came of late."""

    def __init__(self) -> None:
        self._is_text: dict[str, bool] = {}
        self._label_type: type | None = None
        self._current: set[str] = set()  # columns that rows of the open segment have had
        self._before: set[str] = set()  # and of the segment before it
        self._sources: dict[str, str] = {}  # made when it is asked for

    @property
    def kinds(self) -> dict[str, str]:
        """Whether each column has held numbers or text."""
        return {name: "text" if text else "number" for name, text in self._is_text.items()}

    @property
    def sources(self) -> dict[str, str]:
        """The kinds of the columns as the caller knows them: the parts of a date are one column.

        >>> columns = Columns()
        >>> parts = [f"at ({part})" for part in PARTS]
        >>> _ = columns.remember({"age": 31.0, **dict.fromkeys(parts, 0.5)}, "yes")
        >>> columns.sources
        {'age': 'number', 'at': 'date'}
        """
        if not self._sources:
            kinds = self.kinds
            self._sources = {
                name: _KIND_OF_PARTS.get(len(places), "number") if len(places) > 1 else kinds[name]
                for name, places in group(list(kinds)).items()
            }
        return self._sources

    def expect(
        self, rows: Sequence[Row], labels: Sequence[Label] = (), max_columns: float = math.inf
    ) -> None:
        """Refuse rows that do not go with those before, or with each other, or are too wide."""
        new: dict[str, bool] = {}
        for row in rows:
            for name, value in row.items():
                if value is not None:
                    _expect_kind(self._is_text, new, name, value)
        if new:
            expect_no_date_among(self._is_text.keys(), new)
            if len(self._is_text) + len(new) > max_columns:
                raise InputError(
                    f"the stream would have more than {max_columns} columns, such as "
                    f"{next(iter(new))!r}; give fewer, or raise max_columns"
                )
        label_type = self._label_type
        for label in labels:
            label_type = label_type or type(label)
            if type(label) is not label_type:
                raise InputError(
                    f"the label {label!r} is a {type(label).__name__}, but labels have been "
                    f"{LABEL_WORDS[label_type]} so far; make all of them the same kind"
                )
            if isinstance(label, str):
                _expect_unicode("the label", label)

    def expect_related(self, rows: Sequence[Row]) -> None:
        """Refuse rows that share no column with any before, known or among these."""
        known = self._is_text.keys()
        just_now: set[str] = set()
        for number, row in enumerate(rows):
            try:
                refuse_stranger(row, known, just_now)
            except InputError as error:
                if len(rows) == 1:
                    raise
                raise InputError(f"row {number}: {error}") from error
            if number < len(rows) - 1:
                just_now.update(name for name, value in row.items() if value is not None)

    def unfit(
        self, rows: Sequence[Row], labels: Sequence[Label], *, strangers: bool
    ) -> dict[int, str]:
        """Rows that could not follow the fitting ones before them, by number, and why."""
        so_far, reasons = Columns.from_json(self.to_json()), dict[int, str]()
        for number, (row, label) in enumerate(zip(rows, labels, strict=True)):
            try:
                so_far.expect([row], [label])
                if not strangers:
                    so_far.expect_related([row])
            except InputError as error:
                reasons[number] = str(error)
            else:
                so_far.remember(row, label)
        return reasons

    def remember(self, row: Row, label: Label) -> list[str]:
        """Take in what a row holds, which has been expected; the columns that are new with it."""
        new = []
        for name, value in row.items():
            if value is not None:
                self._current.add(name)
                if name not in self._is_text:
                    self._is_text[name] = isinstance(value, str)
                    self._sources = {}
                    new.append(name)
        self._label_type = self._label_type or type(label)
        return sorted(new)

    def end_segment(self) -> list[str]:
        """Columns that the segment before had, and no row of the one that ends here."""
        vanished = sorted(self._before - self._current)
        self._before, self._current = self._current, set()
        return vanished

    def to_batch(self, rows: Sequence[Row], labels: Sequence[Label]) -> pa.RecordBatch:
        """Rows that have been remembered, as the store takes them."""
        names = sorted({name for row in rows for name in row if name in self._is_text})
        arrays = [
            _to_arrow([row.get(name) for row in rows], _ARROW[self._is_text[name]])
            for name in names
        ]
        arrays.append(_to_arrow(labels, _KINDS[self._label_type or int]))
        return pa.RecordBatch.from_arrays(arrays, names=[*names, LABEL])

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "is_text": dict(sorted(self._is_text.items())),
            "label": None if self._label_type is None else self._label_type.__name__,
            "current": sorted(self._current),
            "before": sorted(self._before),
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Columns:
        columns = cls()
        columns._is_text = dict(data["is_text"])
        by_name = {kind.__name__: kind for kind in _KINDS}
        columns._label_type = None if data["label"] is None else by_name[data["label"]]
        # Absent in early stores: then no column vanishes until it is known what there was.
        columns._current = set(data.get("current", ()))
        columns._before = set(data.get("before", ()))
        return columns


def _to_arrow(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    code = _CODES.get(kind)
    if code is None or None in values:
        return pa.array(values, kind)
    numbers = struct.pack(f"{len(values)}{code}", *values)  # for one row faster than pa.array
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(numbers)])


def _expect_kind(
    known: dict[str, bool], new: dict[str, bool], name: str, value: float | str
) -> None:
    text = isinstance(value, str)
    if text:
        _expect_unicode(f"the value of column {name!r}", str(value))
    before = known.get(name)
    if before is None:
        _expect_name(name)
        before = new.setdefault(name, text)
    if before != text:
        now, held = ("the text", "numbers") if text else ("the number", "text")
        raise InputError(
            f"column {name!r} holds {now} {value!r}, but it has held {held} so far; make all of "
            "it numbers or all of it text"
        )


def expect_no_date_among(known: Collection[str], new: Iterable[str]) -> None:
    """Refuse new columns if they make a date of one that was none, or the other way round.

    A date comes as columns of its parts, such as `day (day of week, sin)`, beside which there is
    none that is called `day`.
    """
    plain, dated = set(known), {source(name) for name in known if source(name) != name}
    for name in new:
        whole = source(name)
        if whole != name and whole in plain:
            raise InputError(
                f"column {whole!r} holds a date or a time, but it has held none so far; make all "
                "of it the same"
            )
        if name in dated:
            raise InputError(
                f"column {name!r} has held dates or times so far, and now it holds none; make all "
                "of it the same"
            )
        plain.add(name)
        if whole != name:
            dated.add(whole)


def _expect_name(name: str) -> None:
    if name == LABEL:
        raise InputError(
            f"a column is called {LABEL!r}, which is the name that labels are stored under; "
            "rename it"
        )
    _expect_unicode("the name of a column", name)


def _expect_unicode(what: str, text: str) -> None:
    """Refuse halves of surrogate pairs, which Python's strings may hold and files may not."""
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise InputError(
                f"{what}, {text!r}, is not valid Unicode: {error}; decode it with errors='replace'"
            ) from error


def refuse_stranger(
    row: Row, known: AbstractSet[str], just_now: AbstractSet[str] = frozenset()
) -> None:
    """`InputError` for a row with no column that is known, or came just now in the same batch."""
    if not (known.isdisjoint(row) and just_now.isdisjoint(row)):
        return
    there = sorted(known | just_now)
    if not there:
        return
    names, columns = listing(there, _LISTED), sorted(row)
    if not row:
        raise InputError(
            f"the row is empty, but the rows so far had the columns {names}; leave it out, or give "
            "what is known of it"
        )
    near = ", ".join(_closest(columns, there))
    raise InputError(
        f"the row has the columns {listing(columns, _LISTED)}, but the rows so far had none of "
        f"them, they had {names}{f' (close: {near})' if near else ''}; rename its columns, or give "
        "another feed a stream of its own"
    )


def _closest(names: Collection[str], known: Sequence[str]) -> Iterator[str]:
    """Pairs of a name and the one that it may stand for; case plays no part."""
    pairs = ((name, near) for name in names for near in closest(name, known))
    for name, near in islice(pairs, _LISTED):
        yield f"{listing([name])} and {listing([near])}"
