"""Labels, segment ids and weights: one value per row.

A long vector of labels or segment ids becomes codes 0 … k-1 and a list of what each stands for:

    read_labels    classes (k,) sorted, codes (n,)
    read_numbers   (n,) float64, all finite: the targets of a regression
    read_segments  names, a list of k in order of first appearance, codes (n,)
    read_weights   (n,) float64, none negative, not all zero
    codes_by_name  the code of a class by its label, or by its text as a user types it

`classes[codes]` gives the labels back, `names[codes[i]]` the segment of row i. Rows count from 0
in messages. The distinct values of a long vector are found with neither a sort nor a Python object
per row (`distinct_ints`, `distinct_arrow`). A stream takes labels one by one: `frame.read_label`.

>>> classes, codes = read_labels(["spam", "ham", "spam"], n_rows=3)
>>> classes, codes
(array(['ham', 'spam'], dtype='<U4'), array([1, 0, 1], dtype=int32))
>>> names, codes = read_segments(["may", "may", "april"], n_rows=3)
>>> names, codes
(['may', 'april'], array([0, 0, 1], dtype=int32))
>>> read_weights(2, n_rows=3)
array([2., 2., 2.])
"""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Sequence
from itertools import pairwise
from numbers import Real
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import types
from sklearn.exceptions import DataConversionWarning
from sklearn.utils.multiclass import check_classification_targets

from driftquilt.data.arrow import note_read
from driftquilt.data.columns import as_array, is_missing, is_text, read_column
from driftquilt.errors import InputError

Codes: TypeAlias = NDArray[np.signedinteger[Any]]

_BLOCK = 65_536  # rows at a time, so that what is made on the way stays small
_WIDEST = 2**16  # between the lowest and the highest number, if there is to be no sort


def codes_by_name(classes: Sequence[Any]) -> dict[Any, int]:
    """Return the code of each class by its label and by its text; booleans also as JSON has them.

    >>> codes_by_name([False, True])
    {False: 0, True: 1, 'False': 0, 'True': 1, 'false': 0, 'true': 1}
    """
    texts = [*map(str, classes)]
    if all(isinstance(label, bool) for label in classes):
        texts += [text.lower() for text in texts]
    return {name: at % len(classes) for at, name in enumerate([*classes, *texts])}


def read_labels(y: Any, n_rows: int) -> tuple[NDArray[Any], Codes]:
    """Sorted classes, and the class code of each row.

    Ints stay ints, booleans booleans; strings become numpy strings unless `y` holds objects.
    """
    if y is None:
        raise InputError(
            "a classifier requires y to be passed, but the target y is None; give one label per row"
        )
    texts = _read_arrow_texts(y, n_rows)
    if texts is not None:
        return texts
    labels = _read_vector("y", y, n_rows, column_too=True)
    if labels.dtype.kind not in "biufU":
        labels = _read_objects(labels.tolist())
    if labels.dtype.kind in "biu":
        classes, _, codes = distinct_ints(labels)
        if 2 * len(classes) >= len(labels):  # where scikit-learn may warn of so many classes
            _refuse_continuous(labels)
        return classes, codes
    if labels.dtype.kind == "f":
        _refuse_continuous(labels)
    if labels.dtype.kind in "fU":
        classes, inverse = np.unique(labels, return_inverse=True)
        codes = inverse.astype(np.int32)
    else:
        distinct = sorted(set(labels.tolist()))
        position = {label: code for code, label in enumerate(distinct)}
        given_as_objects = getattr(y, "dtype", None) == np.dtype(object)
        classes = np.array(distinct, dtype=object if given_as_objects else None)
        codes = np.fromiter((position[label] for label in labels.tolist()), dtype=np.int32)
    return classes, codes


