r"""A stream of your own: any CSV or Parquet file with a label and a segment column.

Every other column is a feature: numbers, booleans, dates or text, with or without gaps; what it
becomes is in `columns`. Labels may be of any kind and become codes, in sorted order; segments may
be of any kind too and count in order of first appearance. Rows are sorted by segment, and keep
their order inside it.

>>> import tempfile
>>> path = Path(tempfile.mkdtemp()) / "mail.csv"
>>> _ = path.write_text("length,lang,label,segment\n5,en,spam,may\n7,de,ham,june\n,en,ham,may\n")
>>> stream = read_stream(path)
>>> stream.features, stream.categories
(array([[ 5.,  1.],
       [nan,  1.],
       [ 7.,  0.]]), {'lang': ('de', 'en')})
>>> stream.labels, stream.class_names
(array([1, 0, 0]), ('ham', 'spam'))
>>> stream.segments, stream.segment_names
(array([0, 0, 1]), ('may', 'june'))
"""

from __future__ import annotations

import os
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import compute as pc

from driftquilt.errors import InputError
from driftquilt.paper.datasets.columns import read_features
from driftquilt.paper.datasets.stream import Stream
from driftquilt.paper.datasets.tables import read_table, require_columns

__all__ = ["read_stream"]

# Kinds of values that can name a class or a segment.
_NAMING = (
    pa.types.is_null,  # a column with nothing in it, which is then refused as missing
    pa.types.is_boolean,
    pa.types.is_integer,
    pa.types.is_floating,
    pa.types.is_decimal,
    pa.types.is_temporal,
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_string_view,
)


def read_stream(
    path: str | os.PathLike[str],
    label: str = "label",
    segment: str = "segment",
    current_share: float = 0.1,
) -> Stream:
    """Read a table of the user's as a stream; InputError if it cannot be one."""
    path = Path(path)
    _check_settings(label, segment, current_share)
    table = read_table(path)
    require_columns(path, table, [label, segment])
    features = [name for name in table.column_names if name not in (label, segment)]
    if not features:
        raise InputError(f"{path} has no column but {label!r} and {segment!r}; add features")
    X, categories = read_features(path, table, features)
    classes, labels = _sort_classes(path, label, *_encode(path, table, label))
    names, segments = _encode(path, table, segment)
    order = np.argsort(segments, kind="stable")
    return Stream(
        path.stem,
        X[order],
        labels[order],
        segments[order],
        citation="",
        current_share=current_share,
        feature_names=tuple(features),
        class_names=tuple(map(str, classes)),
        segment_names=tuple(map(str, names)),
        categories=categories,
    )


def _check_settings(label: str, segment: str, current_share: float) -> None:
    if label == segment:
        raise InputError(f"label and segment are both {label!r}; name two columns")
    if not isinstance(current_share, Real) or not 0 < current_share < 1:
        raise InputError(f"current_share must be between 0 and 1, but got {current_share!r}")


def _encode(path: Path, table: Any, name: str) -> tuple[list[Any], NDArray[np.int64]]:
    """The values of a column in order of first appearance, and the code of each row's."""
    column = table[name]
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    kind = column.type
    if not any(test(kind) for test in _NAMING):
        raise InputError(f"{path}: column {name!r} holds {kind}; use numbers, UTF-8 text or dates")
    if pa.types.is_temporal(kind) and getattr(kind, "unit", "") == "ns":
        column = _round_to_microseconds(column)
    missing = pc.is_null(column, nan_is_null=True).to_numpy()
    if missing.any():
        raise InputError(
            f"{path}: column {name!r} is missing in row {int(np.argmax(missing))} (rows count "
            "from 0); fill it in or drop the row"
        )
    encoded = column.combine_chunks().dictionary_encode()
    return encoded.dictionary.to_pylist(), encoded.indices.to_numpy().astype(np.int64)


def _round_to_microseconds(column: Any) -> Any:
    """The finest times that Python has without pandas."""
    kind = column.type
    if pa.types.is_timestamp(kind):
        return column.cast(pa.timestamp("us", kind.tz), safe=False)
    finest = pa.duration("us") if pa.types.is_duration(kind) else pa.time64("us")
    return column.cast(finest, safe=False)


def _sort_classes(
    path: Path, label: str, classes: list[Any], codes: NDArray[np.int64]
) -> tuple[list[Any], NDArray[np.int64]]:
    broken = [value for value in classes if isinstance(value, float) and not value.is_integer()]
    if broken:
        raise InputError(
            f"{path}: column {label!r} holds {broken[0]}, so it is an amount and not a class; "
            "name the column of the classes, or cut it into ranges"
        )
    order = sorted(range(len(classes)), key=classes.__getitem__)
    return [classes[i] for i in order], np.argsort(order)[codes]
