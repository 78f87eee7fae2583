"""The label of each row of a table: its class, or a number.

Text, whole numbers and booleans are classes. Numbers with a fraction are amounts, and so are whole
ones of which there are more than 20 different; `read_target` finds out, unless it is told. A row
without a label has null, NaN or infinity. Blanks around text are not part of it, so "yes" and "yes
" are one class, and blanks alone count as no label. In text that is mostly numbers, as it is where
a few rows say "n/a", these are amounts and the others no labels.

>>> labels = read_labels(pa.table({"bought": ["no", "yes", None, "no"]}), "bought")
>>> labels.classes, labels.codes
(array(['no', 'yes'], dtype='<U3'), array([ 0,  1, -1,  0], dtype=int8))
>>> prices = read_target(pa.table({"price": [12.5, None, 9.99]}), "price")
>>> prices.values, prices.known.tolist()
(array([12.5 ,   nan,  9.99]), [True, False, True])
>>> read_amount("$1,250.50"), read_amount("-3 EUR"), read_amount("n/a"), read_amount("007")
(1250.5, -3.0, nan, nan)
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeAlias, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from driftquilt.core.segment import count_rows
from driftquilt.data.column_types import (
    BLOCK,
    blocks,
    find_column,
    is_category,
    is_number,
    is_text,
    present,
)
from driftquilt.data.labels import Codes
from driftquilt.data.labels import read_labels as read_classes
from driftquilt.errors import InputError
from driftquilt.quilt.metrics import amount
from driftquilt.text import suggest

#: What a label can be.
TaskName = Literal["classes", "numbers"]

_FOR_CLASSES = (
    "but classes are wanted here; name a column with few of them, or bin it, for example into low, "
    "middle and high; `driftquilt select` takes amounts with --task numbers, if it is told the "
    "segments by --segment-by or --time"
)
_MAX_CLASSES = 20  # different numbers that may be classes
_FEW = 50  # rows, or classes, that may all differ
_ROWS_OF_TEXT, _ROWS_OF_NUMBER = 2, 20  # that a class has on average, where there are many
_MOSTLY = 0.5  # of the texts
_NUMBER = r"(0|[1-9]\d*|[1-9]\d{0,2}(?:,\d{3})+)?(\.\d*)?(e[-+]?\d+)?"
_CURRENCY = r"\s*(?:[$€£¥]|[a-z]{3})?\s*"
_AMOUNT = re.compile(rf"([-+]?){_CURRENCY}([-+]?){_NUMBER}{_CURRENCY}", re.IGNORECASE)


@dataclass(frozen=True, eq=False)
class Labels:
    """The classes, and the code of each row: its place in `classes`, -1 where missing."""

    name: str
    classes: NDArray[Any]
    codes: Codes
    task: ClassVar[TaskName] = "classes"

    @property
    def known(self) -> NDArray[np.bool_]:
        """Whether each row has a label."""
        known: NDArray[np.bool_] = self.codes >= 0
        return known

    def reason(self) -> str:
        """Return why this is the kind of task, in a line."""
        hint = "; --task numbers if they are amounts" if self.classes.dtype.kind in "iu" else ""
        return f"{self.name!r} has {len(self.classes)} classes{hint}"

    def of(self, rows: NDArray[Any]) -> NDArray[Any]:
        """Return the labels of some rows, none of which is missing."""
        labels: NDArray[Any] = self.classes[self.codes[rows]]
        return labels

    def count(self, rows: NDArray[Any]) -> NDArray[np.intp]:
        """Return how many of some rows have each class."""
        return count_rows(self.codes[rows], len(self.classes))

    def present(self, rows: NDArray[Any]) -> NDArray[np.intp]:
        """Return the codes of the classes that some of these rows have."""
        return np.flatnonzero(self.count(rows))

    def distinct(self, rows: NDArray[Any]) -> NDArray[Any]:
        """Return the classes that some rows have, sorted, with no object per row."""
        some: NDArray[Any] = self.classes[self.present(rows)]
        return some

    def to_fit(self, parts: Sequence[slice | NDArray[Any]]) -> Any:
        """Return labels of these rows as a classifier takes them, with no object per row."""
        return self._as_labels(_join([self.codes[part] for part in parts]))

    def to_fit_weighed(self, used: NDArray[np.bool_]) -> Any:
        """Return labels of all rows; those not used get one of a used row.

        So no class is known that was not seen.
        """
        known = np.where(used, self.codes, self.codes[int(np.argmax(used))])
        return self._as_labels(known.astype(np.int32))

    def _as_labels(self, codes: Codes) -> Any:
        if self.classes.dtype.kind in "biuf":
            return self.classes[codes]
        return pa.DictionaryArray.from_arrays(pa.array(codes), self.classes.tolist())


@dataclass(frozen=True, eq=False)
class Amounts:
    """The number of each row, NaN where missing; `odd` are texts that are no numbers."""

    name: str
    values: NDArray[np.float64]
    odd: tuple[str, ...] = ()
    task: ClassVar[TaskName] = "numbers"

    @property
    def known(self) -> NDArray[np.bool_]:
        """Whether each row has a label."""
        return np.isfinite(self.values)

    def reason(self) -> str:
        """Return why this is the kind of task, in a line."""
        known = self.values[self.known]
        ends = f"{amount(known.min())} to {amount(known.max())}"
        return f"{self.name!r} holds numbers from {ends}; --task classes if they are classes"

    def of(self, rows: NDArray[Any]) -> NDArray[np.float64]:
        """Return the numbers of some rows."""
        numbers: NDArray[np.float64] = self.values[rows]
        return numbers

    def distinct(self, rows: NDArray[Any]) -> NDArray[np.float64]:
        """Return the numbers that some rows have, sorted."""
        return np.unique(self.values[rows])

    def to_fit(self, parts: Sequence[slice | NDArray[Any]]) -> NDArray[np.float64]:
        """Return the numbers of these rows as a regressor takes them."""
        return _join([self.values[part] for part in parts])

    def to_fit_weighed(self, used: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Return the numbers of all rows; those not used get one of a used row."""
        return np.where(used, self.values, self.values[int(np.argmax(used))])