def read_numbers(y: Any, n_rows: int) -> NDArray[np.float64]:
    """Return the target of each row, a finite number.

    >>> read_numbers([3, 1.5], n_rows=2)
    array([3. , 1.5])
    """
    if y is None:
        raise InputError(
            "a regressor requires y to be passed, but the target y is None; give one number per row"
        )
    vector = _read_vector("y", y, n_rows, column_too=True)
    if vector.dtype.kind == "c":
        raise InputError("Complex data not supported: y holds complex numbers; give real ones")
    numbers = read_column("y", vector)
    if is_text(numbers):
        raise InputError("y holds text; give a number per row, or use a classifier for classes")
    _refuse_missing("y", np.isnan(numbers))
    if np.isinf(numbers).any():
        row = int(np.argmax(np.isinf(numbers)))
        raise InputError(f"y, row {row} is {numbers[row]}: y contains infinity; give a number")
    return numbers.copy()


def read_segments(segments: Any, n_rows: int) -> tuple[list[Hashable], Codes]:
    """Names in order of first appearance, and the code of each row's segment.

    None makes all rows one segment, called 0. Numpy's scalars become Python's.
    """
    if segments is None:
        return [0], np.zeros(n_rows, dtype=np.int32)
    coded = distinct_arrow(segments)
    if coded is not None:
        _refuse_length("segments", len(coded[1]), n_rows)
        _refuse_missing("segments", coded[1] < 0)
        return coded
    ids = _read_vector("segments", segments, n_rows)
    kind = ids.dtype.kind
    if kind in "mM" and ids.dtype.name.endswith(("[ns]", "[ps]", "[fs]", "[as]")):
        ids = ids.astype(f"{kind}8[us]")  # the finest that datetime has
    if kind in "fmM":
        _refuse_missing("segments", np.isnan(ids) if kind == "f" else np.isnat(ids))
    if kind not in "biufmMU":
        return _number_objects(ids.tolist())
    if kind in "biu":
        names, first, codes = distinct_ints(ids)
    else:
        names, first, inverse = np.unique(ids, return_index=True, return_inverse=True)
        codes = inverse.astype(np.int32)
    order = np.argsort(first)
    rank = np.empty(len(order), dtype=np.int32)
    rank[order] = np.arange(len(order))
    return names[order].tolist(), rank[codes]


def warn_of_order(names: Sequence[Hashable]) -> None:
    """Warn when segments that carry a number or a date do not appear in its order.

    The last to appear is taken for the present, which newest-first exports get wrong.
    """
    dated = all(not isinstance(name, str) or name[:1].isdigit() for name in names)
    if not dated or len({type(name) for name in names}) > 1:
        return
    try:
        rising = all(a < b for a, b in pairwise(names))  # type: ignore[operator]
    except TypeError:
        return
    if not rising:
        warnings.warn(
            f"segments appear in the order {', '.join(map(str, names[:3]))}, …, {names[-1]}, and "
            f"the last one, {names[-1]}, is taken for the present; sort the rows by time if it "
            "is not",
            UserWarning,
            stacklevel=4,
        )


def read_weights(sample_weight: Any, n_rows: int) -> NDArray[np.float64]:
    """One weight per row: ones if None, which take no memory; all equal if a single number."""
    if sample_weight is None:
        return np.broadcast_to(1.0, n_rows)
    if not isinstance(sample_weight, str) and as_array(sample_weight).ndim == 0:
        sample_weight = [sample_weight] * n_rows
    vector = _read_vector("sample_weight", sample_weight, n_rows)
    weights = read_column("sample_weight", vector)
    if is_text(weights):
        raise InputError("sample_weight holds text; give one number per row")
    _refuse_missing("sample_weight", np.isnan(weights))
    if (weights < 0).any():
        row = int(np.argmax(weights < 0))
        raise InputError(f"sample_weight, row {row} is {weights[row]}; a weight is 0 or more")
    if not weights.any():
        raise InputError("sample_weight is zero for every row; give some row a positive weight")
    return weights


