"""The labelled rows of a table one by one, as a stream takes them, and where they stand.

A row is a dictionary of its usable columns. Rows without a label are skipped; the number that
comes with each row counts them too.

>>> table = pa.table({"x": [1.5, 2.5, None], "y": ["a", None, "b"]})
>>> list(labelled_rows(table, "y"))
[(0, {'x': 1.5}, 'a'), (2, {'x': None}, 'b')]
>>> LabelledPlaces(table, "y").skipped(2)
1
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from driftquilt.data.frame import Row, read_row
from driftquilt.data.labels import Label, read_at, read_label
from driftquilt.data.mapped_memory import note_read
from driftquilt.decision.columns import describe, features, present
from driftquilt.decision.labels import clean_labels
from driftquilt.decision.replay_header import fingerprint
from driftquilt.errors import InputError
from driftquilt.text import plural

__all__ = ["LabelledPlaces", "labelled_rows"]

_BLOCK = 4_096  # rows that are Python objects at a time


def labelled_rows(
    table: pa.Table, label: str, drop: Iterable[str] = (), *, first: int = 0
) -> Iterator[tuple[int, Row, Label]]:
    """Number in the table, row and label, from row `first` on."""
    labels = clean_labels(table, label)
    known = features(table, label, drop, facts=describe(table))
    for start in range(first, table.num_rows, _BLOCK):
        rows = known.slice(start, _BLOCK).to_pylist()
        answers = labels.slice(start, _BLOCK).to_pylist()
        for number, (x, y) in enumerate(zip(rows, answers, strict=True), start=start):
            if y is not None:
                yield number, read_at(number, read_row, x), read_label(y)
        note_read(table.slice(start, _BLOCK).nbytes)


class LabelledPlaces:
    """Where in a table the rows with a label stand."""

    def __init__(self, table: pa.Table, label: str) -> None:
        valid = present(clean_labels(table, label))
        self._table, self.n_rows = table, table.num_rows
        # All labelled is the rule, and needs no list.
        self._places = range(len(valid)) if valid.all() else np.flatnonzero(valid)

    def place(self, number: int) -> int:
        """The first row of the table that comes after so many labelled ones."""
        if number > len(self._places):
            raise InputError(
                f"the stream has learned {plural(number, 'row')}, but the table has "
                f"{len(self._places):,} with a label; give the table that it learned"
            )
        return int(self._places[number - 1]) + 1 if number else 0

    def skipped(self, number: int) -> int:
        """Rows without a label before so many labelled ones."""
        return self.place(number) - number

    def learned(self, number: int) -> dict[str, Any]:
        """What `expect` knows so many labelled rows by, at least one."""
        last = fingerprint(self._table, self.place(number) - 1)
        return {"skipped": self.skipped(number), "last": last}

    def expect(self, learned: Mapping[str, Any]) -> None:
        """Refuse a table whose first rows, `learned["row"]` of them, are not those learned."""
        row = learned["row"]
        found = self.learned(row)
        if found["skipped"] != learned["skipped"]:
            raise InputError(
                f"before row {row} of the stream the table has "
                f"{plural(found['skipped'], 'row')} without a label, but {learned['skipped']} "
                "were skipped; give the same table"
            )
        if found["last"] != learned["last"]:
            raise InputError(
                f"row {row} of the stream is another than the one learned: the table has other "
                "rows, or the same in another order; give the same table, new rows after the old"
            )
