"""Labels, segments and weights: codes lead back to what was given, and bad input is refused."""

from __future__ import annotations

import datetime as dt
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.exceptions import DataConversionWarning

from driftquilt.data import labels
from driftquilt.data.labels import (
    distinct_arrow,
    distinct_ints,
    read_labels,
    read_segments,
    read_weights,
)
from driftquilt.errors import InputError

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")

LABELS = (
    st.lists(st.integers(-5, 5), min_size=2, max_size=20)
    | st.lists(st.booleans(), min_size=2, max_size=20)
    | st.lists(st.sampled_from(["a", "b", "β", ""]), min_size=2, max_size=20)
)
IDS = st.lists(
    st.integers() | st.text(max_size=2) | st.dates() | st.tuples(st.integers(), st.text()),
    min_size=1,
    max_size=20,
)


@given(LABELS)
def test_class_codes_lead_back_to_the_labels(y: list[Any]) -> None:
    assume(len(set(y)) > 1)
    classes, codes = read_labels(y, len(y))
    assert classes[codes].tolist() == y
    assert classes.tolist() == sorted(set(y))
    assert codes.dtype == np.int32


@given(IDS)
def test_segment_codes_lead_back_to_the_ids_in_order_of_first_appearance(ids: list[Any]) -> None:
    names, codes = read_segments(ids, len(ids))
    assert [names[code] for code in codes] == ids
    assert names == list(dict.fromkeys(ids))
    assert codes.dtype == np.int32


@given(st.lists(st.integers(0, 9), min_size=1, max_size=50))
def test_arrays_and_lists_give_the_same_segments(ids: list[int]) -> None:
    for array in (np.array(ids), np.array(ids, dtype=object), np.array(ids).astype(np.float32)):
        names, codes = read_segments(array, len(ids))
        assert names == list(dict.fromkeys(ids))
        assert [names[code] for code in codes] == ids


@pytest.mark.parametrize(
    ("y", "dtype", "classes"),
    [
        ([3, 1, 3], "i8", [1, 3]),
        (np.array([3, 1, 3], dtype=np.uint8), "u1", [1, 3]),
        (np.array([3, 1, 3], dtype=object), "i8", [1, 3]),
        ([1.0, 0.0, 1.0], "f8", [0.0, 1.0]),
        ([True, False, True], "?", [False, True]),
        (pl.Series([True, False, True]), "?", [False, True]),
        (["b", "a", "b"], "<U1", ["a", "b"]),
        (np.array(["b", "a", "b"]), "<U1", ["a", "b"]),
        (np.array(["b", "a", "b"], dtype=object), "O", ["a", "b"]),
        (pd.Series(["b", "a", "b"], dtype=object), "O", ["a", "b"]),
        (pd.Series(["b", "a", "b"]), "<U1", ["a", "b"]),
        (pd.Series(["b", "a", "b"], dtype="category"), "<U1", ["a", "b"]),
        (pd.Categorical(["b", "a", "b"]), "<U1", ["a", "b"]),
        (pd.Series([3, 1, 3], dtype="Int64"), "i8", [1, 3]),
        (pl.Series(["b", "a", "b"], dtype=pl.Categorical), "<U1", ["a", "b"]),
        (pa.chunked_array([pa.array(["b", "a", "b"]).dictionary_encode()]), "<U1", ["a", "b"]),
        (pa.array([3, 1, 3]), "i8", [1, 3]),
    ],
)
def test_labels_of_any_kind_keep_a_fitting_type(y: Any, dtype: str, classes: list[Any]) -> None:
    found, codes = read_labels(y, 3)
    assert found.dtype == np.dtype(dtype)
    assert found.tolist() == classes
    assert codes.tolist() == [1, 0, 1]


