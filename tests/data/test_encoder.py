"""Laws of the encoder: scale, independence of rows, round trip, and what it refuses."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from driftquilt.data.encoder import Encoder
from driftquilt.data.frame import Frame, read_frame
from driftquilt.errors import InputError, ModelFileError

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")

Columns = dict[str, list[Any]]
finite = st.floats(min_value=-1e6, max_value=1e6, allow_subnormal=False)


@st.composite
def tables(draw: st.DrawFn) -> Columns:
    """Two columns of numbers and one of text, some values missing, none of them empty."""
    n = draw(st.integers(2, 12))
    numbers = st.lists(st.none() | finite, min_size=n, max_size=n)
    texts = st.lists(st.none() | st.text(max_size=3), min_size=n, max_size=n)
    columns: Columns = {"a": draw(numbers), "b": draw(numbers), "city": draw(texts)}
    assume(all(any(v is not None for v in column) for column in columns.values()))
    return columns


def encode(columns: Columns, rows: Any = None) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Fit on all rows, transform some of them."""
    table = read_frame(columns)
    if rows is None:
        return Encoder.fit(table).transform(table)
    some = {name: [column[i] for i in rows] for name, column in columns.items()}
    return Encoder.fit(table).transform(read_frame(some))


@given(st.lists(finite, min_size=2, max_size=50))
def test_numbers_seen_at_fit_get_mean_zero_and_deviation_one(values: list[float]) -> None:
    assume(np.std(values) > 1e-6 * (1 + np.max(np.abs(values))))
    scaled = encode({"a": values})[:, 0].astype(np.float64)
    assert abs(scaled.mean()) < 1e-4
    assert abs(scaled.std() - 1) < 1e-4


@given(tables(), st.data())
def test_each_row_is_encoded_by_itself_and_in_any_order(columns: Columns, data: Any) -> None:
    n = len(columns["a"])
    rows = data.draw(st.lists(st.integers(0, n - 1), min_size=1, max_size=2 * n))
    np.testing.assert_array_equal(encode(columns, rows), encode(columns)[rows])


@given(tables(), st.randoms(use_true_random=False))
def test_the_order_of_rows_at_fit_hardly_matters(columns: Columns, random: Any) -> None:
    order = list(range(len(columns["a"])))
    random.shuffle(order)
    shuffled = {name: [column[i] for i in order] for name, column in columns.items()}
    for name in ("a", "b"):
        seen = [v for v in columns[name] if v is not None]
        assume(np.ptp(seen) == 0 or np.std(seen) > 1e-6 * (1 + np.max(np.abs(seen))))
    np.testing.assert_allclose(encode(shuffled), encode(columns)[order], atol=1e-3)


@given(tables())
def test_the_matrix_is_float32_contiguous_finite_and_as_wide_as_its_names(columns: Columns) -> None:
    table = read_frame(columns)
    encoder = Encoder.fit(table)
    out = encoder.transform(table)
    assert out.dtype == np.float32
    assert out.flags.c_contiguous
    assert np.isfinite(out).all()
    assert out.shape == (len(table), len(encoder.feature_names_out))


@given(tables())
def test_json_round_trip_gives_an_equal_encoder_and_equal_bits(columns: Columns) -> None:
    table = read_frame(columns)
    encoder = Encoder.fit(table)
    again = Encoder.from_json(json.loads(json.dumps(encoder.to_json())))
    assert again == encoder
    assert again.transform(table).tobytes() == encoder.transform(table).tobytes()


@given(st.lists(st.sampled_from("abc"), min_size=1, max_size=20), st.text(max_size=3))
def test_a_category_not_seen_at_fit_is_all_zeros(seen: list[str], new: str) -> None:
    out = Encoder.fit(read_frame({"c": seen})).transform(read_frame({"c": [new, *seen]}))
    np.testing.assert_array_equal(out[0].sum(), float(new in seen))
    np.testing.assert_array_equal(out[1:].sum(axis=1), np.ones(len(seen)))


