"""Laws of the growing vector: order of keys, running scale, late columns, and its way to JSON."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from driftquilt.data.encoder import CATEGORIES_MAX
from driftquilt.data.frame import Frame, Row
from driftquilt.stream.learning import FAR, Features

values = st.none() | st.floats(-1e6, 1e6)
texts = st.none() | st.sampled_from(["Oslo", "Rome", "7", ""])
rows = st.fixed_dictionaries({}, optional={"a": values, "b": values, "c": texts, "d": texts})
streams = st.lists(rows, max_size=25)


def learned(some: list[Any]) -> Features:
    features = Features()
    for row in some:
        features.learn(Frame.of_row(row))
    return features


def encode(features: Features, row: Row) -> np.ndarray[Any, np.dtype[np.float32]]:
    vector: np.ndarray[Any, np.dtype[np.float32]] = features.encoder.encode(Frame.of_row(row))[0]
    return vector


def names(features: Features) -> list[str]:
    return list(features.encoder.feature_names_out)


def state(features: Features) -> str:
    return json.dumps(features.to_json())


@given(streams, st.randoms(use_true_random=False))
def test_the_order_of_keys_in_a_row_plays_no_part(some: list[Row], rng: Any) -> None:
    shuffled = [dict(rng.sample(list(row.items()), len(row))) for row in some]
    one, other = learned(some), learned(shuffled)
    assert state(one) == state(other)
    for row, twin in zip(some, shuffled, strict=True):
        assert encode(one, row).tobytes() == encode(other, twin).tobytes()


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=60), st.floats(-1e6, 1e6))
def test_numbers_are_scaled_as_numpy_would(seen: list[float], new: float) -> None:
    features = learned([{"a": value} for value in seen])
    mean, std = float(np.mean(seen)), float(np.std(seen))
    expected = 0.0 if len(set(seen)) == 1 else (new - mean) / max(std, 1e-300)
    if std > 1e-6 * (1 + np.abs(seen).max()) or std == 0:
        found = encode(features, {"a": new})[0]
        np.testing.assert_allclose(found, np.clip(expected, -FAR, FAR), rtol=1e-4, atol=1e-4)


@given(streams, rows)
def test_it_goes_through_json_exactly(some: list[Row], new: Row) -> None:
    one = learned(some)
    other = Features.from_json(json.loads(state(one)))
    for row in [new, *some]:
        assert encode(one, row).tobytes() == encode(other, row).tobytes()
        one.learn(Frame.of_row(row))
        other.learn(Frame.of_row(row))
        assert state(one) == state(other)


@given(streams, rows)
def test_a_vector_only_grows_at_its_end_and_what_is_lacking_is_zero(
    some: list[Row], new: Row
) -> None:
    features = learned(some)
    before = names(features)
    features.learn(Frame.of_row(new))
    assert names(features)[: len(before)] == before
    assert len(features) == len(set(names(features))) == len(encode(features, {}))
    assert not encode(features, {}).any()
    assert encode(features, new).dtype == np.float32


def test_columns_and_categories_come_late() -> None:
    features = learned([{"a": 1.0}, {"a": 3.0, "c": "x"}, {}, {"b": 5.0, "c": "y"}])
    assert names(features) == ["a", "c=x", "b", "c=y"]
    assert encode(features, {"a": 3.0, "b": 9.0, "c": "y"}).tolist() == [
        1,
        0,
        0,
        1,
    ]  # b has not varied
    assert encode(features, {"c": "z", "e": 4.0}).tolist() == [0, 0, 0, 0]


def test_asking_does_not_learn() -> None:
    features = learned([{"a": 1.0}, {"a": 3.0}])
    before = state(features)
    encode(features, {"a": 7.0, "b": 1.0, "c": "x"})
    assert state(features) == before


def test_categories_beyond_the_most_have_no_place() -> None:
    features = learned([{"c": f"{n}"} for n in range(CATEGORIES_MAX + 50)])
    assert len(features) == CATEGORIES_MAX
    assert encode(features, {"c": "3"}).sum() == 1
    assert not encode(features, {"c": f"{CATEGORIES_MAX + 3}"}).any()


def test_no_number_is_far_from_zero() -> None:
    features = learned([{"a": value} for value in (0.0, 1.0, 0.0, 1.0)])
    assert encode(features, {"a": 1e38}).tolist() == [FAR]
    assert encode(features, {"a": -1e38}).tolist() == [-FAR]
    features.learn(Frame.of_row({"a": 1e38}))
    assert np.isfinite(encode(features, {"a": 0.0})).all()
