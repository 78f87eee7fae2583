"""A stream of numbers: the same engine and store, another task."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
import pyarrow as pa
import pytest

from driftquilt.data.frame import Frame
from driftquilt.errors import InputError
from driftquilt.quilt.regressor import QuiltRegressor
from driftquilt.store.memory import MemoryStore
from driftquilt.stream import Guard, QuiltStream, Workers
from driftquilt.stream.events import DriftFound, ModelPromoted
from driftquilt.stream.experts.labels import NumberHistory, with_number_columns
from driftquilt.stream.settings import LET_ALL_THROUGH
from driftquilt.stream.snapshot import NumberSnapshot
from tests.stream.streams import (
    ADWIN,
    TURN,
    estimator,
    hasty,
    learn,
    left,
    left_in,
    number_rows,
    regressor,
)
from tests.stream.test_restart import Crashes

ROWS = number_rows(300)


def start(store: Any = None, **settings: Any) -> QuiltStream:
    given: dict[str, Any] = {"estimator": regressor(), "wait": True, "train_budget": 150}
    return QuiltStream(store=store, **(given | settings))


def mean_error(stream: QuiltStream) -> float:
    error = stream.mean_absolute_error
    assert error is not None
    return error


@pytest.fixture(scope="module")
def learned() -> QuiltStream:
    return learn(start(), ROWS)


def test_learns_numbers_and_finds_where_they_changed(learned: QuiltStream) -> None:
    alone = mean_error(learn(start(panel="rows"), ROWS))
    spread = np.mean([abs(y - 100) for _, y in ROWS])
    assert mean_error(learned) < 0.8 * spread
    assert alone < 0.8 * spread
    drifts = [event.row for event in learned.events if isinstance(event, DriftFound)]
    assert any(TURN < row < TURN + 100 for row in drifts)
    assert learned.task == "regression"


def test_every_way_to_ask_gives_the_same_number(learned: QuiltStream) -> None:
    some = [x for x, _ in ROWS[:20]]
    answers = learned.predict_many(some)
    assert answers == [learned.predict_one(x) for x in some]
    snapshot = learned.snapshot()
    assert snapshot.labels(snapshot.predict(Frame.of_rows(some))) == answers
    assert all(type(answer) is float for answer in answers)


def test_before_the_first_row_there_is_no_number() -> None:
    stream = start()
    assert stream.predict_one({"a": 1.0}) is None
    assert stream.predict_many([{"a": 1.0}]) == [None]
    assert stream.mean_absolute_error is None
    stream.learn_one({"a": 1.0}, 7)
    assert stream.predict_one({"a": 1.0}) == 7.0


@pytest.mark.parametrize("label", ["12.5", "high", True, None, math.nan, math.inf, 1e200, [1.0]])
def test_what_is_no_number_is_refused_and_nothing_is_lost(label: Any) -> None:
    stream = learn(start(), ROWS[:40])
    before = left(stream)
    with pytest.raises(InputError, match="label"):
        stream.learn_one(ROWS[40][0], label)
    with pytest.raises(InputError, match="row 1"):
        stream.learn_many([ROWS[40][0], ROWS[41][0]], [1.0, label])
    stream.predict_one(ROWS[40][0], key="late")
    with pytest.raises(InputError, match="label"):
        stream.learn_one(y=label, key="late")
    stream.forget("late")
    assert left(stream) == before
    learn(stream, ROWS[40:60])
    assert stream.n_rows == 60


def test_classes_are_not_asked_for(learned: QuiltStream) -> None:
    with pytest.raises(InputError, match="numbers"):
        learned.predict_proba_one(ROWS[0][0])
    with pytest.raises(InputError, match="numbers"):
        learned.classifier()
    with pytest.raises(InputError, match="scoring"):
        start(scoring="f1")
    assert learned.classes == []
    assert learned.status().accuracy is None


def test_models_are_regressors_and_can_be_rolled_back_to() -> None:
    stream = learn(start(), ROWS[:200])
    first = stream.models[0]
    model = stream.fitted(first)
    assert isinstance(model, QuiltRegressor)
    assert np.isfinite(model.predict(pd.DataFrame([ROWS[0][0]]))).all()
    stream.roll_back(first)
    assert stream.model == first


def test_losses_of_models_are_distances_in_units_of_the_label(learned: QuiltStream) -> None:
    spread = float(np.mean([abs(y - 100) for _, y in ROWS]))
    promoted = [event for event in learned.events if isinstance(event, ModelPromoted)]
    assert all(0 < event.loss < 3 * spread for event in promoted)
    assert all((event.previous_loss or 0) < 3 * spread for event in promoted)


def test_another_unit_makes_no_difference() -> None:
    plain = learn(start(), ROWS[:250])
    large = learn(start(), [(x, 1e6 * y + 1e9) for x, y in ROWS[:250]])
    assert mean_error(large) / 1e6 == pytest.approx(mean_error(plain), rel=0.1)


def test_one_enormous_label_does_no_harm() -> None:
    stream = learn(start(), ROWS[:100])
    stream.learn_one(ROWS[100][0], 1e12)
    learn(stream, ROWS[101:140])
    answers = np.array([stream.predict_one(x) for x, _ in ROWS[101:140]])
    assert (np.abs(answers - 100) < 20).all()
    low, high = stream.predict_interval_one(ROWS[139][0]) or (0.0, 0.0)
    assert 0 < high - low < 60


def test_equal_numbers_are_answered_and_no_training_begins() -> None:
    stream = learn(start(), [(x, 5.0) for x, _ in ROWS[:80]])
    assert stream.predict_one(ROWS[0][0]) == 5.0
    assert stream.models == []
    with pytest.raises(InputError, match="nothing to adapt to"):
        stream.adapt()
    learn(stream, ROWS[80:140])
    assert stream.models != []


@pytest.mark.parametrize("panel", ["all", "rows"])
def test_crashes_change_nothing(tmp_path: Path, panel: str) -> None:
    whole = left(learn(start(MemoryStore(), panel=panel), ROWS))
    crashes = Crashes(tmp_path)
    stream = start(hasty(crashes.path), panel=panel, checkpoint_rows=40)
    for first in range(0, len(ROWS), 37):
        learn(stream, ROWS[first : first + 37])
        stream = crashes.crash(stream)
    assert crashes.left(stream) == whole


def test_a_detector_of_errors_and_one_model_alone() -> None:
    settings: dict[str, Any] = {"panel": "model", "guard": LET_ALL_THROUGH, "n_wait": 40}
    stream = learn(start(detector=ADWIN, refresh=None, **settings), number_rows(450))
    assert any(isinstance(event, DriftFound) for event in stream.events)
    guarded = learn(start(detector=ADWIN, guard=Guard(min_rows=30)), ROWS)
    assert guarded.model is not None


@pytest.fixture
def workers() -> Iterator[Workers]:
    made = Workers(1)
    yield made
    made.close()


def test_labels_that_come_late_and_trainings_elsewhere(tmp_path: Path, workers: Workers) -> None:
    with QuiltStream(regressor(), store=hasty(tmp_path / "s"), trainer=workers) as stream:
        for number, (x, _) in enumerate(ROWS[:120]):
            stream.predict_one(x, key=number)
            if number >= 10:
                stream.learn_one(y=ROWS[number - 10][1], key=number - 10)
        stream.finish_training()
        assert (stream.n_rows, stream.n_waiting) == (110, 10)
        assert stream.models != []
    with hasty(tmp_path / "s") as store:
        assert left_in(store)["record"]["champion"] is not None


def test_a_stream_of_classes_stays_one(tmp_path: Path) -> None:
    with QuiltStream(estimator(), store=hasty(tmp_path / "s"), wait=True) as stream:
        stream.learn_one({"a": 1.0}, 3)
        assert stream.task == "classification"
        assert stream.mean_absolute_error is None


def test_past_rows_have_the_columns_that_they_had_when_they_came() -> None:
    labels = [y for _, y in ROWS[:50]]
    history, shown = NumberHistory(), []
    for y in labels:
        shown.append(history.columns())
        history.learn(y)
    tables = [pa.table({"label": labels[:20]}), pa.table({"label": labels[20:]})]
    found = [row for table in with_number_columns(tables, "label") for row in table.to_pylist()]
    for row in found:
        del row["label"]
    assert [{n: v for n, v in row.items() if v is not None} for row in found] == shown


@pytest.mark.parametrize("coverage", [0.5, 0.8, 0.9])
def test_an_interval_holds_its_share_of_the_rows_to_come_through_a_drift(coverage: float) -> None:
    rows, inside = number_rows(800), []
    stream = start(train_budget=30)
    for x, y in rows:
        ends = stream.predict_interval_one(x, coverage)
        if ends is not None:
            inside.append(ends[0] <= y <= ends[1])
        stream.learn_one(x, y)
    assert len(inside) > 750
    assert np.mean(inside) == pytest.approx(coverage, abs=0.04)


def test_an_interval_takes_as_many_rows_as_its_coverage_asks_for() -> None:
    stream = start()
    known = []
    for number, (x, y) in enumerate(ROWS[:25]):
        known.append([stream.predict_interval_one(x, c) is not None for c in (0.5, 0.8, 0.9)])
        stream.learn_one(x, y)
        assert known[-1] == [number >= 4, number >= 10, number >= 20]


def test_intervals_are_the_same_after_a_restart(tmp_path: Path) -> None:
    with start(tmp_path / "store") as stream:
        learn(stream, ROWS[:120])
        before = stream.predict_interval_one(ROWS[120][0])
        snapshot = stream.snapshot()
        answers = snapshot.predict(Frame.of_rows([ROWS[120][0]]))
    with QuiltStream.open(tmp_path / "store") as again:
        assert again.predict_interval_one(ROWS[120][0]) == before
        learn(again, ROWS[120:160])
        assert again.predict_interval_one(ROWS[120][0]) != before
    assert isinstance(snapshot, NumberSnapshot)
    ends = snapshot.intervals(answers, 0.8)
    assert ends is not None
    assert tuple(ends[0]) == before  # a snapshot does not move


@pytest.mark.parametrize("coverage", [0.0, 1.0, 80, -0.1, math.nan, "0.8"])
def test_a_coverage_is_a_share(learned: QuiltStream, coverage: Any) -> None:
    with pytest.raises(InputError, match="coverage"):
        learned.predict_interval_one(ROWS[0][0], coverage)


def test_classes_have_no_intervals() -> None:
    with pytest.raises(InputError, match="predict_proba_one"):
        QuiltStream().predict_interval_one({"a": 1.0})
