"""The labelled rows of a table one by one, as a stream takes them.

A row is a dictionary of its usable columns. Rows without a label are skipped; the number that
comes with each row counts them too.

>>> table = pa.table({"x": [1.5, 2.5, None], "y": ["a", None, "b"]})
>>> list(labelled_rows(table, "y"))
[(0, {'x': 1.5}, 'a'), (2, {'x': None}, 'b')]
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from driftquilt.decision.columns import describe, features
from driftquilt.decision.labels import clean_labels
from driftquilt.inputs.row import Row, read_row
from driftquilt.stream.rows import Label, read_at, read_label

__all__ = ["labelled_rows"]

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
