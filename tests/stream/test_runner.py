"""The course of a stream: segments, trainings, bounds, guard, rollback, and rows in batches."""

from __future__ import annotations

import json
from typing import Any

import pytest

from driftquilt import QuiltClassifier
from driftquilt.errors import InputError
from driftquilt.stream import QuiltStream
from driftquilt.stream.events import (
    DriftFound,
    Event,
    ModelKept,
    ModelPromoted,
    ModelRolledBack,
    ModelTrained,
    SegmentDropped,
    SegmentSealed,
    TrainingFailed,
)
from driftquilt.stream.persistence import first_row
from driftquilt.stream.settings import LET_ALL_THROUGH, Guard
from tests.stream.streams import LabelledRow, as_stored, learn, left, rows, start, stored_rows

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")

ROWS = rows(400)
KNOWN = {"kind": "known", "points": [99, 199, 299]}


def of(stream: QuiltStream, *kinds: type[Event]) -> list[Any]:
    return [event for event in stream.events if type(event) in kinds]


def in_batches(stream: QuiltStream, some: list[LabelledRow], size: int) -> list[Event]:
    happened = []
    for first in range(0, len(some), size):
        batch = some[first : first + size]
        happened += stream.learn_many([x for x, _ in batch], [y for _, y in batch])
    return happened


def test_segments_end_at_drifts_and_hold_exactly_their_rows() -> None:
    stream = learn(start(detector=KNOWN), ROWS)
    store = stream.store
    assert [e.row for e in of(stream, DriftFound)] == [100, 200, 300]
    assert [(s.name, s.n_rows) for s in store.segments] == [(0, 100), (100, 100), (200, 100)]
    for segment in store.segments:
        first = first_row(segment)
        found = store.read(segment.number).to_pylist()
        kept = [{n: v for n, v in row.items() if v is not None} for row in found]
        assert kept == as_stored(ROWS[first : first + segment.n_rows])
    assert stored_rows(store) == as_stored(ROWS)
    assert store.n_open == 100


def test_a_model_is_trained_after_n_wait_rows_and_each_time_the_segment_has_grown() -> None:
    stream = learn(start(detector=KNOWN, n_wait=20, refresh=2.0), ROWS)
    assert [(e.row, e.n_current) for e in of(stream, ModelTrained)] == [
        (first + n, n) for first in (0, 100, 200, 300) for n in (20, 40, 80)
    ]
    once = learn(start(detector=KNOWN, n_wait=30, refresh=None), ROWS)
    assert [e.row for e in of(once, ModelTrained)] == [30, 130, 230, 330]


def test_events_come_from_the_call_that_brought_them() -> None:
    stream = start(detector=KNOWN, n_wait=30)
    happened = [event for x, y in ROWS for event in stream.learn_one(x, y)]
    assert tuple(happened) == stream.events
    again = start(detector=KNOWN, n_wait=30)
    assert list(again.run(ROWS)) == happened


@pytest.mark.parametrize("size", [2, 17, 150, 400])
def test_learning_many_is_learning_one_by_one(size: int) -> None:
    single, batched = start(checkpoint_rows=40), start(checkpoint_rows=40)
    happened = [event for x, y in ROWS for event in single.learn_one(x, y)]
    assert in_batches(batched, ROWS, size) == happened
    assert left(batched) == left(single)
    assert len(of(batched, DriftFound)) > 1


def test_the_order_of_keys_plays_no_part() -> None:
    turned = [(dict(reversed(x.items())), y) for x, y in ROWS]
    assert left(learn(start(), turned)) == left(learn(start(), ROWS))


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_tables_are_rows(frame: Any) -> None:
    plain = [({"a": x["a"], "b": x["b"], "city": x["city"]}, y) for x, y in ROWS[:120]]
    table = frame([x for x, _ in plain])
    labels = frame({"y": [y for _, y in plain]})["y"]
    stream = start(detector=KNOWN)
    stream.learn_many(table, labels)
    assert left(stream) == left(learn(start(detector=KNOWN), plain))
    assert stream.predict_many(table) == [stream.predict_one(x) for x, _ in plain]