def test_a_missing_number_is_the_mean_with_a_flag_only_if_one_was_missing_at_fit() -> None:
    flagged = Encoder.fit(read_frame({"a": [1.0, None, 3.0]}))
    plain = Encoder.fit(read_frame({"a": [1.0, 3.0]}))
    new = read_frame({"a": [None, 3.0]})
    assert flagged.feature_names_out == ("a", "a=missing")
    assert flagged.transform(new).tolist() == [[0, 1], [1, 0]]
    assert plain.transform(new).tolist() == [[0], [1]]


def test_missing_text_is_a_category_only_if_it_was_seen() -> None:
    new = read_frame({"c": ["x", None]})
    assert Encoder.fit(read_frame({"c": ["x", None]})).transform(new).tolist() == [[1, 0], [0, 1]]
    assert Encoder.fit(read_frame({"c": ["x", "y"]})).transform(new).tolist() == [[1, 0], [0, 0]]


def test_features_follow_the_columns_and_categories_are_sorted() -> None:
    table = read_frame({"c": ["b", "a", None], "n": [1, None, 2], "m": [1, 2, 3]})
    names = ("c=a", "c=b", "c=missing", "n", "n=missing", "m")
    assert Encoder.fit(table).feature_names_out == names


@pytest.mark.parametrize(("robust", "limit"), [(True, 40), (False, 256)])
def test_only_the_most_frequent_categories_are_kept_ties_by_name(robust: bool, limit: int) -> None:
    names = [f"c{i:03d}" for i in range(300)]
    encoder = Encoder.fit(read_frame({"c": [*names, *names, "c299", "c298"]}), robust=robust)
    kept = [f"c={name}" for name in [*names[: limit - 2], "c298", "c299"]]
    assert list(encoder.feature_names_out) == kept
    with_missing = Encoder.fit(read_frame({"c": [*names, *names, None]}), robust=robust)
    assert len(with_missing.feature_names_out) == limit
    assert with_missing.feature_names_out[-1] == "c=missing"


def test_an_id_gets_one_column_and_none_beside_that_of_missing_ones() -> None:
    ids = [f"id{i:02d}" for i in range(60)]
    assert Encoder.fit(read_frame({"c": ids})).feature_names_out == ("c=id00",)
    assert Encoder.fit(read_frame({"c": [*ids, None]})).feature_names_out == ("c=missing",)
    twice = Encoder.fit(read_frame({"c": [*ids, "id07"]}))
    assert twice.feature_names_out == ("c=id07",)


def test_forty_categories_or_fewer_all_have_a_column() -> None:
    names = [f"c{i:02d}" for i in range(40)]
    assert len(Encoder.fit(read_frame({"c": names})).feature_names_out) == 40


RNG = np.random.default_rng(0)
HEAVY: dict[str, Any] = {
    "money": RNG.lognormal(3, 2, 500),
    "outliers": np.append(RNG.normal(size=499), 1e6),
    "sentinels": np.where(RNG.random(500) < 0.02, 999, RNG.integers(18, 40, 500)),
    "spike": np.where(RNG.random(500) < 0.8, 0, RNG.normal(size=500)),
    "counts": RNG.negative_binomial(1, 0.4, 500) ** 3,
}
LIGHT: dict[str, Any] = {
    "normal": RNG.normal(5, 3, 500),
    "uniform": RNG.random(500),
    "flags": RNG.random(500) < 0.01,
    "constant": np.full(500, 7.0),
    "stars": RNG.integers(1, 6, 500),
}


@pytest.mark.parametrize("name", HEAVY)
def test_heavy_tails_are_encoded_by_rank(name: str) -> None:
    values = np.asarray(HEAVY[name], dtype=np.float64)
    table = read_frame({"a": values})
    encoder = Encoder.fit(table)
    out = encoder.transform(table)[:, 0].astype(np.float64)
    assert abs(out.mean()) < 1e-5
    assert abs(out.std() - 1) < 1e-5
    assert (np.diff(out[np.argsort(values)]) >= 0).all()
    assert encoder.describe() == {"a": "numbers, heavy tails: by rank"}
    knots, scores = encoder.knots.column(0)
    assert len(knots) <= 257
    np.testing.assert_allclose(out, np.interp(values, knots, scores), rtol=1e-6)
    beyond = encoder.transform(read_frame({"a": [-1e30, 1e30, None]}))
    assert beyond[:, 0].tolist() == [out.min(), out.max(), 0]


