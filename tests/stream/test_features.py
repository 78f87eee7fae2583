"""Laws of the growing vector: order of keys, running scale, heavy tails, places, and its pack."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from safetensors.numpy import load, save

from driftquilt.data.encoder import FREQUENT_MAX, Encoder
from driftquilt.data.frame import Frame, Row, read_frame
from driftquilt.stream.features import FAR, Features

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


def encode_by(encoder: Encoder, row: Row) -> list[float]:
    """The numbers of a row, missing ones as 0, in the order of names."""
    vector = encoder.encode(Frame.of_row(row))[0]
    return [float(vector[encoder.places[encoder.names.index(name)]]) for name in ("age", "amount")]


def names(features: Features) -> list[str]:
    return list(features.encoder.feature_names_out)


def state(features: Features) -> tuple[bytes, str]:
    tensors, record = features.pack()
    return save(tensors), json.dumps(record)


def again(features: Features) -> Features:
    """The same, read from files."""
    tensors, record = state(features)
    return Features.unpack(load(tensors), json.loads(record))


def by_rank(features: Features) -> list[str]:
    """Columns that go through knots."""
    encoder = features.encoder
    return [name for at, name in enumerate(encoder.names) if len(encoder.knots.column(at)[0])]


def money(n_rows: int, seed: int = 0) -> list[Row]:
    """Amounts with heavy tails, of which some are missing, and a plain number."""
    rng = np.random.default_rng(seed)
    amounts, ages = rng.lognormal(3, 2, n_rows).tolist(), rng.normal(40, 10, n_rows).tolist()
    gaps = (rng.random(n_rows) < 0.1).tolist()
    return [
        {"amount": None if gap else amount, "age": age}
        for amount, age, gap in zip(amounts, ages, gaps, strict=True)
    ]


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
    assume(not by_rank(features))
    mean, std = float(np.mean(seen)), float(np.std(seen))
    expected = 0.0 if len(set(seen)) == 1 else (new - mean) / max(std, 1e-300)
    if std > 1e-6 * (1 + np.abs(seen).max()) or len(set(seen)) == 1:
        found = encode(features, {"a": new})[0]
        np.testing.assert_allclose(found, np.clip(expected, -FAR, FAR), rtol=1e-4, atol=1e-4)


@given(streams, rows)
def test_it_goes_through_files_exactly(some: list[Row], new: Row) -> None:
    one = learned(some)
    other = again(one)
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
    features = learned(
        [{"a": 1.0}, {"a": 3.0, "c": "x"}, {"c": "y"}, {"b": 5.0, "c": "y"}, {"c": "z"}]
    )
    assert names(features) == ["a", "c=x", "b", "c=y"]
    row: Row = {"a": 3.0, "b": 9.0, "c": "y"}
    assert encode(features, row).tolist() == [1, 0, 0, 1]  # b has not varied
    assert encode(features, {"c": "z", "e": 4.0}).tolist() == [0, 0, 0, 0]


def test_asking_does_not_learn() -> None:
    features = learned([{"a": 1.0}, {"a": 3.0}])
    before = state(features)
    encode(features, {"a": 7.0, "b": 1.0, "c": "x"})
    assert state(features) == before


def test_categories_beyond_the_most_have_no_place() -> None:
    often: list[Row] = [{"c": f"{n // 2}"} for n in range(2 * FREQUENT_MAX + 20)]
    features = learned(often)
    assert len(features) == FREQUENT_MAX
    assert encode(features, {"c": "3"}).sum() == 1
    assert not encode(features, {"c": f"{FREQUENT_MAX + 3}"}).any()


def test_ids_leave_the_places_to_values_that_come_again() -> None:
    ids: list[Row] = [{"c": f"id {n}"} for n in range(1_000)]
    features = learned(ids)
    assert names(features) == ["c=id 0"]
    cash: Row = {"c": "cash"}
    for row in [cash, *ids[:20], cash]:
        features.learn(Frame.of_row(row))
    assert names(features) == ["c=id 0", "c=cash"]


def test_heavy_tails_go_by_rank_nearly_as_at_a_fit() -> None:
    some = money(3_000)
    features = learned(some)
    assert by_rank(features) == ["amount"]
    table = {name: [row[name] for row in some] for name in ("age", "amount")}
    fitted = Encoder.fit(read_frame(table))
    new = [row for row in money(500, seed=1) if row["amount"] is not None]
    off = [np.abs(encode(features, row)[[0, 1]] - encode_by(fitted, row)) for row in new]
    amount, age = np.mean(off, axis=0)[[names(features).index(n) for n in ("amount", "age")]]
    assert age < 1e-5
    assert amount < 0.1


@pytest.mark.parametrize("cut", [1, 31, 32, 300, 1_023, 1_500])
def test_a_restart_changes_no_bit_of_heavy_tails(cut: int) -> None:
    some = money(2_200)
    one = learned(some[:cut])
    other = again(one)
    for row in some[cut:]:
        one.learn(Frame.of_row(row))
        other.learn(Frame.of_row(row))
        assert encode(one, row).tobytes() == encode(other, row).tobytes()
    assert state(one) == state(other)


@pytest.mark.parametrize("wild", [1e38, -1e6, 999.0])
def test_an_outlier_does_not_squeeze_the_numbers_after_it(wild: float) -> None:
    rng = np.random.default_rng(0)
    features = learned([{"a": value} for value in rng.normal(size=300).tolist()])
    features.learn(Frame.of_row({"a": wild}))
    usual = [encode(features, {"a": value})[0] for value in rng.normal(size=300).tolist()]
    assert 0.8 < np.std(usual) < 1.2
    assert abs(encode(features, {"a": wild})[0]) < 4


def test_an_outlier_early_is_known_at_the_32nd_value() -> None:
    rng = np.random.default_rng(0)
    values = [3.0, 1e9, *rng.normal(size=30).tolist()]
    assert by_rank(learned([{"a": value} for value in values[:-1]])) == []
    features = learned([{"a": value} for value in values])
    assert by_rank(features) == ["a"]
    assert abs(encode(features, {"a": 1.0})[0] - encode(features, {"a": -1.0})[0]) > 1


def test_columns_that_come_later_leave_the_knots_where_they_are() -> None:
    features = learned(money(100))
    probe: Row = {"amount": 7.0, "age": 30.0}
    before = encode(features, probe)
    features._add_places(Frame.of_row({"aaa": 1.0, "zzz": 2.0}))
    assert by_rank(features) == ["amount"]
    assert encode(features, probe)[: len(before)].tolist() == before.tolist()


def test_the_state_does_not_grow_over_a_hundred_thousand_rows() -> None:
    rng = np.random.default_rng(0)
    amounts = rng.lognormal(3, 2, 100_000).tolist()
    features = Features()
    for number, amount in enumerate(amounts):
        features.learn(Frame.of_row({"amount": amount, "id": f"{number:06d}"}))
        if number == 1_000:
            early = sum(map(len, state(features)))
    assert sum(map(len, state(features))) < early + 300
    assert len(features) == 2


def test_what_an_earlier_version_packed_goes_on() -> None:
    some = money(400)
    one = learned(some)
    record = one.pack()[1]
    del record["once"]
    other = Features.unpack({}, record)
    assert by_rank(other) == []
    for row in some[:40]:
        other.learn(Frame.of_row(row))
    assert by_rank(other) == ["amount"]
    assert names(other) == names(one)


def test_no_number_is_far_from_zero() -> None:
    features = learned([{"a": value} for value in (0.0, 1.0, 0.0, 1.0)])
    assert encode(features, {"a": 1e38}).tolist() == [FAR]
    assert encode(features, {"a": -1e38}).tolist() == [-FAR]
    features.learn(Frame.of_row({"a": 1e38}))
    assert np.isfinite(encode(features, {"a": 0.0})).all()
