"""The ONNX graph of a classifier answers as the classifier does, in another runtime."""

from __future__ import annotations

import datetime as dt
import json
import subprocess
import sys
from typing import Any

import numpy as np
import onnx
import pandas as pd  # type: ignore[import-untyped]
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError
from torch import nn

from driftquilt import QuiltClassifier, TorchLearner
from driftquilt.errors import InputError, LearnerError
from driftquilt.paper.datasets import names
from tests.integrations.onnx.runtime import assert_alike, feed, run
from tests.published import load_published

N_ROWS = 60


def fitted(table: Any, labels: Any = None, **given: Any) -> QuiltClassifier:
    labels = np.arange(N_ROWS) % 2 if labels is None else labels
    small = {"hidden_units": 5, "max_epochs": 3, "n_folds": 2, "random_state": 0, **given}
    return QuiltClassifier(**small).fit(table, labels, segments=np.arange(N_ROWS) // 20)


def shop() -> pd.DataFrame:
    """A column of every kind, each but the last with gaps."""
    rng = np.random.default_rng(0)
    gaps = rng.random((5, N_ROWS)) < 0.2
    day = pd.Timestamp("2023-11-30 21:07:13.123456") + pd.to_timedelta(
        rng.integers(0, 10**15, N_ROWS), unit="us"
    )
    clock = [dt.time(hour, minute, 59) for hour, minute in rng.integers(0, 24, (N_ROWS, 2))]
    return pd.DataFrame(
        {
            "price": pd.Series(rng.normal(50, 9, N_ROWS)).mask(gaps[0]),
            "city": pd.Series(rng.choice(["Oslo", "Rome", "Århus"], N_ROWS)).mask(gaps[1]),
            "when": pd.Series(day).mask(gaps[2]),
            "opens": pd.Series(clock, dtype=object).mask(gaps[3], None),
            "visits": pd.array(rng.poisson(3, N_ROWS), dtype="Int64"),
            "tier": pd.Series(rng.choice(["a", "b"], N_ROWS), dtype="category"),
            "member": rng.random(N_ROWS) < 0.5,
        }
    )


@pytest.mark.parametrize("name", names())
def test_on_every_stream_of_the_paper_it_answers_as_the_classifier(name: str) -> None:
    stream = load_published(name).first(3)
    X, y, segments = stream.features, stream.labels, stream.segments
    clf = QuiltClassifier(random_state=0, max_epochs=20).fit(X, y, segments=segments)
    inputs = {f"x{j}": X[:, [j]] for j in range(X.shape[1])}
    assert_alike(clf, X, inputs)


def test_columns_of_every_kind_and_gaps_are_taken_raw() -> None:
    table = shop()
    clf = fitted(table)
    assert_alike(clf, table, feed(table))


def test_a_row_of_nothing_but_gaps_is_answered() -> None:
    table = shop()[["price", "city", "when", "opens"]]
    lowest = np.array([[np.iinfo(np.int64).min]])
    gaps = {"price": np.array([[np.nan]]), "city": np.array([[""]], dtype=object)}
    gaps |= {"when": lowest, "opens": lowest}
    assert_alike(fitted(table), {name: [None] for name in table.columns}, gaps)


def test_categories_and_gaps_that_fit_never_saw_are_as_for_the_classifier() -> None:
    seen = pd.DataFrame({"city": ["Oslo", "Rome"] * 30, "price": np.arange(60.0)})
    new = pd.DataFrame({"city": ["Bonn", None, "oslo", "Rome"], "price": [np.nan, 1e6, -3, 7]})
    assert_alike(fitted(seen), new, feed(new))


def test_numbers_keep_the_precision_that_float32_would_lose() -> None:
    rng = np.random.default_rng(0)
    stamps = pd.DataFrame({"stamp": 1.7e9 + rng.normal(size=60)})
    clf = fitted(stamps, stamps["stamp"] > 1.7e9, max_epochs=30)
    assert np.ptp(clf.predict_proba(stamps)[:, 0]) > 0.2
    assert_alike(clf, stamps, feed(stamps))


def test_columns_with_heavy_tails_go_through_their_knots() -> None:
    rng = np.random.default_rng(0)
    money = pd.DataFrame(
        {
            "amount": rng.lognormal(3, 3, N_ROWS),
            "score": rng.normal(size=N_ROWS),
            "age": np.where(rng.random(N_ROWS) < 0.1, 999, rng.integers(18, 90, N_ROWS)),
            "debt": pd.Series(rng.standard_cauchy(N_ROWS)).mask(rng.random(N_ROWS) < 0.2),
        }
    )
    clf = fitted(money, money["amount"] > money["amount"].median(), max_epochs=30)
    assert clf.encoder_ is not None
    assert len(clf.encoder_.knots.values) > N_ROWS
    assert np.ptp(clf.predict_proba(money)[:, 0]) > 0.2
    assert_alike(clf, money, feed(money))
    far = pd.DataFrame({name: [-1e30, -1.0, 0.0, 1e30, np.nan] for name in money})
    assert_alike(clf, far, feed(far))


@pytest.mark.parametrize(
    "column",
    [
        np.arange(60),
        2**53 + np.arange(60),
        np.arange(2**64 - 60, 2**64, dtype=np.uint64),
        pd.Series([10**25 + k * 10**22 for k in range(60)], dtype=object),
        np.arange(60) % 3 == 0,
        pd.array([True, False, None] * 20, dtype="boolean"),
        ["always"] * 60,
        ["now and then", None] * 30,
        [dt.time(12)] * 60,
        pd.date_range("1960-02-28 23:59:59.999999", periods=60, freq="7h").as_unit("us"),
        pd.date_range("2023-01-01", periods=60, freq="12h").as_unit("us"),
        pd.date_range("2023-01-01 06:00", periods=60, freq="12h").as_unit("us"),
        pd.date_range("2023-01-01", periods=60, freq="17us").as_unit("us"),
    ],
    ids=["ints", "large", "largest", "beyond ints", "flags", "flags with gaps", "one category",
         "one category with gaps", "one time of day", "dates",
         "midnight and noon", "six and eighteen", "within a millisecond"],
)  # fmt: skip
def test_one_column_is_enough(column: Any) -> None:
    table = pd.DataFrame({"only": column})
    assert_alike(fitted(table), table, feed(table))


def test_hundreds_of_classes_are_told_apart() -> None:
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.normal(size=600), "b": rng.choice(["x", "y"], 600)})
    clf = QuiltClassifier(hidden_units=5, max_epochs=3, n_folds=2, random_state=0)
    clf.fit(table, [f"class {k % 300}" for k in range(600)])
    assert_alike(clf, table, feed(table))


