"""The panel: how experts are weighed, what the last labels say, and evidence for a drift."""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from driftquilt.errors import InputError
from driftquilt.store.memory import MemoryStore
from driftquilt.stream import QuiltStream
from driftquilt.stream.columns import LABEL
from driftquilt.stream.events import DriftFound, ModelPromoted, SegmentSealed, read_event
from driftquilt.stream.experts.evidence import Evidence
from driftquilt.stream.experts.labels import LabelHistory, with_label_columns
from driftquilt.stream.experts.mixture import LOSS_MAX, FixedShare
from driftquilt.stream.settings import LET_ALL_THROUGH, Setup
from driftquilt.stream.training import Training
from tests.stream.streams import estimator, hasty, learn, left, rows, start

losses = st.floats(0, LOSS_MAX)


@settings(max_examples=60)
@given(st.lists(st.tuples(losses, losses, losses, st.booleans()), min_size=1, max_size=60))
def test_the_mixture_is_hardly_worse_than_any_expert(
    some: list[tuple[float, float, float, bool]],
) -> None:
    mixture = FixedShare(share=0.01)
    for name in "abc":
        mixture.add(name, 1 / (1 + len(mixture.weights)))
    total, alone = 0.0, dict.fromkeys("abc", 0.0)
    for *row, _ in some:
        given_losses = dict(zip("abc", row, strict=True))
        total -= math.log(sum(mixture.weights[n] * math.exp(-given_losses[n]) for n in "abc"))
        mixture.update(given_losses)
        alone = {name: alone[name] + given_losses[name] for name in "abc"}
    bound = math.log(3) - (len(some) - 1) * math.log(0.99)
    assert total <= min(alone.values()) + bound + 1e-9


@settings(max_examples=60)
@given(st.lists(st.tuples(losses, losses, st.booleans()), min_size=1, max_size=60))
def test_weights_add_up_to_one_and_none_is_ever_lost(
    some: list[tuple[float, float, bool]],
) -> None:
    mixture = FixedShare(share=0.01)
    for name in "abc":
        mixture.add(name, 0.4)
    for a, b, b_sleeps in some:
        before = dict(mixture.weights)
        mixture.update({"a": a, "c": 1.0} if b_sleeps else {"a": a, "b": b, "c": 1.0})
        assert sum(mixture.weights.values()) == pytest.approx(1, abs=1e-12)
        assert min(mixture.weights.values()) > 0.99 * 0.01 / 3
        if b_sleeps:
            assert mixture.weights["b"] == pytest.approx(0.99 * before["b"] + 0.01 / 3, abs=1e-12)


def test_an_expert_that_goes_leaves_its_part_to_the_others() -> None:
    mixture = FixedShare()
    for name in ("a", "b", "c"):
        mixture.add(name, 0.5)
    assert mixture.weights == {"a": 0.25, "b": 0.25, "c": 0.5}
    mixture.remove("c")
    mixture.remove("never there")
    assert mixture.weights == {"a": 0.5, "b": 0.5}


@given(st.lists(st.integers(0, 11), min_size=1, max_size=40), st.integers(1, 39))
def test_label_columns_of_a_table_are_those_of_the_live_rows(codes: list[int], cut: int) -> None:
    classes = [f"class {code}" for code in dict.fromkeys(codes)]
    names, history = [f"class {code}" for code in codes], LabelHistory()
    live = []
    for name in names:
        live.append(history.columns())
        history.learn(classes.index(name))
    parts = [pa.table({"label": part}) for part in (names[:cut], names[cut:]) if part]
    tables = with_label_columns(parts, "label", classes)
    stored = [row for table in tables for row in table.to_pylist()]
    for ours, theirs in zip(live, stored, strict=True):
        assert {name: theirs[name] for name in ours} == ours
        absent = {theirs[name] for name in theirs if name not in ours and name != "label"}
        assert absent <= {0.0, None}


