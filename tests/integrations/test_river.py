"""Quilt obeys river's own contract, check by check, and is at home among river's parts."""

from __future__ import annotations

import copy
import math
import pickle
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
import polars as pl
import pytest
from river import base, compose, drift, ensemble, metrics, preprocessing
from river.checks import yield_checks
from river.evaluate import progressive_val_score

from driftquilt import InputError, QuiltRegressor, RiverQuilt, RiverQuiltRegressor
from driftquilt.stream.events import DriftFound, Event, ModelPromoted

Rows = list[tuple[dict[Any, Any], bool]]
NumberRows = list[tuple[dict[Any, Any], float]]
KINDS = (RiverQuilt, RiverQuiltRegressor)


def checks(kind: type[RiverQuilt | RiverQuiltRegressor]) -> Iterator[Any]:
    for params in kind._unit_test_params():
        model = kind(**params)
        for number, check in enumerate(yield_checks(model)):
            name = getattr(check, "__name__", "check").removeprefix("check_")
            yield pytest.param(model, check, id=f"{kind.__name__}-{number}-{name}")


def flow(n_rows: int, *, turn: int = 150) -> Rows:
    """Rows whose concept turns round every `turn` rows."""
    rng = np.random.default_rng(0)
    rows: Rows = []
    for row, (a, b) in enumerate(rng.normal(size=(n_rows, 2)).tolist()):
        x = {"a": a, "b": b, "city": ["Oslo", "Rome"][row % 2]}
        rows.append((x, (a > b) == (row // turn % 2 == 0)))
    return rows


def learned(model: RiverQuilt, rows: Rows) -> RiverQuilt:
    for x, y in rows:
        model.learn_one(x, y)
    return model


def small(detector: Any = "adwin", **params: Any) -> RiverQuilt:
    quick = {"n_wait": 40, "refresh": None, "hidden_units": 64, "seed": 0}
    return RiverQuilt(detector, **{**quick, **params})


def pickled(model: Any) -> Any:
    """As river's checks do it; the library itself never unpickles anything."""
    twin = pickle.loads(pickle.dumps(model))  # noqa: S301
    assert type(twin) is type(model)
    return twin


def kinds(model: RiverQuilt | RiverQuiltRegressor) -> list[type[Event]]:
    return [type(event) for event in model.stream.events]


def foreseen(model: Any, rows: Rows, **how: Any) -> float:
    """The share of rows that river's own evaluation finds predicted right."""
    accuracy = metrics.Accuracy()  # type: ignore[no-untyped-call]
    return float(progressive_val_score(rows, model, accuracy, **how).get())


class Streak:
    """A detector of the user's own: so many errors in a row."""

    def __init__(self) -> None:
        self.n_wrong = 0

    @property
    def drift_detected(self) -> bool:
        return self.n_wrong >= 5

    def update(self, wrong: float) -> None:
        self.n_wrong = self.n_wrong + 1 if wrong else 0


@pytest.mark.parametrize(("model", "check"), [one for kind in KINDS for one in checks(kind)])
def test_check_of_river_holds(model: Any, check: Callable[[Any], None]) -> None:
    check(model.clone())


@pytest.mark.parametrize(("kind", "least"), [(RiverQuilt, 60), (RiverQuiltRegressor, 27)])
def test_no_check_of_river_is_skipped(kind: Any, least: int) -> None:
    assert kind()._unit_test_skips() == set()
    assert len(list(checks(kind))) >= least


def test_in_a_pipeline_it_gets_over_a_drift_under_rivers_own_evaluation() -> None:
    rows = flow(600, turn=300)
    model = compose.Discard("city") | preprocessing.StandardScaler() | small()
    accuracy, quilt = foreseen(model, rows), model["RiverQuilt"]
    assert DriftFound in kinds(quilt)
    assert accuracy == pytest.approx(quilt.stream.accuracy, abs=1 / 600)  # the first row
    right = [model.predict_one(x) == y for x, y in rows[-100:]]
    assert np.mean(right) > 0.9


def test_labels_may_come_late_under_rivers_own_evaluation() -> None:
    rows = [({**x, "at": row}, y) for row, (x, y) in enumerate(flow(200))]
    model = compose.Discard("at") | small()
    assert foreseen(model, rows, moment="at", delay=lambda _x, _y: 20) > 0.6
    assert model["RiverQuilt"].stream.n_rows == 200


def test_two_of_one_seed_give_the_same_answers_and_another_seed_does_not() -> None:
    rows = flow(120)
    one, other, third = (learned(small(seed=seed), rows) for seed in (1, 1, 2))
    x = {"a": 0.3, "b": 0.1}
    assert one.predict_proba_one(x) == other.predict_proba_one(x) != third.predict_proba_one(x)


@pytest.mark.parametrize("to_table", [pd.DataFrame, pl.DataFrame, list], ids=lambda t: t.__module__)
def test_learning_a_table_is_learning_its_rows(to_table: Callable[[Any], Any]) -> None:
    rows = flow(120, turn=50)
    batched = small()
    for first in range(0, 120, 30):
        xs, ys = zip(*rows[first : first + 30], strict=True)
        batched.learn_many(to_table(list(xs)), pd.Series(ys))
    one_by_one = learned(small(), rows)
    assert ModelPromoted in kinds(batched)
    assert batched.stream.events == one_by_one.stream.events
    x = {"a": 0.3, "b": 0.1}
    assert batched.predict_proba_one(x) == one_by_one.predict_proba_one(x)


def test_a_pandas_table_is_answered_with_its_index() -> None:
    model = learned(small(), flow(60))
    X = pd.DataFrame([x for x, _ in flow(5)], index=list("vwxyz"))
    labels, shares = model.predict_many(X), model.predict_proba_many(X)
    assert list(labels.index) == list(shares.index) == list("vwxyz")
    assert labels.tolist() == [model.predict_one(x) for x, _ in flow(5)]
    assert shares.to_dict("records") == [model.predict_proba_one(x) for x, _ in flow(5)]


def test_a_polars_table_is_answered_with_polars() -> None:
    model = learned(small(), flow(60))
    X = pl.DataFrame([x for x, _ in flow(5)])
    assert model.predict_many(X).to_list() == [model.predict_one(x) for x, _ in flow(5)]
    assert model.predict_proba_many(X).columns == [str(label) for label in model.stream.classes]


def test_before_the_first_row_there_is_no_answer() -> None:
    X = pd.DataFrame([x for x, _ in flow(3)])
    assert small().predict_one({"a": 1.0}) is None
    assert small().predict_proba_one({"a": 1.0}) == {}
    assert small().predict_many(X).tolist() == [None] * 3
    assert small().predict_proba_many(X).shape == (3, 0)


@pytest.mark.parametrize(
    "labels", [[True, False], [np.True_, np.False_], [3, 1, 2], ["a", "b"]], ids=str
)
def test_labels_come_back_as_plain_values_that_metrics_know(labels: list[Any]) -> None:
    model, matrix = small(), metrics.ConfusionMatrix()  # type: ignore[no-untyped-call]
    for row in range(30):
        y = labels[row % len(labels)]
        answer = model.predict_one({"row": row})
        if answer is not None:
            matrix.update(y, answer)  # type: ignore[no-untyped-call]
        model.learn_one({"row": row}, y)
    assert model.stream.classes == labels
    assert {type(label) for label in model.stream.classes} <= {bool, int, str}
    assert matrix.n_samples == 29


def test_shares_add_up_to_one_in_double_precision() -> None:
    model = small()
    for x, y in flow(120):
        model.learn_one(x, y)
        assert math.isclose(sum(model.predict_proba_one(x).values()), 1, rel_tol=1e-12)


def test_the_order_of_features_plays_no_part() -> None:
    rows = flow(120)
    turned = [(dict(reversed(x.items())), y) for x, y in rows]
    one, other = learned(small(), rows), learned(small(), turned)
    assert ModelPromoted in kinds(one)
    assert one.predict_proba_one(rows[0][0]) == other.predict_proba_one(turned[0][0])


@pytest.mark.parametrize(
    ("detector", "copied"),
    [
        ("kswin", copy.deepcopy),
        ({"kind": "every_rows", "n_rows": 70}, pickled),
        (drift.binary.HDDMW(), copy.deepcopy),  # type: ignore[no-untyped-call]
        (drift.KSWIN(), pickled),  # draws a seed of its own
    ],
    ids=["name", "settings", "hddm_w", "kswin"],
)
def test_a_copy_goes_on_as_its_original(
    detector: Any, copied: Callable[[RiverQuilt], RiverQuilt]
) -> None:
    rows = flow(330, turn=110)
    model = learned(small(detector), rows[:190])
    twin = copied(model)
    assert twin.stream.events == model.stream.events
    for x, y in rows[190:]:
        assert twin.predict_proba_one(x) == model.predict_proba_one(x)
        twin.learn_one(x, y)
        model.learn_one(x, y)
    assert twin.stream.events == model.stream.events
    assert kinds(model).count(DriftFound) > 1


def test_a_copy_shares_nothing_with_its_original() -> None:
    rows = flow(100)
    model = learned(small(), rows[:50])
    before = pickle.dumps(model)
    learned(copy.deepcopy(model), rows[50:])
    assert pickle.dumps(model) == before


def test_a_detector_of_your_own_works_and_stays_as_it_was_given() -> None:
    given = Streak()
    model = learned(small(given), flow(200, turn=120))
    assert kinds(model).count(DriftFound) == 1
    assert given.n_wrong == 0
    assert model.clone().stream.n_rows == 0
    assert copy.deepcopy(model).stream.events == model.stream.events


def test_models_of_river_can_be_made_of_it() -> None:
    bagging = ensemble.BaggingClassifier(small(seed=None), n_models=2, seed=0)
    assert foreseen(bagging, flow(120)) > 0.6
    assert [model.stream.n_rows > 60 for model in bagging.models] == [True, True]


def test_past_segments_are_kept_up_to_the_bound() -> None:
    model = learned(small("never", max_segments=2), flow(40))
    assert model.stream.store.segments == ()
    model = learned(small({"kind": "every_rows", "n_rows": 100}, max_segments=2), flow(410))
    assert [segment.n_rows for segment in model.stream.store.segments] == [100, 100]


def test_what_is_trained_has_the_hidden_units_that_were_asked_for() -> None:
    assert learned(small(hidden_units=99), flow(40)).stream.classifier().hidden_units == 99


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        ([1.0, 2.0], True, "a row is a dictionary"),
        ({"a": object()}, True, "column 'a' holds a object"),
        ({"a": "far"}, True, "it has held numbers so far"),
        ({"a": 1.0}, None, "the label is missing"),
        ({"a": 1.0}, "yes", "labels have been booleans so far"),
    ],
)
def test_what_cannot_be_learned_is_an_error_and_changes_nothing(
    x: Any, y: Any, message: str
) -> None:
    model = learned(small(), flow(20))
    before = pickle.dumps(model)
    with pytest.raises(InputError, match=message):
        model.learn_one(x, y)
    assert pickle.dumps(model) == before


@pytest.mark.parametrize("params", [{"n_wait": 1}, {"refresh": 0.5}, {"detector": "adwim"}])
def test_wrong_parameters_are_refused_at_once(params: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        RiverQuilt(**params)


def number_flow(n_rows: int, *, turn: int = 150) -> NumberRows:
    """Rows whose numbers turn round every `turn` rows."""
    rng = np.random.default_rng(0)
    rows: NumberRows = []
    for row, (a, b) in enumerate(rng.normal(size=(n_rows, 2)).tolist()):
        way = 1 if row // turn % 2 == 0 else -1
        rows.append(({"a": a, "b": b, "city": ["Oslo", "Rome"][row % 2]}, 50 + way * (8 * a - b)))
    return rows


def small_regressor(detector: Any = "adwin", **params: Any) -> RiverQuiltRegressor:
    return RiverQuiltRegressor(
        detector, **{"n_wait": 40, "refresh": None, "hidden_units": 64, "seed": 0, **params}
    )


def number_learned(model: RiverQuiltRegressor, rows: NumberRows) -> RiverQuiltRegressor:
    for x, y in rows:
        model.learn_one(x, y)
    return model


def error_of(model: Any, rows: NumberRows) -> float:
    """How far off the answers are in river's own evaluation."""
    error = metrics.MAE()  # type: ignore[no-untyped-call]
    return float(progressive_val_score(rows, model, error).get())


def test_numbers_in_a_pipeline_get_over_a_drift_under_rivers_own_evaluation() -> None:
    rows = number_flow(600, turn=300)
    model = compose.Discard("city") | preprocessing.StandardScaler() | small_regressor("experts")
    error, quilt = error_of(model, rows), model["RiverQuiltRegressor"]
    assert isinstance(quilt, RiverQuiltRegressor)
    assert not isinstance(quilt, base.Classifier)
    assert DriftFound in kinds(quilt)
    spread = float(np.mean([abs(y - 50) for _, y in rows]))
    assert error < 0.3 * spread
    late = [abs(model.predict_one(x) - y) for x, y in rows[-100:]]
    assert np.mean(late) < 0.3 * spread
    assert isinstance(quilt.stream.fitted(), QuiltRegressor)


def test_river_measures_the_error_that_the_stream_reports() -> None:
    model, rows = small_regressor(), number_flow(120)
    error, own = error_of(model, rows), model.stream.mean_absolute_error
    assert own is not None
    # River counts the first row as well, which is answered by 0.
    assert error == pytest.approx((abs(rows[0][1]) + 119 * own) / 120)


def test_before_the_first_row_the_number_is_zero_as_of_rivers_regressors() -> None:
    X = pd.DataFrame([x for x, _ in number_flow(3)])
    assert small_regressor().predict_one({"a": 1.0}) == 0.0
    assert small_regressor().predict_many(X).tolist() == [0.0] * 3


def test_models_of_river_can_be_made_of_regressors() -> None:
    rows = number_flow(120)
    bagging = ensemble.BaggingRegressor(small_regressor(seed=None), n_models=2, seed=0)
    scaled = preprocessing.TargetStandardScaler(regressor=small_regressor())
    spread = float(np.mean([abs(y - 50) for _, y in rows]))
    assert error_of(bagging, rows) < spread
    assert error_of(scaled, rows) < spread


@pytest.mark.parametrize("to_table", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_learning_a_table_of_numbers_is_learning_its_rows(to_table: Callable[[Any], Any]) -> None:
    rows = number_flow(120, turn=50)
    batched = small_regressor()
    for first in range(0, 120, 30):
        xs, ys = zip(*rows[first : first + 30], strict=True)
        batched.learn_many(to_table(list(xs)), pd.Series(ys))
    one_by_one = number_learned(small_regressor(), rows)
    assert ModelPromoted in kinds(batched)
    assert batched.stream.events == one_by_one.stream.events
    answers = list(batched.predict_many(to_table([x for x, _ in rows[:5]])))
    assert answers == [one_by_one.predict_one(x) for x, _ in rows[:5]]


@pytest.mark.parametrize("copied", [copy.deepcopy, pickled], ids=["copy", "pickle"])
def test_a_copy_of_a_regressor_goes_on_as_its_original(copied: Callable[[Any], Any]) -> None:
    rows = number_flow(260, turn=110)
    model = number_learned(small_regressor("kswin"), rows[:190])
    twin = copied(model)
    for x, y in rows[190:]:
        assert twin.predict_one(x) == model.predict_one(x)
        twin.learn_one(x, y)
        model.learn_one(x, y)
    assert twin.stream.events == model.stream.events


@pytest.mark.parametrize("y", ["12", True, None, math.nan, math.inf])
def test_what_is_no_number_is_an_error_and_changes_nothing(y: Any) -> None:
    model = number_learned(small_regressor(), number_flow(20))
    before = pickle.dumps(model)
    with pytest.raises(InputError, match="label"):
        model.learn_one({"a": 1.0}, y)
    assert pickle.dumps(model) == before