@pytest.mark.parametrize("name", LIGHT)
def test_light_tails_stay_linear(name: str) -> None:
    values = LIGHT[name]
    table = read_frame({"a": values})
    robust, standard = Encoder.fit(table), Encoder.fit(table, robust=False)
    assert robust.transform(table).tobytes() == standard.transform(table).tobytes()
    assert robust.describe()["a"].startswith("numbers: by mean and deviation, from ")


def test_an_outlier_does_not_squeeze_the_others_together() -> None:
    values = np.append(RNG.normal(size=1000), 1e9)
    for robust, spread in ((True, 1.0), (False, 0.0)):
        table = read_frame({"a": values})
        out = Encoder.fit(table, robust=robust).transform(table)[:-1, 0]
        assert abs(out.std() - spread) < 0.1


@given(st.lists(finite, min_size=3, max_size=40), st.lists(finite, min_size=1, max_size=9))
def test_rank_scores_rise_with_the_value_and_stay_between_the_ends(
    seen: list[float], new: list[float]
) -> None:
    table = read_frame({"a": [*seen, 1e30, -1e30, 0.0]})
    encoder = Encoder.fit(table)
    assume(len(encoder.knots.values))
    out = encoder.transform(read_frame({"a": sorted(new)}))[:, 0]
    assert (np.diff(out) >= 0).all()
    ends = encoder.knots.scores[[0, -1]].astype(np.float32)
    assert ends[0] <= out.min()
    assert out.max() <= ends[1]


def test_parts_of_dates_are_never_encoded_by_rank() -> None:
    days = np.where(np.arange(100) < 95, "2024-01-01T00:00", "2024-03-05T11:00")
    other = np.where(np.arange(100) == 50, "2024-07-05T17:00", days).astype("M8[m]")
    encoder = Encoder.fit(read_frame({"when": other}))
    assert len(encoder.knots.values) == 0
    assert encoder.describe() == {"when": "dates and times: sines and cosines of the calendar"}


def test_every_column_is_described_in_a_line() -> None:
    text = [f"c{i % 60}" for i in range(300)]
    columns = {
        "amount": HEAVY["money"][:300],
        "age": LIGHT["normal"][:300],
        "shop": text,
        "plan": ["x", "y", None] * 100,
        "id": [f"{i}" for i in range(300)],
    }
    encoder = Encoder.fit(read_frame(columns))
    lines = {
        "amount": "numbers, heavy tails: by rank",
        "age": "numbers: by mean and deviation, from -11.67 to 21.6",
        "shop": "text: 40 of 60 values have a column of their own",
        "plan": "text: a column for each of 2 values",
        "id": "text: 1 of 300 values has a column of its own",
    }
    assert encoder.describe() == lines
    again = Encoder.from_json(json.loads(json.dumps(encoder.to_json())))
    assert again == encoder
    assert again.describe() == lines
    table = read_frame(columns)
    assert again.transform(table).tobytes() == encoder.transform(table).tobytes()
    assert encoder.copy() == encoder


def test_a_row_alone_is_encoded_by_rank_as_among_others() -> None:
    table = read_frame({name: values.astype(np.float64) for name, values in HEAVY.items()})
    encoder = Encoder.fit(table)
    whole = encoder.transform(table)
    for row in (0, 63, 64, 499):
        alone = encoder.encode(table.take(slice(row, row + 1)))
        assert alone.tobytes() == whole[row].tobytes()


def test_columns_of_earlier_versions_are_read() -> None:
    columns = [GOOD, {"name": "c", "categories": ["x", None]}]
    encoder = Encoder.from_json({"named": True, "columns": columns})
    assert encoder.feature_names_out == ("a", "c=x", "c=missing")
    assert encoder.describe()["c"] == "text: a column for each of 1 value"
    far = encoder.transform(read_frame({"a": [1e6], "c": ["x"]}))
    assert far[0, 0] == 1e6  # without an end