@pytest.mark.parametrize(
    "y", [np.array([[0], [1]]), [[0], [1]], pd.DataFrame({"y": [0, 1]}), pl.DataFrame([[0, 1]])]
)
def test_a_column_of_labels_is_taken_with_scikit_learns_warning(y: Any) -> None:
    with pytest.warns(DataConversionWarning, match="A column-vector y was passed when a 1d"):
        classes, codes = read_labels(y, 2)
    assert classes[codes].tolist() == [0, 1]


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (None, "requires y to be passed, but the target y is None"),
        ([0, 1, 0], r"inconsistent numbers of samples: \[2, 3\]"),
        ([[0, 1], [1, 0]], r"y should be a 1d array, got an array of shape \(2, 2\)"),
        (5, r"y should be a 1d array, got an array of shape \(\)"),
        (["a", None], "y is missing .* in 1 of 2 rows, first in row 1"),
        ([np.nan, "a"], "y is missing .* in 1 of 2 rows, first in row 0"),
        (pd.Series([1, None], dtype="Int64"), "y is missing .* first in row 1"),
        (np.array([np.nan, np.nan]), "y is missing .* in 2 of 2 rows, first in row 0"),
        (np.array([0, np.inf]), "y, row 1 is inf: y contains infinity"),
        ([0.5, 1.5], "Unknown label type: continuous"),
        (np.array([0.5, 1.5], dtype=object), "Unknown label type: continuous"),
        ([1, "a"], "Unknown label type: y holds int and str; make all labels"),
        ([[1], [1, 2]], "Unknown label type: y holds list"),
        ([b"a", b"b"], "Unknown label type: y holds bytes"),
        (np.array([1j, 2]), "Complex data not supported"),
        (np.array(["2024-01-01", "2024-01-02"], dtype="M8[D]"), "Unknown label type: y holds date"),
    ],
)
def test_labels_that_cannot_be_used_are_refused_with_the_reason(y: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_labels(y, 2)


MAY, JUNE = dt.datetime(2024, 5, 1), dt.datetime(2024, 6, 1)


@pytest.mark.parametrize(
    ("segments", "names"),
    [
        ([MAY, JUNE, MAY], [MAY, JUNE]),
        ([MAY.date(), JUNE.date(), MAY.date()], [MAY.date(), JUNE.date()]),
        (np.array([MAY, JUNE, MAY], dtype="M8[ns]"), [MAY, JUNE]),
        (np.array([MAY, JUNE, MAY], dtype="M8[s]"), [MAY, JUNE]),
        (np.array([MAY, JUNE, MAY], dtype="M8[D]"), [MAY.date(), JUNE.date()]),
        (np.array([MAY, JUNE, MAY], dtype="M8[M]"), [MAY.date(), JUNE.date()]),
        (pd.Series([MAY, JUNE, MAY]), [MAY, JUNE]),
        (pd.DatetimeIndex([MAY, JUNE, MAY]), [MAY, JUNE]),
        (pl.Series([MAY, JUNE, MAY]), [MAY, JUNE]),
        (pa.chunked_array([[MAY, JUNE, MAY]]), [MAY, JUNE]),
        (pa.array([MAY, JUNE, MAY], pa.date32()), [MAY.date(), JUNE.date()]),
        (pa.chunked_array([pa.array([MAY, JUNE, MAY], pa.date64())]), [MAY.date(), JUNE.date()]),
        (
            pa.array([MAY.date(), JUNE.date(), MAY.date()]).dictionary_encode(),
            [MAY.date(), JUNE.date()],
        ),
        (pd.Series(pd.Categorical(["z", "a", "z"])), ["z", "a"]),
        (pd.PeriodIndex(["2024-05", "2024-06", "2024-05"], freq="M"), None),
        (pl.Series(["z", "a", "z"], dtype=pl.Categorical), ["z", "a"]),
        (pa.chunked_array([pa.array(["z", "a", "z"]).dictionary_encode()]), ["z", "a"]),
        ([1, "1", 1], [1, "1"]),
        ([(2024, 5), (2024, 6), (2024, 5)], [(2024, 5), (2024, 6)]),
        ([np.int64(7), np.int64(5), np.int64(7)], [7, 5]),
        (np.array([7, 5, 7], dtype=np.int8), [7, 5]),
        (np.array(["z", "a", "z"]), ["z", "a"]),
    ],
)
def test_segments_of_any_kind_are_named_by_python_values(
    segments: Any, names: list[Any] | None
) -> None:
    found, codes = read_segments(segments, 3)
    assert codes.tolist() == [0, 1, 0]
    assert not any(isinstance(name, np.generic) for name in found)
    assert found == ([pd.Period("2024-05"), pd.Period("2024-06")] if names is None else names)


def test_without_segments_all_rows_are_one() -> None:
    names, codes = read_segments(None, 3)
    assert names == [0]
    assert codes.tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    ("segments", "message"),
    [
        ([1, 2, 3], r"inconsistent numbers of samples: \[2, 3\].*values of segments"),
        (["a", None], "segments is missing .* in 1 of 2 rows, first in row 1"),
        ([np.nan, 1.0], "segments is missing .* first in row 0"),
        (np.array(["NaT", "2024-01-01"], dtype="M8[D]"), "segments is missing .* row 0"),
        (pd.Series([MAY, None]), "segments is missing .* first in row 1"),
        (pd.PeriodIndex(["2024-05", None], freq="M"), "segments is missing .* first in row 1"),
        (pd.Series(["a", pd.NA], dtype="string"), "segments is missing .* first in row 1"),
        ([1, [2]], "segments, row 1 holds a list, which cannot name a segment"),
        (np.ones((2, 1)), r"segments should be a 1d array, got an array of shape \(2, 1\)"),
        ("may", r"segments is the text 'may', .* pass its values: segments=table\['may'\]"),
    ],
)
def test_segments_that_cannot_be_used_are_refused(segments: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_segments(segments, 2)


@pytest.mark.parametrize(
    ("weights", "expected"),
    [
        (None, [1, 1]),
        (3, [3, 3]),
        (np.float32(0.5), [0.5, 0.5]),
        ([0, 2], [0, 2]),
        (np.array([True, False]), [1, 0]),
        (pl.Series([1.5, 2]), [1.5, 2]),
        (pd.Series([1, 2], dtype="Int64"), [1, 2]),
    ],
)
def test_weights_become_floats(weights: Any, expected: list[float]) -> None:
    read = read_weights(weights, 2)
    assert read.dtype == np.float64
    assert read.tolist() == expected


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1, 2, 3], r"inconsistent numbers of samples: \[2, 3\].*values of sample_weight"),
        (np.ones((2, 2)), r"sample_weight should be a 1d array, got an array of shape \(2, 2\)"),
        ([1, -2], r"sample_weight, row 1 is -2\.0; a weight is 0 or more"),
        ([np.nan, 1], "sample_weight is missing .* first in row 0"),
        ([1, np.inf], "'sample_weight', row 1 holds inf"),
        ([0, 0], "sample_weight is zero for every row"),
        (0, "sample_weight is zero for every row"),
        (["a", "b"], "sample_weight holds text"),
        ("heavy", r"sample_weight is the text .*sample_weight=table\['heavy'\]"),
        ([[1], [1, 2]], "'sample_weight', row 0 holds a list"),
    ],
)
def test_weights_that_cannot_be_used_are_refused(weights: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_weights(weights, 2)


texts = st.lists(st.sampled_from(["may", "april", "", "é", None]), max_size=30)


@given(
    st.sampled_from(["?", "i1", "u1", "i4", "u8", "i8"]).flatmap(
        lambda dtype: hnp.arrays(dtype, st.integers(0, 40))
    )
)
def test_distinct_ints_are_those_of_unique(numbers: np.ndarray[Any, Any]) -> None:
    found = distinct_ints(numbers)
    expected = np.unique(numbers, return_index=True, return_inverse=True)
    assert found[0].dtype == expected[0].dtype
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)


