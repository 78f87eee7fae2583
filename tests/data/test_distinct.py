"""Distinct values are those that a sort, or a loop over Python objects, would find."""

from __future__ import annotations

import datetime as dt
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from driftquilt.data import labels
from driftquilt.data.labels import distinct_arrow, distinct_ints, read_labels, read_segments
from driftquilt.errors import InputError

MAY, JUNE = dt.date(2024, 5, 1), dt.date(2024, 6, 1)
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


@pytest.mark.parametrize(
    "values",
    [
        pa.array([MAY, JUNE, MAY]),
        pa.chunked_array([pa.array([MAY, JUNE, MAY], pa.date64())]),
        pa.chunked_array([pa.array([MAY, JUNE, MAY]).dictionary_encode()]),
    ],
    ids=lambda values: str(values.type),
)
def test_arrow_dates_name_segments(values: Any) -> None:
    names, codes = read_segments(values, 3)
    assert names == [MAY, JUNE]
    assert codes.tolist() == [0, 1, 0]


def test_arrow_times_name_segments_as_python_has_them() -> None:
    moments = [dt.datetime(2024, 5, 1, 12), dt.datetime(2024, 6, 1), dt.datetime(2024, 5, 1, 12)]
    names, codes = read_segments(pa.chunked_array([pa.array(moments, pa.timestamp("us"))]), 3)
    assert names == moments[:2]
    assert codes.tolist() == [0, 1, 0]


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