@pytest.mark.parametrize("value", [0.1, 1e-300, -3.4e38, 123456789.123])
def test_a_constant_column_is_all_zeros(value: float) -> None:
    assert not encode({"a": [value] * 7}).any()


@pytest.mark.parametrize("size", [1e-200, 1e-30, 1.0, 1e38])
def test_scale_does_not_depend_on_the_unit(size: float) -> None:
    np.testing.assert_allclose(encode({"a": [-size, size]}), [[-1], [1]], rtol=1e-6)


def test_a_value_far_from_those_at_fit_stays_finite() -> None:
    out = Encoder.fit(read_frame({"a": [0.0, 1e-30]})).transform(read_frame({"a": [1e30, -1e30]}))
    assert np.isfinite(out).all()
    assert out[0, 0] > 0 > out[1, 0]


def test_more_rows_than_a_block_are_scaled_alike() -> None:
    X = np.random.default_rng(0).normal(3, 5, size=(150_000, 2))
    table = read_frame(X)
    expected = (X - X.mean(axis=0)) / X.std(axis=0)
    np.testing.assert_allclose(Encoder.fit(table).transform(table), expected, atol=1e-5)


def test_named_columns_are_found_in_any_order_and_extra_ones_ignored() -> None:
    encoder = Encoder.fit(read_frame({"a": [1, 3], "b": ["x", "y"]}))
    same = encoder.transform(read_frame({"z": [0], "b": ["y"], "a": [3]}))
    assert same.tolist() == [[1, 0, 1]]


def test_columns_are_found_by_position_if_either_table_has_no_names() -> None:
    X = np.array([[1.0, 2.0], [3.0, 6.0]])
    bare, named = read_frame(X), read_frame({"a": X[:, 0], "b": X[:, 1]})
    expected = Encoder.fit(bare).transform(bare)
    np.testing.assert_array_equal(Encoder.fit(named).transform(bare), expected)
    np.testing.assert_array_equal(Encoder.fit(bare).transform(named), expected)


def test_lacking_columns_are_all_named_with_the_nearest_present() -> None:
    encoder = Encoder.fit(read_frame({"income": [1, 2], "city": ["x", "y"], "q": [1, 2]}))
    message = r"'income' \(did you mean 'Income'\?\), 'city'; add them"
    with pytest.raises(InputError, match=message):
        encoder.transform(read_frame({"Income": [1], "q": [1]}))


def test_the_wrong_number_of_columns_is_told_in_scikit_learns_words() -> None:
    encoder = Encoder.fit(read_frame(np.eye(3)))
    message = "^X has 2 features, but QuiltClassifier is expecting 3 features as input$"
    with pytest.raises(InputError, match=message):
        encoder.transform(read_frame(np.eye(2)))


def test_a_column_that_changed_its_kind_is_named() -> None:
    encoder = Encoder.fit(read_frame({"a": [1, 2], "b": ["x", "y"]}))
    with pytest.raises(InputError, match=r"'a' was numbers at fit and is text now \(row 1 holds"):
        encoder.transform(read_frame({"a": [None, "7"], "b": ["x", "x"]}))
    with pytest.raises(InputError, match=r"'b' was text at fit and is numbers now \(row 0 holds"):
        encoder.transform(read_frame({"a": [1], "b": [7]}))


def test_an_all_missing_column_fits_both_kinds_at_transform() -> None:
    encoder = Encoder.fit(read_frame({"a": [1, 2], "b": ["x", "y"]}))
    empty_text = np.array([None, None], dtype=object)
    out = encoder.transform(read_frame(pl.DataFrame({"a": [None], "b": [None]})))
    assert out.tolist() == [[0, 0, 0]]
    table = read_frame({"a": pl.Series(empty_text, dtype=pl.String), "b": [np.nan, np.nan]})
    assert not encoder.transform(table).any()


