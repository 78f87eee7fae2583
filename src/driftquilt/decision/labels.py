"""The label column: whether it can be classes, and which class each row has.

Text, whole numbers and booleans are labels; floats are if they are whole and few. A missing
label (null or NaN) has the code -1; such rows are left out of everything.

    classes  (k,)  sorted
    codes    (n,)  places in `classes`, -1 where missing; as narrow as they can be

>>> labels = read_labels(pa.table({"bought": ["yes", None, "no"]}), "bought")
>>> labels.classes, labels.codes
(array(['no', 'yes'], dtype='<U3'), array([ 1, -1,  0], dtype=int8))
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from driftquilt.core.segment import count_rows
from driftquilt.data.labels import Codes
from driftquilt.data.labels import read_labels as read_classes
from driftquilt.decision.columns import BLOCK, blocks, find_column, is_text_kind, present
from driftquilt.errors import InputError

__all__ = ["Labels", "clean_labels", "read_labels"]

_MOST_FLOATS = 20  # different values of a float column that may be classes
_FEW = 50  # rows, or classes, that may all differ
_ROWS_OF_TEXT, _ROWS_OF_NUMBER = 2, 20  # that a class has on average, where there are many


@dataclass(frozen=True, eq=False)
class Labels:
    """The classes, and the place of each row's among them."""

    name: str
    classes: NDArray[Any]
    codes: Codes

    def of(self, rows: NDArray[Any]) -> NDArray[Any]:
        """Labels of some rows, none of which lacks it."""
        found: NDArray[Any] = self.classes[self.codes[rows]]
        return found

    def count(self, rows: NDArray[Any]) -> NDArray[np.intp]:
        """How many of some rows have each class."""
        return count_rows(self.codes[rows], len(self.classes))

    def present(self, rows: NDArray[Any]) -> NDArray[np.intp]:
        """Codes of the classes that some of these rows have."""
        return np.flatnonzero(self.count(rows))

    def to_fit(self, codes: Codes) -> Any:
        """Labels of these codes as a classifier takes them, with no Python object per row."""
        if self.classes.dtype.kind in "biuf":
            return self.classes[codes]
        return pa.DictionaryArray.from_arrays(pa.array(codes), self.classes.tolist())


def read_labels(table: pa.Table, name: str) -> Labels:
    """Classes and codes; `InputError` if there are not two classes."""
    column = clean_labels(table, name)
    valid = present(column)
    known = column if valid.all() else column.filter(pa.array(valid))
    if pa.types.is_boolean(known.type):
        known = known.to_numpy()
    classes, found = read_classes(known, len(known))
    if len(classes) == 1:
        raise InputError(
            f"the label {name!r} is {classes[0]} in every row that has one; there is nothing to "
            "tell apart, give a label with at least two classes"
        )
    if not valid.all():
        codes = np.full(len(column), -1, dtype=found.dtype)
        codes[valid] = found
        found = codes
    return Labels(name, classes, found)


def clean_labels(table: pa.Table, name: str) -> pa.ChunkedArray:
    """The label column as text, whole numbers or booleans, null where missing."""
    column = find_column(table, name, "label column")
    kind = column.type
    if pa.types.is_dictionary(kind) and not is_text_kind(kind):
        column, kind = column.cast(kind.value_type), kind.value_type
    if column.null_count == len(column):
        raise InputError(f"the label {name!r} is missing in all {len(column)} rows")
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return _whole(name, column.cast(pa.float64()))
    if is_text_kind(kind) or pa.types.is_integer(kind):
        column = column.cast(pa.large_string()) if "view" in str(kind) else column
        _refuse_ids(name, column)
        return column
    if pa.types.is_boolean(kind):
        return column
    raise InputError(
        f"the label {name!r} holds {kind}; a label is text, a whole number or a boolean, turn it "
        "into one of them"
    )


def _whole(name: str, column: pa.ChunkedArray) -> pa.ChunkedArray:
    found = set[float]()
    for block in blocks(column):
        found.update(v for v in block.unique().to_pylist() if v is not None and v == v)  # noqa: PLR0124
        if len(found) > _MOST_FLOATS:
            raise InputError(
                f"the label {name!r} holds numbers such as {min(found):g} and {max(found):g}, more "
                f"than {_MOST_FLOATS} different ones: it looks like an amount (regression), but "
                "driftquilt predicts classes; bin it, for example into low, middle and high"
            )
    if not found:
        raise InputError(f"the label {name!r} is missing in all {len(column)} rows")
    odd = [value for value in found if not value.is_integer()]
    if odd:
        raise InputError(
            f"the label {name!r} holds {min(odd):g}, which is no whole number; write its "
            f"{len(found)} different values as text if they are classes, or bin them"
        )
    missing = pa.scalar(None, pa.float64())
    return pc.if_else(pc.is_nan(column), missing, column).cast(pa.int64())


def _refuse_ids(name: str, column: pa.ChunkedArray) -> None:
    """Refuse labels that differ too much, numbers sooner, as far as the first block tells."""
    first = column.slice(0, BLOCK).drop_null()
    n_distinct = len(first.unique())
    fewest = _ROWS_OF_TEXT if is_text_kind(column.type) else _ROWS_OF_NUMBER
    if n_distinct > max(_FEW, len(first) / fewest):
        raise InputError(
            f"the label {name!r} has {n_distinct} different values in the first {len(first)} rows: "
            "it looks like an id or an amount (regression), but driftquilt predicts classes; name "
            "a column with few of them, or bin it, for example into low, middle and high"
        )