@pytest.mark.parametrize("encode", ["robust", False])
def test_numbers_far_from_all_that_was_seen_overflow_nothing(encode: str | bool) -> None:
    X = np.random.default_rng(0).normal(size=(60, 1))
    clf = fitted(X, X[:, 0] > 0, hidden_units=64, max_epochs=20, encode=encode)
    far = np.array([[1e10], [1e30], [-1e37], [3.4e38], [-3.4e38]])
    inputs = {"x0": far} if encode else {"X": far.astype(np.float32)}
    assert_alike(clf, far, inputs)


@pytest.mark.parametrize(
    ("labels", "dtype"),
    [
        (["no", "yes", "så"], object),
        ([3, 1, 2], np.int64),
        ([True, False, True], np.bool_),
        ([0.0, 2.0, 1.0], np.float64),
        (np.array([3, 1, 2], dtype=object), np.int64),
    ],
    ids=str,
)
def test_labels_keep_their_kind(labels: Any, dtype: Any) -> None:
    table = pd.DataFrame({"a": np.random.default_rng(0).normal(size=60)})
    given_labels = np.array(labels)[np.arange(60) % 3]
    clf = fitted(table, given_labels)
    label, _ = run(clf.to_onnx(), feed(table))
    assert label.dtype == dtype
    assert_alike(clf, table, feed(table))


def test_rows_that_are_not_encoded_are_one_matrix() -> None:
    X = np.random.default_rng(0).normal(size=(60, 3))
    assert_alike(fitted(X, encode=False), X, {"X": X.astype(np.float32)})


def test_a_loaded_model_gives_the_same_bytes(tmp_path: Any) -> None:
    clf = fitted(shop())
    clf.save(tmp_path / "model.safetensors")
    assert QuiltClassifier.load(tmp_path / "model.safetensors").to_onnx() == clf.to_onnx()


def test_the_file_says_how_each_column_is_given() -> None:
    model = onnx.load_from_string(fitted(shop()).to_onnx(missing="?"))
    told = {prop.key: json.loads(prop.value) for prop in model.metadata_props}
    assert [one["name"] for one in told["inputs"]] == list(shop().columns)
    types = {one["name"]: one["type"] for one in told["inputs"]}
    assert types["city"] == "string"
    assert types["when"] == types["opens"] == "int64"
    assert types["member"] == "float64"
    assert "'?' where missing" in told["inputs"][1]["holds"]
    assert told["classes"] == [0, 1]


def test_the_sign_of_a_missing_text_cannot_be_a_category() -> None:
    table = pd.DataFrame({"city": ["", "Rome", None] * 20})
    clf = fitted(table)
    with pytest.raises(InputError, match=r"column 'city' holds the text ''.*missing='\?'"):
        clf.to_onnx()
    assert_alike(clf, table, feed(table, missing="?"), missing="?")


