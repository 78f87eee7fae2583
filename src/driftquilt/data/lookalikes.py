"""Columns of text whose every value looks like something else.

A column drops out at its first value that does not, so nearly all text is looked at only once.

>>> digits = Lookalikes("^[0-9]+$")
>>> digits.look(pa.record_batch({"size": ["31", None, "7"], "city": ["4", "Oslo", "3"]}))
>>> digits.examples
{'size': '31'}
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["Lookalikes"]


class Lookalikes:
    """Watches the batches of one input; `examples` has a value of each column in question.

    A value counts as an example only if it has the letters `telling` in it.
    """

    def __init__(self, pattern: str, telling: str = "") -> None:
        self.examples: dict[str, str] = {}
        self._pattern, self._telling = pattern, telling
        self._refuted: set[str] = set()

    def look(self, batch: Any) -> None:
        """Some more rows."""
        for field in batch.schema:
            if pa.types.is_string(field.type) and field.name not in self._refuted:
                self._look_at(field.name, batch.column(field.name))

    def _look_at(self, name: str, column: Any) -> None:
        alike = pc.match_substring_regex(column, self._pattern)
        if not pc.all(alike, min_count=0).as_py():
            self._refuted.add(name)
            self.examples.pop(name, None)
            return
        if name in self.examples:
            return
        told = column.filter(pc.match_substring(column, self._telling))
        if len(told):
            self.examples[name] = told[0].as_py()