@pytest.mark.parametrize("n_rows", [0, 1, 20, 130, 400])
@pytest.mark.parametrize("gaps", [False, True])
def test_predicting_many_answers_as_one_by_one(n_rows: int, gaps: bool) -> None:
    stream = learn(start(), ROWS[:n_rows])
    asked: list[dict[str, Any]] = [x for x, _ in rows(700, seed=3)]
    if gaps:  # in all shapes: columns never seen, categories never seen, nothing but gaps
        asked = [{n: v for n, v in x.items() if hash((n, k)) % 3} for k, x in enumerate(asked)]
        asked = [{"a": None, "city": "Bonn", "new": "x", **x} for x in asked]
        asked += [{"a": None}, {"city": None}, {"b": 1e30}, {"late": -1e30, "c": 5.0}] * (
            n_rows > 0
        )
    known = {"a", "b", "c", "city", "late"} if n_rows > 100 else {"a", "b", "c", "city"}
    asked = [x for x in asked if not n_rows or known & set(x)]
    before = left(stream) if n_rows else None
    assert stream.predict_many(asked) == [stream.predict_one(x) for x in asked]
    assert before is None or left(stream) == before


def test_predicting_many_names_the_row_that_cannot_be_used() -> None:
    stream = learn(start(), ROWS[:40])
    good = [x for x, _ in ROWS[:300]]
    for bad in ({"a": "text"}, None, {"a": object()}, {"A": 1.0}, {}):
        with pytest.raises(InputError, match=r"^row 299: "):
            stream.predict_many([*good[:299], bad])


def test_running_over_something_else_than_pairs_names_its_number() -> None:
    x, y = ROWS[2]
    for bad in (x, "ab", None, 5, (x,), (x, y, 1), {"a": 1.0, "b": 2.0}):
        stream = start()
        with pytest.raises(InputError, match="row 2: expected a pair"):
            list(stream.run([*ROWS[:2], bad]))  # type: ignore[list-item]
        assert stream.n_rows == 2
    with pytest.raises(InputError, match="row 1: a row is a dictionary"):
        list(start().run([ROWS[0], (5, "yes")]))
    with pytest.raises(InputError, match="got a int"):
        list(start().run(5))  # type: ignore[arg-type]
    assert list(start().run([list(pair) for pair in ROWS[:3]])) == []  # type: ignore[misc]


def test_a_batch_is_taken_whole_or_not_at_all() -> None:
    stream = learn(start(), ROWS[:50])
    before = json.dumps(left(stream)["record"])
    for bad in ({"a": "text"}, {"a": 1e60}, {"label": 1.0}, {"a": object()}):
        with pytest.raises(InputError):
            stream.learn_many([ROWS[50][0], bad], ["yes", "no"])
    with pytest.raises(InputError, match="row 1: the label is missing"):
        stream.learn_many([ROWS[50][0], ROWS[51][0]], ["yes", None])
    with pytest.raises(InputError, match="2 rows but 1 labels"):
        stream.learn_many([ROWS[50][0], ROWS[51][0]], ["yes"])
    assert stream.n_rows == 50
    assert json.dumps(left(stream)["record"]) == before
    assert stream.learn_many([], []) == []


def test_a_full_segment_is_sealed_without_a_drift() -> None:
    stream = learn(start(detector="never", segment_rows=60, n_wait=30), ROWS[:200])
    sealed = of(stream, SegmentSealed)
    assert [(e.row, e.n_rows, e.full) for e in sealed] == [(n, 60, True) for n in (60, 120, 180)]
    assert of(stream, DriftFound) == []