def test_a_label_history_goes_on_where_it_was_packed() -> None:
    one, twin = LabelHistory(), LabelHistory()
    for code in (0, 1, 1, 2, 0):
        one.learn(code)
    twin.unpack(json.loads(json.dumps(one.pack())))
    for code in (1, 3, 0):
        assert one.columns() == twin.columns()
        assert one.answer(4).tobytes() == twin.answer(4).tobytes()
        one.learn(code)
        twin.learn(code)


def n_alarms(evidence: Evidence, seed: int, n_rows: int) -> int:
    """Alarms on errors at a constant rate, with another expert that is right as often as not."""
    draw, alarms = Random(seed).random, 0  # noqa: S311
    for row in range(n_rows):
        wrong = draw() < 0.1
        others = {"online": draw() < 0.5} if draw() < 0.2 else {}
        evidence.update(row, wrong=wrong, others=others)
        if evidence.drift_detected:
            alarms += 1
            evidence.restart()
    return alarms


def test_false_alarms_are_as_rare_as_promised() -> None:
    n_rows, rows_between = 20_000, 500
    found = sum(n_alarms(Evidence(rows=rows_between), seed, n_rows) for seed in range(5))
    assert found <= 5 * n_rows / rows_between


def test_evidence_grows_when_another_expert_is_right_where_they_disagree() -> None:
    evidence, draw = Evidence(rows=1_000), Random(0).random  # noqa: S311
    for row in range(2_000):
        others = {"online": draw() < (0.5 if row < 1_000 else 0.95)} if draw() < 0.2 else {}
        evidence.update(row, wrong=draw() < 0.1, others=others)
        if evidence.drift_detected:
            break
    assert 1_000 < row < 1_200
    assert evidence.winner == "online"
    assert 900 < evidence.began < 1_060


def test_what_the_evidence_is_set_up_with_is_checked() -> None:
    for wrong in ({"kind": "experts", "rows": 1}, {"kind": "experts", "delta": 0.1}):
        with pytest.raises(InputError, match="detector 'experts'"):
            QuiltStream(detector=wrong)
    with pytest.raises(InputError, match="experts"):
        QuiltStream.paper("experts")
    with pytest.raises(InputError, match="panel is 'none'"):
        QuiltStream(panel="none")


def panel(store: Any, **given_settings: Any) -> QuiltStream:
    return start(store, **{"detector": "experts", "n_wait": 20, "guard": None} | given_settings)


def test_a_panel_ends_in_the_same_bits_whenever_it_was_killed(tmp_path: Path) -> None:
    some = rows(420)
    undisturbed = left(learn(panel(MemoryStore(), max_models=5), some))
    assert len(undisturbed["segments"]) > 4
    assert any(e["event"] == DriftFound.__name__ for e in undisturbed["record"]["events"])
    stream, at = panel(hasty(tmp_path / "0"), max_models=5), 0
    for number, n_rows in enumerate((1, 19, 20, 33, 100, 157, 163, 164, 200, 340, 419, 420), 1):
        learn(stream, some[at:n_rows])
        at = n_rows
        shutil.copytree(tmp_path / str(number - 1), tmp_path / str(number))
        stream.store.close()
        stream = QuiltStream.open(hasty(tmp_path / str(number)))
        assert stream.n_rows == n_rows
    found = left(stream)
    for part in ("weights", "rows", "segments", "models"):
        assert found[part] == undisturbed[part], part
    assert found["record"]["learning"] == undisturbed["record"]["learning"]
    assert found["record"]["counters"] == undisturbed["record"]["counters"]
    stream.close()


