"""Read what the model in use predicted, from a column of the table.

A column holds labels, or for two classes the probability of the second one in sorted order.
Labels are compared as text, so 1, 1.0 and "1" are the same. Of a regression it holds numbers.

>>> labels = Labels("paid", np.array(["no", "yes"]), np.array([0, 1, 1]))
>>> table = pa.table({"today": [0.2, 0.9, 0.4], "old": ["no", "yes", "no"]})
>>> rows = np.arange(3)
>>> read_incumbent(table, "today", labels, rows).chances[:, 1].tolist()
[0.2, 0.9, 0.4]
>>> read_incumbent(table, "old", labels, rows).codes.tolist()
[0, 1, 0]
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from driftquilt.data.column_types import find_column, present
from driftquilt.decision.labels import Amounts, AnyLabels, Labels
from driftquilt.decision.layout import Rows
from driftquilt.errors import InputError
from driftquilt.quilt.metrics import NumberPredictions, Predictions
from driftquilt.text import listing, plural, suggest

_TWO = 2


def read_incumbent(table: pa.Table, name: str, labels: Labels, rows: Rows) -> Predictions:
    """Return the predictions of these rows; `InputError` if one is missing or makes no sense."""
    column = _read_column(table, name, labels, rows)
    values = column.to_pylist()
    place = {_text(label): code for code, label in enumerate(labels.classes.tolist())}
    codes = [place.get(_text(value), -1) for value in values]
    if -1 not in codes:
        return Predictions.of_answers(np.array(codes, dtype=np.intp), len(place))
    if _is_number(column.type):
        return _read_chances(name, np.asarray(values, dtype=np.float64), labels)
    odd = values[codes.index(-1)]
    raise InputError(
        f"the incumbent {name!r} predicts {odd!r}, which is not a class of {labels.name!r}; "
        f"{suggest(odd, [*place])}"
    )


def read_numbers_of(table: pa.Table, name: str, labels: Amounts, rows: Rows) -> NumberPredictions:
    """Return the numbers that were predicted for these rows."""
    column = _read_column(table, name, labels, rows)
    if not _is_number(column.type):
        raise InputError(
            f"the incumbent {name!r} holds {column.type}, but {labels.name!r} holds numbers; give "
            "a column with predicted numbers"
        )
    values = column.cast(pa.float64()).to_numpy()
    if not np.isfinite(values).all():
        odd = int(rows[int(np.argmax(~np.isfinite(values)))])
        raise InputError(f"the incumbent {name!r} is infinite in row {odd}; give a number")
    return NumberPredictions(values)


def _read_column(table: pa.Table, name: str, labels: AnyLabels, rows: Rows) -> pa.ChunkedArray:
    """Return the predictions of these rows, none of which is missing."""
    if name == labels.name:
        raise InputError(f"{name!r} is the label; give --incumbent the column with predictions")
    column = find_column(table, name, "incumbent column").take(pa.array(rows))
    missing = ~present(column)
    if missing.any():
        raise InputError(
            f"the incumbent {name!r} is missing in {plural(int(missing.sum()), 'held-out row')}, "
            f"first in row {int(rows[int(missing.argmax())])} (rows count from 0); fill it in"
        )
    return column


def _read_chances(name: str, p: Any, labels: Labels) -> Predictions:
    classes = labels.classes.tolist()
    if len(classes) != _TWO:
        raise InputError(
            f"the incumbent {name!r} holds numbers such as {p[0]:g}, and {labels.name!r} has "
            f"{len(classes)} classes; give a column with labels: {listing(classes)}"
        )
    outside = p[(p < 0) | (p > 1)]
    if len(outside):
        raise InputError(
            f"the incumbent {name!r} holds {outside[0]:g}, which is neither a class of "
            f"{labels.name!r} nor a probability; give the probability of {classes[1]!r}, or labels"
        )
    return Predictions.of(np.column_stack([1 - p, p]))


def _is_number(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_decimal(kind)
    )


def _text(value: Any) -> str:
    """Return a label as text; whole numbers without a point, text without blanks around it."""
    is_whole = isinstance(value, float) and value.is_integer()
    return str(int(value)) if is_whole else str(value).strip()