def test_a_segment_is_never_longer_than_it_may_be_however_often_the_detector_fires() -> None:
    every_row = {"kind": "every_rows", "n_rows": 1}
    stream = start(detector=every_row, segment_rows=40, guard=Guard(min_rows=1000))
    learn(stream, ROWS[:130])
    assert [e.n_rows for e in of(stream, SegmentSealed)] == [40, 40, 40]


def test_no_more_segments_and_rows_are_kept_than_allowed_and_what_goes_is_said() -> None:
    settings = {"detector": {"kind": "every_rows", "n_rows": 40}, "n_wait": 20, "refresh": None}
    stream = start(max_segments=3, segment_rows=100, max_rows=100, **settings)
    for at, (x, y) in enumerate(ROWS):
        before = {s.number: s.n_rows for s in stream.store.segments}
        happened = stream.learn_one(x, y)
        kept = {s.number: s.n_rows for s in stream.store.segments}
        assert len(kept) <= 3
        assert sum(kept.values()) <= 100
        told = {e.segment: e.n_rows for e in happened if isinstance(e, SegmentDropped)}
        assert told == {n: size for n, size in before.items() if n not in kept}, at
    assert len(of(stream, SegmentDropped)) == 8


def test_what_is_dropped_is_what_trainings_used_least() -> None:
    settings = {"detector": {"kind": "every_rows", "n_rows": 40}, "n_wait": 20, "refresh": None}
    stream = start(max_segments=3, guard=LET_ALL_THROUGH, **settings)
    used: dict[int, float] = {}
    for x, y in ROWS:
        for event in stream.learn_one(x, y):
            if isinstance(event, ModelTrained):
                used |= {n: (used[n] + weight) / 2 for n, weight in event.weights.items()}
            if isinstance(event, SegmentSealed):
                used[event.segment] = 1.0
            if isinstance(event, SegmentDropped):
                assert event.used == pytest.approx(used.pop(event.segment), abs=1e-6)
                assert event.used <= min(list(used.values())[:-1], default=1.0) + 1e-6
    assert len(of(stream, SegmentDropped)) == 7


def test_no_more_models_are_kept_than_allowed() -> None:
    stream = start(max_models=2, guard=LET_ALL_THROUGH)
    for x, y in ROWS:
        stream.learn_one(x, y)
        assert len(stream.models) <= 2
        assert stream.model in [None, *stream.models]
    assert stream.model is not None
    assert stream.models == [stream.model - 1, stream.model]


def test_the_guard_keeps_a_champion_that_is_better() -> None:
    stream = learn(start(detector="never", guard=Guard(margin=-0.99)), ROWS[:130])
    (promoted,) = of(stream, ModelPromoted)
    assert promoted.previous_loss is None
    kept = of(stream, ModelKept)
    assert len(kept) == 2
    assert all(e.loss > 0.01 * e.previous_loss for e in kept)
    assert (stream.model, stream.models) == (1, [1])


def test_the_guard_can_hold_drifts_back() -> None:
    settings = {"detector": {"kind": "every_rows", "n_rows": 40}}
    short = learn(start(**settings, guard=Guard(min_rows=60)), ROWS)
    assert [e.row for e in of(short, DriftFound)] == [80, 160, 240, 320, 400]
    cool = learn(start(**settings, guard=Guard(min_rows=0, cool_down=40)), ROWS)
    assert [e.row for e in of(cool, DriftFound)] == [80, 160, 240, 320, 400]


def test_a_rollback_brings_a_model_back_as_it_was_trained() -> None:
    stream = learn(start(guard=LET_ALL_THROUGH), ROWS[:250])
    assert stream.model == stream.models[-1] > 2
    stream.roll_back(2)
    assert stream.model == 2
    assert stream.events[-1] == ModelRolledBack(250, 2)
    learn(stream, ROWS[250:])
    assert stream.model == stream.models[-1] > 2
    for version in (99, "2", None):
        with pytest.raises(InputError, match="there is no model"):
            stream.roll_back(version)  # type: ignore[arg-type]