def test_a_panel_trains_without_a_drift_and_says_why_it_stopped_a_segment() -> None:
    stream = learn(panel(None), rows(400))
    sealed = [event for event in stream.events if isinstance(event, SegmentSealed)]
    drifts = [event for event in stream.events if isinstance(event, DriftFound)]
    assert [event.first_row for event in sealed] == [
        sum(event.n_rows for event in sealed[:at]) for at in range(len(sealed))
    ]
    assert any(event.full for event in sealed)
    assert drifts
    for drift in drifts:
        assert drift.evidence is not None
        assert drift.evidence >= 10_000
        assert drift.began is not None
        assert drift.began <= drift.row
        assert read_event(json.loads(json.dumps(drift.to_json()))) == drift
    shares = stream.status().experts
    assert sum(shares.values()) == pytest.approx(1)
    assert len(stream.models) <= stream.settings.max_models


def test_predictions_are_those_that_are_scored() -> None:
    stream, some, right = panel(None), rows(260), 0
    for x, y in some:
        right += stream.predict_one(x) == y
        stream.learn_one(x, y)
    assert right == stream.n_right


def test_labels_that_follow_a_pattern_are_learned_from_the_labels_alone() -> None:
    draw = Random(0).random  # noqa: S311
    stream = panel(None, estimator=estimator(hidden_units=16))
    for turn in range(300):
        stream.learn_one({"noise": draw()}, ("a", "b")[turn % 2])
    assert stream.accuracy > 0.95
    assert stream._engine.learning.labels_help
    encoder = stream.classifier().encoder_
    assert encoder is not None
    assert any(name.startswith("last labels: ") for name in encoder.columns)


def test_the_budget_bounds_what_trainings_cost() -> None:
    lavish = learn(panel(None), rows(140))
    thrifty = learn(panel(None, train_budget=0), rows(140))
    n_models = [
        sum(isinstance(event, ModelPromoted) for event in stream.events)
        for stream in (lavish, thrifty)
    ]
    assert n_models == [n_models[0], 1]
    assert n_models[0] > 4


def test_a_stream_trusts_its_rows_without_a_look_at_how_segments_began() -> None:
    rng = np.random.default_rng(0)
    table = pa.table({"x": rng.random(80), LABEL: (rng.random(80) > 0.5).tolist()})
    model = Training(estimator(), 0, [], [table], ["now"])._fit()
    assert estimator().checks_openings
    assert not model.checks_openings


def test_rows_of_many_columns_cost_more_of_the_budget() -> None:
    rng = np.random.default_rng(0)

    def work(n_columns: int) -> int:
        columns = {f"x{j}": rng.random(80) for j in range(n_columns)}
        table = pa.table({**columns, LABEL: (rng.random(80) > 0.5).tolist()})
        twice = estimator(encode="standard", max_epochs=2)
        return Training(twice, 0, [], [table], ["now"]).run().work

    assert work(4) == work(100) > 0
    assert work(250) == 2.5 * work(4)


def test_the_paper_has_one_model_and_one_detector() -> None:
    quick = {"estimator": estimator(search="bayes", max_epochs=2)}
    assert QuiltStream.paper().settings.refresh is None
    setup = Setup.of(
        quick["estimator"], {"kind": "known", "points": [60]}, None, n_wait=30, refresh=None,
        panel="model", wait=True,
    )  # fmt: skip
    assert setup.panel == "model"
    stream = QuiltStream(
        quick["estimator"], {"kind": "known", "points": [60]}, n_wait=30, refresh=None,
        panel="model", wait=True, guard=LET_ALL_THROUGH,
    )  # fmt: skip
    learn(stream, rows(120))
    assert [event.row for event in stream.events if isinstance(event, ModelPromoted)] == [30, 91]
    assert list(stream.status().experts) == ["model 2"]
    x = rows(1)[0][0]
    alone = stream.classifier().predict_proba(pa.Table.from_pylist([{**x, "late": None}]))[0]
    answer = stream.predict_proba_one(x)
    assert [answer[label] for label in stream.classifier().classes_] == pytest.approx(
        alone.tolist(), abs=1e-5
    )
    assert np.isclose(sum(answer.values()), 1)
