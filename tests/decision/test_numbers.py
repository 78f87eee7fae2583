"""A decision about numbers: the same steps, other figures."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn import metrics
from sklearn.linear_model import LinearRegression

from driftquilt import QuiltRegressor, QuiltSelector
from driftquilt.decision.cutting import by_column
from driftquilt.decision.data_check import check_data
from driftquilt.decision.deciding import decide
from driftquilt.decision.decision import Decision, read_decision, write_decision
from driftquilt.decision.measure import MethodScore, NumberQuality
from driftquilt.decision.scoring import NumberScorer, Trial
from driftquilt.errors import InputError
from driftquilt.quilt.metrics import NumberMetric, NumberPredictions, find_number_metric
from tests.decision.tables import price_table, small, small_regressor, tiny

PRICES = price_table()


def select(table: pa.Table = PRICES, **settings: Any) -> Decision:
    given: dict[str, Any] = {"drop": ["month"], "estimator": small_regressor()} | settings
    return decide(table, "price", by_column(table, "month"), **given)


def quality(method: MethodScore) -> NumberQuality:
    assert isinstance(method.quality, NumberQuality)
    return method.quality


@pytest.fixture(scope="module")
def decision() -> Decision:
    return select()


def test_what_agrees_is_used_and_measured_in_the_unit_of_the_label(decision: Decision) -> None:
    assert (decision.task, decision.classes, decision.threshold) == ("numbers", (), None)
    assert [use.used for use in decision.selection] == [False, True]
    quilt, everything, alone = decision.methods
    assert (quilt.name, everything.name, alone.name) == ("Quilt", "all data", "current only")
    assert decision.metric == "neg_mean_absolute_error"
    assert everything.verdict == "better"
    assert (decision.advice.action, decision.advice.metric) == ("promote", decision.metric)
    assert decision.of_past["April"] > 3 * decision.of_past["May"]
    assert (quilt.n_rows, quilt.n_right, quilt.accuracy) == (60, None, None)
    assert "the mean absolute error of Quilt is" in decision.sentences()[1]
    assert "right" not in " ".join(decision.sentences())


def test_figures_are_those_of_the_written_model(decision: Decision, tmp_path: Path) -> None:
    out = write_decision(decision, PRICES, tmp_path / "out")
    model = read_decision(out).model
    assert isinstance(model, QuiltRegressor)
    assert decision.layout is not None
    rows = PRICES.take(pa.array(decision.layout.held_out))
    y, answers = rows["price"].to_numpy(), model.predict(rows.select(["size", "floor"]))
    ends = model.predict_interval(rows.select(["size", "floor"]))
    found = quality(decision.methods[0])
    assert found.mae == pytest.approx(metrics.mean_absolute_error(y, answers))
    assert found.rmse == pytest.approx(metrics.root_mean_squared_error(y, answers))
    assert found.r2 == pytest.approx(metrics.r2_score(y, answers))
    assert found.bias == pytest.approx((y - answers).mean())
    assert found.coverage == pytest.approx(((ends[:, 0] <= y) & (y <= ends[:, 1])).mean())
    assert decision.methods[0].shown_score.value == pytest.approx(found.mae)
    assert [part.last for part in found.stretches] == [20, 40, 60]
    assert np.mean([part.error for part in found.stretches]) == pytest.approx(found.mae, rel=1e-4)
    selected = pq.read_table(out / "selected.parquet")
    assert set(selected["driftquilt_segment"].to_pylist()) == {"May", "June"}
    assert "driftquilt_weight" in selected.column_names


def test_it_survives_json(decision: Decision) -> None:
    again = Decision.from_json(json.loads(json.dumps(decision.to_json())))
    assert again.methods == decision.methods
    assert again.to_json() == decision.to_json()
    assert {line["correct"] for line in again.past()} == {None}
    assert [line["error"] for line in again.past()] == [*decision.of_past.values()]


def test_the_constant_answer_is_the_median_and_beats_what_has_learned_nothing() -> None:
    rng = np.random.default_rng(0)
    noise = PRICES.set_column(2, "price", pa.array(rng.normal(500, 10, len(PRICES))))
    found = select(noise)
    assert found.constant is not None
    assert found.constant.n_right is None
    assert found.layout is not None
    prices = noise["price"].to_numpy()
    middle = np.median(prices[found.layout.current])
    assert found.constant.score == pytest.approx(
        np.abs(prices[found.layout.held_out] - middle).mean()
    )
    assert found.advice.action == "collect-more"


@pytest.mark.parametrize("name", ["rmse", "r2", "neg_median_absolute_error", "pinball", "mape"])
def test_methods_are_compared_by_any_metric_of_numbers(name: str) -> None:
    found = select(scoring=name)
    metric = find_number_metric(name)
    quilt, everything, _ = found.methods
    assert found.metric == metric.name == quilt.shown_score.metric
    assert quilt.shown_score.lower_is_better is metric.is_loss
    ends = quilt.shown_score.interval
    assert ends is not None
    assert quilt.shown_score.value is not None
    assert ends[0] < quilt.shown_score.value < ends[1]
    assert everything.verdict == "better"


@pytest.mark.parametrize("kind", ["lightgbm", "hgb", "auto"])
def test_a_booster_is_a_regressor(kind: str, tmp_path: Path) -> None:
    found = select(model=kind)
    assert found.task == "numbers"
    assert found.methods[1].verdict == "better"
    write_decision(found, PRICES, tmp_path / "out")
    model, again = found.model, read_decision(tmp_path / "out").model
    rows = PRICES.select(["size", "floor"])
    assert model is not None
    assert again is not None
    np.testing.assert_allclose(again.predict(rows), model.predict(rows))
    assert (set(found.choice) == {"net", "hgb"}) == (kind == "auto")
    if isinstance(model, QuiltSelector):
        assert [quality(method).coverage for method in found.methods] == [None] * 3


def test_your_own_regressor_is_selected() -> None:
    found = select(estimator=QuiltSelector(LinearRegression(), quilt=small_regressor()))
    assert found.kind == "LinearRegression"
    assert found.methods[1].verdict == "better"
    assert found.methods[2].validation is not None


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"scoring": "roc_auc"}, "metric of classes"),
        ({"scoring": {("a", "b"): 1.0}}, "costs"),
        ({"estimator": None, "class_weight": "balanced"}, "class weights are for classes"),
        ({"estimator": small()}, "give a QuiltRegressor"),
        ({"task": "classes"}, "looks like an amount"),
        ({"scoring": "pinball", "model": "lightgbm"}, "scores intervals"),
        ({"incumbent": "price"}, "is the label"),
        ({"incumbent": "month"}, "holds string"),
    ],
)
def test_what_has_no_meaning_is_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        select(**settings)


def test_classes_have_no_metric_of_numbers() -> None:
    table = PRICES.append_column("dear", pa.array(PRICES["price"].to_numpy() > 1_000))
    with pytest.raises(InputError, match="r2 is a metric of numbers"):
        decide(table, "dear", by_column(table, "month"), estimator=tiny(), scoring="r2")


@pytest.mark.parametrize(("noise", "action"), [(200.0, "promote"), (0.0, "keep-incumbent")])
def test_the_model_in_use_is_compared(noise: float, action: str) -> None:
    rng = np.random.default_rng(0)
    guess = PRICES["price"].to_numpy() + rng.normal(0, noise, len(PRICES))
    found = select(PRICES.append_column("today", pa.array(guess)), incumbent="today")
    assert found.methods[-1].name == "incumbent"
    assert found.advice.action == action
    assert "today" not in [column.name for column in found.columns if column.used]


def test_an_incumbent_without_intervals_is_compared_by_its_error() -> None:
    table = PRICES.append_column("today", pa.array(PRICES["price"].to_numpy() + 300))
    found = select(table, incumbent="today", scoring="pinball")
    old = found.methods[-1]
    assert old.shown_score.value is None
    assert old.comparison.metric == "neg_mean_absolute_error"
    assert any("no intervals" in note for note in found.warnings)


def test_missing_numbers_are_left_out_and_strange_ones_are_told() -> None:
    texts = [f"{price:.2f}" for price in PRICES["price"].to_pylist()]
    texts[10:13] = ["n/a", "on request", ""]
    texts[20:30] = ["999999"] * 10
    table = PRICES.set_column(2, "price", pa.array(texts))
    found = {f.kind: f for f in check_data(table, "price", table["month"], drop=["month"])}
    assert "text such as 'n/a', 'on request'" in found["label_text"].sentence
    assert found["unlabelled"].figures == {"rows": 3}
    assert found["sentinel"].sentence.startswith("label 'price' is 999999 in 10")


def test_a_column_that_is_made_from_the_numbers_is_told_and_a_good_one_is_not() -> None:
    rng = np.random.default_rng(0)
    price = PRICES["price"].to_numpy()
    table = PRICES.append_column("taxed", pa.array(1.2 * price + 3))
    table = table.append_column("before", pa.array(price + rng.normal(0, 0.3 * price.std(), 1000)))
    found = check_data(table, "price", table["month"], drop=["month"])
    assert [f.column for f in found if f.kind == "label_leak"] == ["taxed"]


def test_a_paired_bootstrap_tells_equal_models_seldom_apart() -> None:
    n_clear = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        y = rng.normal(size=200)
        models = {name: NumberPredictions(y + rng.normal(size=200)) for name in ("a", "b")}
        trial = Trial(NumberScorer(NumberMetric("neg_mean_absolute_error")), y, models)
        n_clear += trial.compare("a", "b").verdict != "no clear difference"
    assert n_clear <= 6  # 5 % of 40 are 2


def test_bike_is_a_regression() -> None:
    folder = os.environ.get("DRIFTQUILT_DATA")
    if folder is None:
        pytest.skip("DRIFTQUILT_DATA is not set")
    table = pq.read_table(Path(folder) / "tables" / "bike.parquet")
    coverages = []
    for current in (20, 21, 22):
        recent = table.filter(
            (pa.compute.field("segment") > current - 9) & (pa.compute.field("segment") <= current)
        )
        settings: dict[str, Any] = {"drop": ["segment", "dteday"], "current": current}
        found = decide(recent, "label", by_column(recent, "segment"), **settings)
        assert found.task == "numbers"
        quilt = quality(found.methods[0])
        assert found.constant is not None
        assert found.constant.score is not None
        assert quilt.mae < 0.8 * found.constant.score
        coverages.append(quilt.coverage or 0.0)
    assert 0.7 < np.mean(coverages) < 0.9  # of intervals for 80 %; a month alone may miss by far