def test_a_version_is_a_classifier_of_its_own() -> None:
    stream = learn(start(), ROWS[:130])
    clf = stream.classifier(1)
    assert clf.classes_.tolist() == ["no", "yes"]
    assert clf.feature_names_in_.tolist() == ["a", "b", "c", "city"]
    assert clf.selection_.explain() == of(stream, ModelTrained)[0].explanation
    with pytest.raises(InputError, match="there is no model 99; there are"):
        stream.classifier(99)


def test_a_single_class_and_rows_without_columns_are_no_reason_to_train() -> None:
    stream = start(detector="never")
    for _ in range(70):
        stream.learn_one({"a": 1.0}, "yes")
    bare = start(detector="never")
    for turn in range(70):
        bare.learn_one({}, turn % 2)
    for one in (stream, bare):
        assert one.events == ()
        assert one.model is None
    assert bare.predict_one({}) in (0, 1)
    assert stream.predict_proba_one({"a": None, "b": 2.0}) == {"yes": 1.0}


def test_before_the_first_row_there_is_no_answer() -> None:
    stream = start()
    assert stream.predict_one({"a": 1.0}) is None
    assert stream.predict_proba_one({"a": 1.0}) == {}
    assert stream.predict_many([{}, {}]) == [None, None]
    assert (stream.accuracy, stream.n_rows, stream.classes, stream.models) == (0.0, 0, [], [])


def test_columns_and_classes_may_come_and_go() -> None:
    stream = start(detector={"kind": "every_rows", "n_rows": 60}, guard=LET_ALL_THROUGH)
    for turn in range(240):
        phase = turn // 60
        x = {f"column {phase}": float(turn % 7), f"text {phase % 2}": f"{turn % 3}"}
        always = {"always": float(turn % 2)}
        stream.learn_one(always | x if turn % 5 else always, f"class {turn % (phase + 1)}")
    assert stream.classes == ["class 0", "class 1", "class 2", "class 3"]
    assert of(stream, TrainingFailed) == []
    answer = stream.predict_proba_one({"column 0": 1.0, "never seen": 4.0, "text 0": "new"})
    assert list(answer) == stream.classes
    assert sum(answer.values()) == pytest.approx(1, abs=1e-4)


def test_a_training_that_fails_is_told_and_the_stream_goes_on() -> None:
    class Broken:
        def start(self, X: Any, n_classes: int, seed: int) -> Any:  # noqa: ARG002
            raise ZeroDivisionError("a bug of the user's")

        def restore(self, tensors: Any, n_classes: int) -> Any: ...

        def settings(self) -> dict[str, Any]:
            return {"kind": "broken"}

    stream = start(detector="never")
    stream._engine.setup.estimator.set_params(learner=Broken())
    learn(stream, ROWS[:70])
    first, second = of(stream, TrainingFailed)
    assert "a bug of the user's" in first.why
    assert (first.row, second.row) == (30, 60)
    assert stream.n_rows == 70
    assert stream.predict_one(ROWS[0][0]) in ("yes", "no")


def test_accuracy_counts_predictions_made_before_learning() -> None:
    stream, right = start(), 0
    for x, y in ROWS:
        right += stream.predict_one(x) == y
        stream.learn_one(x, y)
    assert stream.accuracy == pytest.approx(right / len(ROWS), abs=0.01)
    assert stream.accuracy > 0.6


def test_a_stream_draws_a_row_for_each_model_and_none_before_the_first() -> None:
    stream = QuiltStream(QuiltClassifier(random_state=0), "never", 40, wait=True)
    with pytest.raises(InputError, match="there is no model yet"):
        stream.plot()
    for number in range(80):
        stream.learn_one({"a": float(number % 7)}, number % 2)
    assert stream.plot().svg.count('class="name"') == len(stream.models)
    promoted = [event for event in stream.events if isinstance(event, ModelPromoted)]
    for event in promoted:
        assert f">model {event.model}, row {event.row}<" in stream.plot().svg