def test_distinct_ints_are_the_same_over_several_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(labels, "_BLOCK", 7)
    numbers = np.random.default_rng(0).integers(-5, 30, size=100).astype(np.int8)
    for one, other in zip(
        distinct_ints(numbers),
        np.unique(numbers, return_index=True, return_inverse=True),
        strict=True,
    ):
        np.testing.assert_array_equal(one, other)


@given(texts, st.integers(0, 30), st.sampled_from(["string", "large", "coded"]))
def test_arrow_texts_are_found_in_order_of_appearance(
    values: list[str | None], middle: int, kind: str
) -> None:
    parts = [pa.array(part, pa.string()) for part in (values[:middle], values[middle:])]
    if kind == "large":
        parts = [part.cast(pa.large_string()) for part in parts]
    if kind == "coded":  # each chunk with a dictionary of its own
        parts = [part.dictionary_encode() for part in parts]
    names = list(dict.fromkeys(value for value in values if value is not None))
    found = distinct_arrow(pa.chunked_array(parts))
    assert found is not None
    assert found[0] == names
    assert found[1].tolist() == [-1 if v is None else names.index(v) for v in values]


def test_a_dictionary_may_list_a_word_twice_or_out_of_order_or_for_nothing() -> None:
    words = pa.array(["z", "a", None, "a", "unused"])
    coded = pa.DictionaryArray.from_arrays(pa.array([3, 0, 2, 1, None], pa.int8()), words)
    found = distinct_arrow(coded)
    assert found is not None
    assert found[0] == ["a", "z"]
    assert found[1].tolist() == [0, 1, -1, 0, -1]


