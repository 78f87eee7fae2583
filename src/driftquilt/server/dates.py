"""Dates and times of day over HTTP: numbers that follow the calendar.

Arrow has types for them. JSON has none, so a schema has to declare the column as `date` or `time`;
then its text is read as ISO 8601 has it.

>>> frame = Frame.of_rows([{"age": 31.0, "at": "2024-05-01T12:00:00"}, {"age": 40.0, "at": None}])
>>> read = read_dates(frame, {"columns": {"age": "number", "at": "date"}})
>>> read.names[:2], read.numbers[:, 1].round(3).tolist(), read.texts
(('age', 'at (time of day, sin)'), [0.0, nan], {})
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import types

from driftquilt.data.calendar import from_arrow, from_objects
from driftquilt.data.frame import Frame
from driftquilt.server.problems import Problem

__all__ = ["KINDS", "is_moment", "read_arrow_dates", "read_dates"]

#: What a column can be declared as, and how the text of some of them is read.
KINDS: Mapping[str, Callable[[str], Any] | None] = {
    "number": None,
    "text": None,
    "date": dt.datetime.fromisoformat,
    "time": dt.time.fromisoformat,
}
_ZONE = re.compile(r"[A-Za-z0-9_+:-]{1,40}(/[A-Za-z0-9_+-]{1,40}){0,2}")


def read_dates(frame: Frame, schema: Mapping[str, Any] | None) -> Frame:
    """Return the frame with text columns that the schema declares as dates as numbers."""
    declared = {} if schema is None else schema["columns"]
    texts = {name: KINDS[declared[name]] for name in frame.texts if name in declared}
    readers = {name: reader for name, reader in texts.items() if reader is not None}
    if not readers:
        return frame
    parts: dict[str, Any] = {}
    for name, reader in readers.items():
        parts |= from_objects(_read(frame.texts[name], reader)).columns(name)
    numbers = np.column_stack([frame.numbers, *parts.values()])
    others = {name: column for name, column in frame.texts.items() if name not in readers}
    return Frame((*frame.names, *parts), numbers, others)


def is_moment(kind: pa.DataType) -> bool:
    """Return whether the type is a date, timestamp or time; refuse an invalid time zone."""
    zone = getattr(kind, "tz", None)
    if zone is not None and not _ZONE.fullmatch(zone):  # some of Arrow's builds open a file by it
        raise Problem("body-invalid", "invalid time zone in a timestamp column")
    return bool(types.is_date(kind) or types.is_timestamp(kind) or types.is_time(kind))


def read_arrow_dates(name: str, column: pa.ChunkedArray) -> dict[str, list[float | None]]:
    """Return the parts of a column of dates or times, by name."""
    columns = from_arrow(column.combine_chunks()).columns(name)
    return {
        part: [None if value != value else value for value in values.tolist()]  # noqa: PLR0124
        for part, values in columns.items()
    }


def _read(texts: Sequence[str | None], reader: Callable[[str], Any]) -> list[Any]:
    try:
        return [None if text is None else reader(text) for text in texts]
    except ValueError as error:
        raise Problem(
            "rows-invalid", "a column declared as date or time holds text that is not ISO 8601"
        ) from error