def _read_vector(what: str, values: Any, n_rows: int, *, column_too: bool = False) -> NDArray[Any]:
    """`values` as (n_rows,); `column_too` lets (n_rows, 1) pass with a warning."""
    if isinstance(values, str):
        raise InputError(
            f"{what} is the text {values!r}, but takes one value per row; if it is a column of the "
            f"table, pass its values: {what}=table[{values!r}]"
        )
    array = as_array(values)
    if column_too and array.dtype == object and isinstance(values, list | tuple):
        array = _unnest(array)
    if column_too and array.ndim == 2 and array.shape[1] == 1:  # noqa: PLR2004
        message = f"A column-vector {what} was passed when a 1d array was expected"
        warnings.warn(f"{message}; use {what}.ravel()", DataConversionWarning, stacklevel=3)
        array = array[:, 0]
    if array.ndim != 1:
        raise InputError(
            f"{what} should be a 1d array, got an array of shape {array.shape} instead"
        )
    _refuse_length(what, len(array), n_rows)
    return array


def _refuse_length(what: str, length: int, n_rows: int) -> None:
    if length != n_rows:
        raise InputError(
            f"Found input variables with inconsistent numbers of samples: {[n_rows, length]} "
            f"(rows of X, values of {what}); give one value per row"
        )


def _read_arrow_texts(y: Any, n_rows: int) -> tuple[NDArray[Any], Codes] | None:
    """Classes and codes of an Arrow array of strings; None for anything else."""
    coded = distinct_arrow(y)
    if coded is None or not all(isinstance(name, str) for name in coded[0]):
        return None
    names, codes = coded
    _refuse_length("y", len(codes), n_rows)
    _refuse_missing("y", codes < 0)
    classes, place = np.unique(np.array(names), return_inverse=True)
    for first in range(0, len(codes), _BLOCK):  # in place: there may be very many
        block = codes[first : first + _BLOCK]
        block[:] = place[block]
    return classes, codes


def _unnest(rows: NDArray[Any]) -> NDArray[Any]:
    """`[[1], [2]]` as an array of two dimensions; anything else as it is."""
    if not all(isinstance(row, list | tuple | np.ndarray) for row in rows):
        return rows
    try:
        return np.asarray(rows.tolist())
    except ValueError:  # rows of different lengths
        return rows


def _read_objects(labels: list[Any]) -> NDArray[Any]:
    types = set(map(type, labels))
    if types == {str}:
        return np.fromiter(labels, dtype=object, count=len(labels))
    _refuse_missing("y", np.fromiter(map(is_missing, labels), dtype=bool, count=len(labels)))
    if all(issubclass(type_, str) for type_ in types):
        return np.fromiter(map(str.__str__, labels), dtype=object, count=len(labels))
    if all(issubclass(type_, Real | np.bool_) for type_ in types):
        return np.array(labels)
    if types & {complex, np.complex64, np.complex128}:
        raise InputError("Complex data not supported: y holds complex numbers; give class labels")
    type_names = sorted(type_.__name__ for type_ in types)
    raise InputError(
        f"Unknown label type: y holds {' and '.join(type_names)}; make all labels ints, all "
        "booleans, or all strings"
    )


def _refuse_continuous(labels: NDArray[Any]) -> None:
    if labels.dtype.kind == "f":
        _refuse_missing("y", np.isnan(labels))
        if np.isinf(labels).any():
            row = int(np.argmax(np.isinf(labels)))
            raise InputError(f"y, row {row} is {labels[row]}: y contains infinity; give it a class")
    try:
        check_classification_targets(labels)
    except ValueError as error:
        raise InputError(str(error)) from error


def _refuse_missing(what: str, missing: NDArray[np.bool_]) -> None:
    if missing.any():
        raise InputError(
            f"{what} is missing (NaN or None) in {int(missing.sum())} of {len(missing)} rows, "
            f"first in row {int(np.argmax(missing))}; fill it in or drop those rows"
        )


