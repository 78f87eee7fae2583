"""Columns of text that look like numbers with the other decimal mark.

A comma in `3,14` makes text of a number where a point is expected, silently. `MarkWatch` looks at
text columns as they go by and remembers those of which every value looks like that.
"""

from __future__ import annotations

from typing import Any

from driftquilt.data.lookalikes import Lookalikes

__all__ = ["MarkWatch"]

_WORDS = {",": "comma", ".": "point"}


class MarkWatch:
    """Watches the batches of one input that is read with the mark `decimal`.

    >>> import pyarrow as pa
    >>> watch = MarkWatch(".")
    >>> watch.look(pa.record_batch({"size": ["3,14", None, "7"], "city": ["Oslo", "3,1", "4"]}))
    >>> watch.notes("a.csv")[0].partition("; ")[2]
    'read it as numbers with --decimal ,'
    """

    def __init__(self, decimal: str) -> None:
        self._other = "," if decimal == "." else "."
        mark = "," if self._other == "," else r"\."
        number = rf"^\s*[+-]?(\d+({mark}\d*)?|{mark}\d+)([eE][+-]?\d+)?\s*$"
        self._numbers = Lookalikes(number, telling=self._other)

    def look(self, batch: Any) -> None:
        """Some more rows."""
        self._numbers.look(batch)

    def notes(self, where: str) -> list[str]:
        """A note for each column that looks like numbers to the last value, with an example."""
        return [
            f"{where}: column {name!r} is read as text, but looks like numbers with a decimal "
            f"{_WORDS[self._other]}, such as {example!r}; read it as numbers with "
            f"--decimal {self._other}"
            for name, example in self._numbers.examples.items()
        ]
