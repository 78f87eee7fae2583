"""Columns of text that look like dates in a form of their own.

Dates are read if they are written as 2021-05-17. In `17.05.2021` or `05/17/2021` nothing says
which is the month, so that they stay text, silently. `DateWatch` remembers such columns.
"""

from __future__ import annotations

from typing import Any

from driftquilt.data.lookalikes import Lookalikes

__all__ = ["DateWatch"]

_DAY = r"\d{1,2}\.\d{1,2}\.\d{4}|\d{1,2}/\d{1,2}/(\d{4}|\d{2})|\d{1,2}-\d{1,2}-\d{4}"
_YEAR_FIRST = r"\d{4}/\d{1,2}/\d{1,2}|\d{4}\.\d{1,2}\.\d{1,2}"
_TIME = r"[ T]+\d{1,2}:\d{2}(:\d{2}([.,]\d+)?)?( ?[AaPp][Mm])?"


class DateWatch:
    """Watches the batches of one input.

    >>> import pyarrow as pa
    >>> watch = DateWatch()
    >>> watch.look(pa.record_batch({"signup": ["17.05.2021", None], "version": ["1.2.2021", "3"]}))
    >>> watch.notes("a.csv")
    ["a.csv: column 'signup' is read as text, but looks like dates, such as '17.05.2021'; write \
them as 2021-05-17 to have them read as dates"]
    """

    def __init__(self) -> None:
        self._dates = Lookalikes(rf"^\s*({_DAY}|{_YEAR_FIRST})({_TIME})?\s*$")

    def look(self, batch: Any) -> None:
        """Some more rows."""
        self._dates.look(batch)

    def notes(self, where: str) -> list[str]:
        """A note for each column that looks like dates to the last value, with an example."""
        return [
            f"{where}: column {name!r} is read as text, but looks like dates, such as "
            f"{example!r}; write them as 2021-05-17 to have them read as dates"
            for name, example in self._dates.examples.items()
        ]