AnyLabels: TypeAlias = Labels | Amounts


def _join(parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def read_target(table: pa.Table, name: str, task: str | None = None) -> AnyLabels:
    """Read a label column as classes or numbers; by default as what it seems to hold."""
    names = get_args(TaskName)
    if task is not None and task not in names:
        raise InputError(f"unknown task {task!r}; {suggest(task, names)}")
    if task == "numbers" or (task is None and _are_amounts(find_column(table, name, "label"))):
        return read_amounts(table, name)
    return read_labels(table, name)


def read_amounts(table: pa.Table, name: str) -> Amounts:
    """Read numbers; `InputError` if most are none, or all are the same."""
    column = _decoded(find_column(table, name, "label column"))
    odd = list[str]()
    if is_text(column.type):
        values, odd = _read_texts(column)
    elif _holds_numbers(column.type) or pa.types.is_boolean(column.type):
        column = column.cast(pa.int8()) if pa.types.is_boolean(column.type) else column
        values = column.cast(pa.float64(), safe=False).to_numpy().copy()
    else:
        raise InputError(f"the label {name!r} holds {column.type}, which is not a number")
    values[~np.isfinite(values)] = np.nan
    known = values[~np.isnan(values)]
    if not len(known):
        why = f", but text such as {odd[0]!r}" if odd else ""
        raise InputError(f"the label {name!r} holds no number in {len(values)} rows{why}")
    if (known == known[0]).all():
        raise InputError(
            f"the label {name!r} is {known[0]:g} in every row that has one; there is nothing to "
            "predict, name another column"
        )
    return Amounts(name, values, tuple(odd))


def read_amount(text: str) -> float:
    """Return the number that a text is, perhaps with a currency; NaN if it is none."""
    match = _AMOUNT.fullmatch(text.strip())
    if match is None or not (match[3] or (match[4] or "")[1:]):
        return math.nan
    number = float(f"{(match[3] or '0').replace(',', '')}{match[4] or ''}{match[5] or ''}")
    return -number if "-" in (match[1], match[2]) else number


def _read_texts(column: pa.ChunkedArray) -> tuple[NDArray[np.float64], list[str]]:
    """Return the numbers, and the texts that are none, blanks aside."""
    values, odd, start = np.full(len(column), np.nan), dict[str, None](), 0
    for block in blocks(column):
        coded = block.dictionary_encode()
        texts = coded.dictionary.to_pylist()
        numbers = np.array([*map(read_amount, texts), np.nan])
        odd |= dict.fromkeys(
            t
            for t, value in zip(texts, numbers, strict=False)
            if value != value and t.strip()  # noqa: PLR0124
        )
        places = coded.indices.fill_null(len(texts)).to_numpy(zero_copy_only=False)
        values[start : start + len(block)] = numbers[places]
        start += len(block)
    return values, [*odd]


def _are_amounts(column: pa.ChunkedArray) -> bool:
    """Return whether a label column seems to hold amounts."""
    column, values = _decoded(column), set[Any]()
    if not _holds_numbers(column.type) and not is_text(column.type):
        return False
    for block in blocks(column):
        values.update(value for value in block.unique().to_pylist() if value is not None)
        if len(values) > _MAX_CLASSES:
            break
    if is_text(column.type):
        are_numbers = [not math.isnan(read_amount(text)) for text in values]
        return len(values) > _MAX_CLASSES and sum(are_numbers) > _MOSTLY * len(values)
    finite = [value for value in map(float, values) if math.isfinite(value)]
    return len(finite) > _MAX_CLASSES or not all(value.is_integer() for value in finite)


def _decoded(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return the column without categories and views."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        column, kind = column.cast(kind.value_type), kind.value_type
    return column.cast(pa.large_string()) if "view" in str(kind) else column


def _holds_numbers(kind: pa.DataType) -> bool:
    return is_number(kind) or bool(pa.types.is_decimal(kind))


def read_labels(table: pa.Table, name: str) -> Labels:
    """Read classes and codes; `InputError` if there are not two classes."""
    column = clean_labels(table, name)
    valid = present(column)
    known = column if valid.all() else column.filter(pa.array(valid))
    if pa.types.is_boolean(known.type):
        known = known.to_numpy()
    classes, codes = read_classes(known, len(known))
    if len(classes) == 1:
        raise InputError(
            f"the label {name!r} is {classes[0]} in every row that has one; there is nothing to "
            "predict, give a label with at least two classes"
        )
    if not valid.all():
        all_codes = np.full(len(column), -1, dtype=codes.dtype)
        all_codes[valid] = codes
        codes = all_codes
    return Labels(name, classes, codes)


def clean_labels(table: pa.Table, name: str) -> pa.ChunkedArray:
    """Return the label column as text, whole numbers or booleans, null where missing."""
    column = find_column(table, name, "label column")
    kind = column.type
    if pa.types.is_dictionary(kind) and not is_category(kind):
        column, kind = column.cast(kind.value_type), kind.value_type
    if column.null_count == len(column):
        raise InputError(f"the label {name!r} is missing in all {len(column)} rows")
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return _whole(name, column.cast(pa.float64()))
    if is_text(kind) or is_category(kind) or pa.types.is_integer(kind):
        column = column.cast(pa.large_string()) if "view" in str(kind) else column
        column = column if pa.types.is_integer(kind) else _strip(name, column)
        _refuse_ids(name, column)
        return column
    if pa.types.is_boolean(kind):
        return column
    raise InputError(
        f"the label {name!r} holds {kind}; a label is text, a whole number or a boolean, turn it "
        "into one of them"
    )


def find_padded(column: pa.ChunkedArray) -> list[str]:
    """Return the texts with blanks around them, and the empty one.

    >>> find_padded(pa.chunked_array([["yes", "yes ", "no", None, " "]]))
    ['yes ', ' ']
    """
    texts = dict[str, None]()
    for block in (
        blocks(_decoded(column)) if is_text(column.type) or is_category(column.type) else ()
    ):
        texts |= dict.fromkeys(t for t in block.unique().to_pylist() if t is not None)
    return [text for text in texts if not text or text != text.strip()]


def note_blanks(table: pa.Table, name: str) -> list[str]:
    """Return a note if blanks around the texts of a label column are left out.

    >>> note_blanks(pa.table({"y": ["yes", "yes ", "no"]}), "y")
    ["blanks around labels of 'y' are left out: 'yes ' counts as 'yes'"]
    """
    padded = find_padded(find_column(table, name, "label column"))
    if not any(padded):
        return []
    first = next(filter(None, padded))
    meaning = f"{first.strip()!r}" if first.strip() else "no label"
    return [f"blanks around labels of {name!r} are left out: {first!r} counts as {meaning}"]


def _strip(name: str, column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return texts without blanks around them, null where nothing is left; the same if all are."""
    if not find_padded(column):
        return column
    texts = pc.utf8_trim_whitespace(_decoded(column))
    texts = pc.if_else(pc.equal(texts, ""), pa.scalar(None, texts.type), texts)
    if texts.null_count == len(texts):
        raise InputError(f"the label {name!r} is missing in all {len(texts)} rows")
    return texts


def _whole(name: str, column: pa.ChunkedArray) -> pa.ChunkedArray:
    values = set[float]()
    for block in blocks(column):
        values.update(v for v in block.unique().to_pylist() if v is not None and v == v)  # noqa: PLR0124
        if len(values) > _MAX_CLASSES:
            raise InputError(
                f"the label {name!r} holds numbers such as {min(values):g} and {max(values):g}, "
                f"more than {_MAX_CLASSES} different ones: it looks like an amount (regression), "
                f"{_FOR_CLASSES}"
            )
    if not values:
        raise InputError(f"the label {name!r} is missing in all {len(column)} rows")
    odd = [value for value in values if not value.is_integer()]
    if odd:
        raise InputError(
            f"the label {name!r} holds {min(odd):g}, which is not a whole number; write its "
            f"{len(values)} different values as text if they are classes, or bin them"
        )
    missing = pa.scalar(None, pa.float64())
    return pc.if_else(pc.is_nan(column), missing, column).cast(pa.int64())


def _refuse_ids(name: str, column: pa.ChunkedArray) -> None:
    """Refuse labels with too many values in the first block, numbers sooner than text."""
    first = column.slice(0, BLOCK).drop_null()
    n_distinct = len(first.unique())
    n_min = _ROWS_OF_NUMBER if pa.types.is_integer(column.type) else _ROWS_OF_TEXT
    if n_distinct > max(_FEW, len(first) / n_min):
        raise InputError(
            f"the label {name!r} has {n_distinct} different values in the first {len(first)} rows: "
            f"it looks like an id or an amount (regression), {_FOR_CLASSES}"
        )