def test_the_sign_that_is_advised_is_none_of_the_categories() -> None:
    clf = fitted(pd.DataFrame({"city": ["?", "Rome", None] * 20, "answer": ["??", "", "no"] * 20}))
    with pytest.raises(InputError, match=r"'city' holds the text '\?'.*missing='\?\?\?'"):
        clf.to_onnx(missing="?")
    assert clf.to_onnx(missing="???")


@pytest.mark.parametrize("missing", [None, 0, b"", np.nan, pd.NA], ids=repr)
def test_the_sign_of_a_missing_text_is_text(missing: Any) -> None:
    with pytest.raises(InputError, match=r"missing is .* give one .* such as to_onnx\(missing='\?"):
        fitted(pd.DataFrame({"city": ["Oslo", "Rome", None] * 20})).to_onnx(missing=missing)


@pytest.mark.parametrize("labels", [["a", "a\0"], ["b", "\ud800"]])
def test_a_label_that_onnx_cannot_hold_is_refused(labels: list[str]) -> None:
    clf = fitted(pd.DataFrame({"a": np.arange(60.0)}), np.array(labels * 30, dtype=object))
    with pytest.raises(InputError, match="a label has a zero character"):
        clf.to_onnx()


@pytest.mark.parametrize("name", ["label", "probabilities", ""])
def test_a_column_that_is_called_like_an_output_is_refused(name: str) -> None:
    with pytest.raises(InputError, match=f"column {name!r} cannot be an input.*rename"):
        fitted(pd.DataFrame({name: np.arange(60.0)})).to_onnx()


@pytest.mark.parametrize("names_in", [["_0", "_1", "_2"], ["X", "rows", "a b/ü"]])
def test_other_names_never_meet_those_of_the_graph(names_in: list[str]) -> None:
    rng = np.random.default_rng(0)
    table = pd.DataFrame({name: rng.normal(size=60) for name in names_in})
    assert_alike(fitted(table), table, feed(table))


@pytest.mark.parametrize("text", ["a\0b", "\ud800"])
def test_text_that_onnx_cannot_hold_is_refused_with_its_column(text: str) -> None:
    table = {"city": [text, "Rome"] * 30}
    with pytest.raises(InputError, match="'city' has a zero character"):
        fitted(table).to_onnx()


def test_a_torch_net_is_refused_with_what_to_do() -> None:
    learner = TorchLearner(nn.Linear)
    X = np.random.default_rng(0).normal(size=(60, 2))
    clf = QuiltClassifier(learner=learner, max_epochs=2).fit(X, np.arange(60) % 2)
    with pytest.raises(LearnerError, match=r"TorchLearner.*torch\.onnx\.export"):
        clf.to_onnx()


def test_what_is_not_fitted_has_no_graph() -> None:
    with pytest.raises(NotFittedError):
        QuiltClassifier().to_onnx()


def test_without_the_extra_it_says_what_to_install() -> None:
    code = (
        "import sys; sys.modules['onnx'] = None\n"
        "from driftquilt.integrations.onnx import Graph\n"
        "try:\n    Graph([])\nexcept Exception as error:\n    print(error)\n"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "onnx is not installed; run: pip install 'driftquilt[onnx]'"


numbers = st.floats(-1e6, 1e6, width=32) | st.none()
texts = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1)
columns = {
    "numbers": numbers,
    "booleans": st.booleans(),
    "text": texts | st.none(),
    "dates": st.datetimes(dt.datetime(1700, 1, 1), dt.datetime(2200, 1, 1)) | st.none(),
    "times": st.times() | st.none(),
}


@st.composite
def tables(draw: st.DrawFn) -> pd.DataFrame:
    kinds = draw(st.lists(st.sampled_from(sorted(columns)), min_size=1, max_size=5))
    table = {}
    for number, kind in enumerate(kinds):
        values = draw(st.lists(columns[kind], min_size=12, max_size=12))
        present = [value for value in values if value is not None]
        if not present:  # which fit refuses
            continue
        dtype = "datetime64[us]" if kind == "dates" else float if kind == "numbers" else object
        table[f"{kind} {number}"] = pd.Series(values, dtype=dtype)
    return pd.DataFrame(table or {"x": np.arange(12.0)})


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(tables(), st.integers(2, 3))
def test_any_table_is_answered_as_the_classifier_does(table: pd.DataFrame, n_classes: int) -> None:
    clf = QuiltClassifier(hidden_units=4, max_epochs=2, n_folds=2, random_state=0)
    clf.fit(table.iloc[:8], np.arange(8) % n_classes)
    assert_alike(clf, table, feed(table))