@pytest.mark.parametrize(
    "values", [[1, 2], np.array(["a"]), pa.array([1.5]), pa.array([1]), pa.array([[1]]), None]
)
def test_other_vectors_are_left_to_others(values: Any) -> None:
    assert distinct_arrow(values) is None


ARROW = [
    pa.array(["b", "a", "b"]),
    pa.chunked_array([["b", "a"], ["b"]]),
    pa.array(["b", "a", "b"]).dictionary_encode(),
    pa.chunked_array([["b", "a"], ["b"]]).cast(pa.large_string()),
    pa.array([3, 1, 3], pa.int8()),
    pa.array([True, False, True]),
    pa.array([3, 1, 3]).dictionary_encode(),
    pa.chunked_array([pa.array([3, 1, 3]).dictionary_encode()]),
]


@pytest.mark.parametrize("values", ARROW, ids=lambda values: str(values.type))
def test_arrow_labels_and_segments_are_those_of_a_list(values: Any) -> None:
    classes, codes = read_labels(values, 3)
    expected, expected_codes = read_labels(values.to_pylist(), 3)
    assert classes.tolist() == expected.tolist()
    assert classes.dtype.kind == expected.dtype.kind
    assert codes.tolist() == expected_codes.tolist()
    assert codes.dtype.kind == "i"
    names, places = read_segments(values, 3)
    assert names == values.to_pylist()[:2]
    assert [type(name) for name in names] == [type(name) for name in values.to_pylist()[:2]]
    assert places.tolist() == [0, 1, 0]
    assert places.dtype.kind == "i"


@pytest.mark.parametrize("kind", ["list", "text", "coded"])
def test_missing_and_miscounted_values_are_told_alike_whatever_holds_them(kind: str) -> None:
    def given_as(values: list[str | None]) -> Any:
        array = pa.array(values)
        return {"list": values, "text": array, "coded": array.dictionary_encode()}[kind]

    missing = r"is missing \(NaN or None\) in 2 of 3 rows, first in row 1; fill it in"
    with pytest.raises(InputError, match=f"^y {missing}"):
        read_labels(given_as(["a", None, None]), 3)
    with pytest.raises(InputError, match=f"^segments {missing}"):
        read_segments(given_as(["a", None, None]), 3)
    for read, what in ((read_labels, "y"), (read_segments, "segments")):
        message = rf"inconsistent numbers of samples: \[4, 3\] \(rows of X, values of {what}\)"
        with pytest.raises(InputError, match=message):
            read(given_as(["a", "b", "a"]), 4)


def test_many_int_classes_still_make_scikit_learn_warn() -> None:
    with pytest.warns(UserWarning, match="number of unique classes is greater than 50%"):
        read_labels(np.arange(30), 30)


@pytest.mark.parametrize(
    ("n_values", "dtype"), [(1, "int8"), (128, "int8"), (129, "int16"), (40_000, "int32")]
)
def test_places_are_as_narrow_as_they_can_be(n_values: int, dtype: str) -> None:
    texts = [None, *map(str, range(n_values)), "0"]
    found = distinct_arrow(pa.array(texts))
    assert found is not None
    assert found[1].dtype == dtype
    assert found[1].tolist() == [-1, *range(n_values), 0]
