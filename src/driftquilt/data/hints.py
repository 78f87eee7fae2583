"""Columns that were read as text, but look like numbers or dates written in another way.

A comma in `3,14` makes text of a number where a point is expected, and in `17.05.2021` or
`05/17/2021` nothing says which is the month. Such columns stay text; a note says how to have them
read. A column is dropped at its first value that does not look like that, so nearly all text is
looked at only once.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["DateHints", "DecimalHints", "Hints"]

_DAY_FIRST = r"\d{1,2}\.\d{1,2}\.\d{4}|\d{1,2}/\d{1,2}/(\d{4}|\d{2})|\d{1,2}-\d{1,2}-\d{4}"
_YEAR_FIRST = r"\d{4}/\d{1,2}/\d{1,2}|\d{4}\.\d{1,2}\.\d{1,2}"
_TIME = r"[ T]+\d{1,2}:\d{2}(:\d{2}([.,]\d+)?)?( ?[AaPp][Mm])?"


class Hints:
    """Text columns whose values all match `pattern`, with an example of each.

    Only a value that contains `required` can be an example.
    """

    def __init__(self, pattern: str, advice: str, required: str = "") -> None:
        self._pattern, self._advice, self._required = pattern, advice, required
        self._examples: dict[str, str] = {}
        self._ruled_out: set[str] = set()

    def add(self, batch: Any) -> None:
        """Look at some more rows."""
        for field in batch.schema:
            if pa.types.is_string(field.type) and field.name not in self._ruled_out:
                self._add(field.name, batch.column(field.name))

    def notes(self, where: str) -> list[str]:
        """Return a note for each column that matches to the last value."""
        return [
            f"{where}: column {name!r} is read as text, but {self._advice.format(repr(example))}"
            for name, example in self._examples.items()
        ]

    def _add(self, name: str, column: Any) -> None:
        if not pc.all(pc.match_substring_regex(column, self._pattern), min_count=0).as_py():
            self._ruled_out.add(name)
            self._examples.pop(name, None)
        elif name not in self._examples:
            examples = column.filter(pc.match_substring(column, self._required))
            if len(examples):
                self._examples[name] = examples[0].as_py()


class DecimalHints(Hints):
    """Columns of numbers with the decimal mark that is not `decimal`.

    >>> hints = DecimalHints(".")
    >>> hints.add(pa.record_batch({"size": ["3,14", None, "7"], "city": ["Oslo", "3,1", "4"]}))
    >>> hints.notes("a.csv")[0].partition("; ")[2]
    'read it as numbers with --decimal ,'
    """

    def __init__(self, decimal: str) -> None:
        mark, word, regex = (",", "comma", ",") if decimal == "." else (".", "point", r"\.")
        super().__init__(
            rf"^\s*[+-]?(\d+({regex}\d*)?|{regex}\d+)([eE][+-]?\d+)?\s*$",
            f"looks like numbers with a decimal {word}, such as {{}}; read it as numbers with "
            f"--decimal {mark}",
            required=mark,
        )


class DateHints(Hints):
    """Columns of dates that are not written as 2021-05-17.

    >>> hints = DateHints()
    >>> hints.add(pa.record_batch({"signup": ["17.05.2021", None], "version": ["1.2.2021", "3"]}))
    >>> hints.notes("a.csv")
    ["a.csv: column 'signup' is read as text, but looks like dates, such as '17.05.2021'; write \
them as 2021-05-17 to have them read as dates"]
    """

    def __init__(self) -> None:
        super().__init__(
            rf"^\s*({_DAY_FIRST}|{_YEAR_FIRST})({_TIME})?\s*$",
            "looks like dates, such as {}; write them as 2021-05-17 to have them read as dates",
        )
