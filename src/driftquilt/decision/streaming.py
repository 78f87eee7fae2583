"""A table as a stream: its labelled rows one by one, and where a detector finds drifts.

A row is a dictionary of its usable columns. Rows without a label are skipped; the number that
comes with each row counts them too.

>>> table = pa.table({"x": [1.5, 2.5, None], "y": ["a", None, "b"]})
>>> list(labelled_rows(table, "y"))
[(0, {'x': 1.5}, 'a'), (2, {'x': None}, 'b')]
>>> LabelledPositions(table, "y").skipped(2)
1
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from driftquilt.data.arrow import note_read
from driftquilt.data.column_types import check_table, describe, features, present
from driftquilt.data.frame import Label, Row, read_at, read_label, read_row
from driftquilt.decision.cutting import Segments, coded, refuse_one
from driftquilt.decision.labels import clean_labels
from driftquilt.detectors.named import make_detector
from driftquilt.errors import InputError
from driftquilt.stream.learning import Learning
from driftquilt.stream.settings import Guard
from driftquilt.text import plural

_BLOCK = 4_096  # rows that are Python objects at a time
_WATCH_EVERY = 1_000  # rows


def by_detector(
    table: pa.Table,
    label: str,
    detector: Any = "adwin",
    *,
    drop: Iterable[str] = (),
    seed: int = 0,
    watch: Callable[[int, int], None] | None = None,
) -> Segments:
    """Cut the rows where a detector finds drifts of an online net that predicts, then learns them.

    Rows without a label are not learned; they belong to the segment that they lie in. `watch`
    gets the number of rows done and of all rows, now and then.
    """
    check_table(table)
    learning = Learning(make_detector(detector, seed), seed, n_recent=1, panel="rows")
    guard, begins, last_drift = Guard(), [0], 0
    for row, x, y in labelled_rows(table, label, drop):
        fired = learning.learn(x, y)
        n_current = row + 1 - begins[-1]
        if fired and guard.accepts_drift(n_current, row + 1 - last_drift):
            learning.begin_segment(drift=True)
            begins.append(row + 1)
            last_drift = row + 1
        elif fired:
            learning.restart_detector()
        if watch is not None and row % _WATCH_EVERY == 0:
            watch(row, table.num_rows)
    begins = [begin for begin in begins if begin < table.num_rows]
    refuse_one(len(begins), f"no drift was found in {table.num_rows} rows")
    sizes = np.diff([*begins, table.num_rows])
    ends = begins + sizes - 1
    names = [f"rows {a}-{b}" for a, b in zip(begins, ends.tolist(), strict=True)]
    return coded(np.repeat(np.arange(len(names), dtype=np.int32), sizes), names)


def labelled_rows(
    table: pa.Table, label: str, drop: Iterable[str] = (), *, first: int = 0
) -> Iterator[tuple[int, Row, Label]]:
    """Yield number in the table, row and label, from row `first` on."""
    labels = clean_labels(table, label)
    known = features(table, label, drop, facts=describe(table))
    for start in range(first, table.num_rows, _BLOCK):
        rows = known.slice(start, _BLOCK).to_pylist()
        answers = labels.slice(start, _BLOCK).to_pylist()
        for number, (x, y) in enumerate(zip(rows, answers, strict=True), start=start):
            if y is not None:
                yield number, read_at(number, read_row, x), read_label(y)
        note_read(table.slice(start, _BLOCK).nbytes)


class LabelledPositions:
    """The positions of the labelled rows in a table."""

    def __init__(self, table: pa.Table, label: str) -> None:
        valid = present(clean_labels(table, label))
        self._table, self.n_rows = table, table.num_rows
        # Usually all rows are labelled, which needs no list.
        self._positions = range(len(valid)) if valid.all() else np.flatnonzero(valid)

    def after(self, n_labelled: int) -> int:
        """Return the first row of the table that comes after so many labelled ones."""
        if n_labelled > len(self._positions):
            raise InputError(
                f"the stream has learned {plural(n_labelled, 'row')}, but the table has only "
                f"{len(self._positions):,} with a label; give the table that it learned"
            )
        return int(self._positions[n_labelled - 1]) + 1 if n_labelled else 0

    def skipped(self, n_labelled: int) -> int:
        """Return how many rows without a label come before so many labelled ones."""
        return self.after(n_labelled) - n_labelled

    def learned(self, n_labelled: int) -> dict[str, Any]:
        """Return what `expect` recognises so many labelled rows by, at least one."""
        last = fingerprint(self._table, self.after(n_labelled) - 1)
        return {"skipped": self.skipped(n_labelled), "last": last}

    def expect(self, learned: Mapping[str, Any]) -> None:
        """Refuse a table whose first `learned["row"]` labelled rows are not those learned."""
        row = learned["row"]
        actual = self.learned(row)
        if actual["skipped"] != learned["skipped"]:
            raise InputError(
                f"before row {row} of the stream the table has "
                f"{plural(actual['skipped'], 'row')} without a label, but {learned['skipped']} "
                "were skipped; give the same table"
            )
        if actual["last"] != learned["last"]:
            raise InputError(
                f"row {row} of the stream differs from the one learned: the table has other rows, "
                "or the same in another order; give the same table, new rows after the old"
            )


def fingerprint(table: pa.Table, row: int) -> str:
    """Return a hash of the values of one row."""
    values = repr(table.slice(row, 1).to_pylist())
    return hashlib.sha256(values.encode()).hexdigest()[:16]