def _number_objects(ids: list[Any]) -> tuple[list[Hashable], Codes]:
    position: dict[Hashable, int] = {}
    codes = np.empty(len(ids), dtype=np.int32)
    for row, id_ in enumerate(ids):
        try:
            codes[row] = position.setdefault(id_, len(position))
        except TypeError as error:
            raise InputError(
                f"segments, row {row} holds a {type(id_).__name__}, which cannot name a segment "
                "(it is not hashable); use a number, a string, a date or a tuple of them"
            ) from error
    missing = np.fromiter(map(is_missing, position), dtype=bool, count=len(position))
    _refuse_missing("segments", missing[codes])
    return [n.item() if isinstance(n, np.generic) else n for n in position], codes


def distinct_ints(
    numbers: NDArray[Any],
) -> tuple[NDArray[Any], NDArray[np.intp], NDArray[np.int32]]:
    """Sorted values of ints or booleans, the first row of each, and each row's place among them."""
    lowest, highest = (int(numbers.min()), int(numbers.max())) if len(numbers) else (0, _WIDEST)
    if highest - lowest >= _WIDEST or highest > np.iinfo(np.intp).max:
        values, row_of, inverse = np.unique(numbers, return_index=True, return_inverse=True)
        return values, row_of, inverse.astype(np.int32)
    first = np.full(highest - lowest + 1, -1, dtype=np.intp)
    for rows in reversed(_blocks(len(numbers))):
        block = numbers[rows][::-1].astype(np.intp) - lowest
        first[block] = np.arange(rows.stop - 1, rows.start - 1, -1)  # of equals, the last stays
    present = np.flatnonzero(first >= 0)
    place = np.zeros(len(first), dtype=np.int32)
    place[present] = np.arange(len(present))
    places = np.empty(len(numbers), dtype=np.int32)
    for rows in _blocks(len(numbers)):
        places[rows] = place[numbers[rows].astype(np.intp) - lowest]
    return numbers[first[present]], first[present], places


def distinct_arrow(values: Any) -> tuple[list[Hashable], Codes] | None:
    """Of an Arrow array of text, dates or categories; -1 is missing. None for other vectors.

    Places are no wider than they need be: there may be very many of very few values.
    """
    if not isinstance(values, pa.Array | pa.ChunkedArray):
        return None
    is_coded = types.is_dictionary(values.type)
    kind = values.type.value_type if is_coded else values.type
    tests = (types.is_string, types.is_large_string, types.is_date, types.is_timestamp)
    if not any(test(kind) for test in tests):
        return None
    place: dict[Hashable, int] = {}
    codes: Codes = np.empty(len(values), dtype=np.int8)
    for rows in _blocks(len(values)):
        start = rows.start
        for chunk in getattr(values[rows], "chunks", [values[rows]]):
            words, here = _encode(chunk, is_coded=is_coded)
            known = [-1 if word is None else place.setdefault(word, len(place)) for word in words]
            width = np.min_scalar_type(-max(len(place), 1))  # holds so many places, and -1
            codes = codes.astype(np.promote_types(codes.dtype, width), copy=False)
            codes[start : start + len(chunk)] = np.array([*known, -1], dtype=codes.dtype)[here]
            start += len(chunk)
            note_read(chunk.nbytes)
    return list(place), codes


def _blocks(n_rows: int) -> list[slice]:
    return [slice(a, min(a + _BLOCK, n_rows)) for a in range(0, n_rows, _BLOCK)]


def _encode(values: Any, *, is_coded: bool) -> tuple[list[Any], NDArray[np.int32]]:
    """Return the values in order of first appearance, and each row's place; -1 is missing."""
    coded = (values.indices if is_coded else values).dictionary_encode()
    words = values.dictionary.take(coded.dictionary) if is_coded else coded.dictionary
    return words.to_pylist(), coded.indices.fill_null(-1).to_numpy()