@pytest.mark.parametrize("empty", [[None, None], pd.Series([None, None], dtype="string")])
def test_a_column_without_any_value_at_fit_is_refused(empty: Any) -> None:
    with pytest.raises(InputError, match="'a' has no value"):
        Encoder.fit(read_frame({"a": empty}))


GOOD: dict[str, Any] = {"name": "a", "mean": 0.0, "std": 1.0, "missing": False}
RANKS: dict[str, Any] = {"name": "a", "knots": [1, 2.0], "scores": [-1.0, 1], "missing": False}


@pytest.mark.parametrize(
    "columns",
    [
        [],
        [GOOD, GOOD],
        5,
        [5],
        [{**GOOD, "name": 5}],
        [{**GOOD, "mean": "0"}],
        [{**GOOD, "mean": True}],
        [{**GOOD, "mean": float("nan")}],
        [{**GOOD, "std": 0.0}],
        [{**GOOD, "std": 10**400}],
        [{**GOOD, "missing": 1}],
        [{**GOOD, "lowest": 1.0, "highest": 1.0}],
        [{**GOOD, "lowest": math.inf, "highest": 2.0}],
        [{**GOOD, "lowest": "a", "highest": 2.0}],
        [{"name": "a", "mean": 0.0}],
        [{**RANKS, "knots": [2.0, 1.0]}],
        [{**RANKS, "knots": [1.0, 1.0]}],
        [{**RANKS, "knots": [1.0, 2.0, 3.0]}],
        [{**RANKS, "knots": [1.0], "scores": [1.0]}],
        [{**RANKS, "knots": [], "scores": []}],
        [{**RANKS, "knots": [0.0, float("inf")]}],
        [{**RANKS, "knots": [0.0, True]}],
        [{**RANKS, "knots": 5}],
        [{**RANKS, "scores": [0.0, float("nan")]}],
        [{**RANKS, "scores": [0.0, "1"]}],
        [{"name": "a", "knots": [1, 2], "missing": False}],
        [{"name": "a", "categories": ["x"], "n_values": 0}],
        [{"name": "a", "categories": ["x"], "n_values": "1"}],
        [{"name": "a", "categories": []}],
        [{"name": "a", "categories": "xy"}],
        [{"name": "a", "categories": [None, "x"]}],
        [{"name": "a", "categories": ["x", 1]}],
        [{"name": "a", "categories": ["x", "x"]}],
    ],
)
def test_a_damaged_column_is_a_model_file_error(columns: Any) -> None:
    with pytest.raises(ModelFileError, match="damaged"):
        Encoder.from_json({"named": True, "columns": columns})


@pytest.mark.parametrize("data", [None, [], {}, {"named": True}, {"named": 1, "columns": [GOOD]}])
def test_a_damaged_encoder_is_a_model_file_error(data: Any) -> None:
    with pytest.raises(ModelFileError, match="damaged"):
        Encoder.from_json(data)


def test_a_sentinel_that_first_appears_later_ends_beyond_the_numbers_seen() -> None:
    rng = np.random.default_rng(4)
    seen = rng.normal(40, 10, 500)
    encoder, plain = (Encoder.fit(read_frame({"age": seen}), robust=r) for r in (True, False))
    known, later = read_frame({"age": seen}), read_frame({"age": [999_999.0, -999_999.0]})
    assert encoder.transform(known).tobytes() == plain.transform(known).tobytes()
    ends = encoder.transform(known).max() + 3, encoder.transform(known).min() - 3
    np.testing.assert_allclose(encoder.transform(later)[:, 0], ends, rtol=1e-6)
    assert plain.transform(later)[0, 0] > 10_000
    alone = encoder.encode(Frame.of_row({"age": 999_999.0}))
    assert alone.tobytes() == encoder.transform(later)[:1].tobytes()
    again = Encoder.from_json(json.loads(json.dumps(encoder.to_json())))
    assert again == encoder
    assert again.transform(later).tobytes() == encoder.transform(later).tobytes()
