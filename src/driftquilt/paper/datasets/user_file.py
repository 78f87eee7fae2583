r"""A stream of your own: any data file with a label and a segment column.

It is read as every command reads files (`driftquilt.data.files`). Every other column is a feature:
numbers, booleans, dates or text, with or without gaps, which become what `QuiltClassifier` makes of
them. Labels become codes, in sorted order; segments are numbered in order of first appearance. Rows
are sorted by segment, and keep their order inside it.

>>> import tempfile
>>> path = Path(tempfile.mkdtemp()) / "mail.csv"
>>> _ = path.write_text("length,lang,label,segment\n5,en,spam,may\n7,de,ham,june\n,en,ham,may\n")
>>> stream = read_stream(path)
>>> stream.features, stream.frame.texts["lang"].tolist()
(array([[ 5.],
       [nan],
       [ 7.]]), ['en', 'en', 'de'])
>>> stream.labels, stream.class_names
(array([1, 0, 0]), ('ham', 'spam'))
>>> stream.segments, stream.segment_names
(array([0, 0, 1]), ('may', 'june'))
"""

from __future__ import annotations

import os
from dataclasses import replace
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import compute as pc

from driftquilt.data.column_types import is_text
from driftquilt.data.files import open_data
from driftquilt.data.frame import read_frame
from driftquilt.data.labels import read_labels, read_segments
from driftquilt.errors import InputError
from driftquilt.paper.datasets.stream import Stream
from driftquilt.text import is_numeral, suggest

__all__ = ["read_stream"]

_MANY = 20  # different numbers, above which they are amounts and not the names of things


def read_stream(
    path: str | os.PathLike[str],
    label: str = "label",
    segment: str = "segment",
    current_share: float = 0.1,
) -> Stream:
    """Read a data file as a stream; raise `InputError` if it cannot be one."""
    if label == segment:
        raise InputError(f"label and segment are both {label!r}; name two columns")
    if not isinstance(current_share, Real) or not 0 < current_share < 1:
        raise InputError(f"current_share must be between 0 and 1, but got {current_share!r}")
    with open_data([path]) as data:
        try:
            stream = _to_stream(Path(path).stem, data.table, label, segment, current_share)
        except InputError as error:
            raise InputError(f"{path}: {error}") from error
        return replace(stream, notes=data.notes)


def _to_stream(name: str, table: Any, label: str, segment: str, share: float) -> Stream:
    classes, labels = read_labels(_complete(table, label), table.num_rows)
    names, segments = read_segments(_complete(table, segment), table.num_rows)
    features = table.drop_columns([label, segment])
    if not features.num_columns:
        raise InputError(f"there is no column but {label!r} and {segment!r}; add features")
    for column_name, column in zip(features.column_names, features.columns, strict=True):
        if pc.all(pc.is_null(column, nan_is_null=True)).as_py():
            raise InputError(f"column {column_name!r} has no value in any row; drop it")
        if is_text(column.type):
            _refuse_mark(column_name, column)
    order = np.argsort(segments, kind="stable")
    frame = read_frame(features).take(order)
    return Stream(
        name,
        frame.numbers,
        labels[order].astype(np.int64),
        segments[order].astype(np.int64),
        citation="",
        current_share=share,
        feature_names=frame.columns,
        class_names=tuple(map(str, classes.tolist())),
        segment_names=tuple(map(str, names)),
        frame=frame,
    )


def _complete(table: Any, name: str) -> Any:
    """Return a column without gaps; dates as text, which sorts as they do."""
    if name not in table.column_names:
        raise InputError(f"no column {name!r}; {suggest(name, table.column_names)}")
    column = table[name]
    missing: NDArray[np.bool_] = pc.is_null(column, nan_is_null=True).to_numpy()
    if missing.any():
        raise InputError(
            f"column {name!r} is missing in row {int(np.argmax(missing))} (rows count from 0); "
            "fill it in or drop the row"
        )
    if pa.types.is_date(column.type) or pa.types.is_timestamp(column.type):
        return column.cast(pa.string())
    return column


def _refuse_mark(name: str, column: Any) -> None:
    """Refuse a column of numbers with one mark, such as "?", that probably means missing."""
    texts = column.unique().drop_null().to_pylist()
    marks = [text for text in texts if not is_numeral(text)]
    if len(marks) == 1 and len(texts) > _MANY:
        raise InputError(
            f"column {name!r} is numbers, but {marks[0]!r} in row "
            f"{pc.index(column, marks[0]).as_py()} (rows count from 0); leave the cell empty where "
            "a value is missing"
        )
