"""A stream says in one line how it stands, and when there will be a model if there is none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from driftquilt.errors import InputError
from driftquilt.store.memory import MemoryStore
from driftquilt.stream import QuiltStream
from driftquilt.stream.events import ModelTrained
from tests.stream.streams import hasty, learn, rows, start
from tests.stream.test_background import gated

ROWS = rows(140)
KNOWN = {"kind": "known", "points": [79]}


def test_a_stream_is_shown_in_one_line(tmp_path: Path) -> None:
    assert repr(start()) == (
        "<QuiltStream: 0 rows, accuracy 0.000, 0 past segments, no model yet, not training>"
    )
    stream = learn(start(hasty(tmp_path), detector=KNOWN), ROWS)
    expected = (
        f"<QuiltStream: 140 rows, accuracy {stream.accuracy:.3f}, 1 past segment, "
        f"model {stream.model}, not training>"
    )
    assert repr(stream) == expected
    stream.close()
    assert repr(stream) == expected
    with QuiltStream.open(hasty(tmp_path)) as again:
        assert repr(again) == expected


def test_a_training_under_way_is_shown_and_is_when_there_will_be_a_model() -> None:
    stream, learner = gated()
    learn(stream, ROWS[:30])
    assert repr(stream).endswith("no model yet, training>")
    with pytest.raises(InputError, match=r"is being trained; finish_training\(\) waits for it"):
        stream.classifier()
    learner.gate.set()
    stream.finish_training()
    assert repr(stream).endswith("model 1, not training>")
    assert stream.classifier().classes_.tolist() == ["no", "yes"]


def test_before_the_first_model_it_is_said_when_there_will_be_one() -> None:
    stream = start(detector="never", n_wait=30, refresh=None)
    with pytest.raises(InputError, match=r"30 rows .* 30 from now$"):
        stream.classifier()
    learn(stream, ROWS[:12])
    with pytest.raises(InputError, match=r"no model yet: .* 30 rows .*, 18 from now$"):
        stream.classifier()


def test_a_single_class_is_named_as_the_reason() -> None:
    stream = start(detector="never", n_wait=30)
    for _ in range(40):
        stream.learn_one({"a": 1.0}, "yes")
    wrong = r"when 60 rows .* 20 from now, and rows of two classes, but all so far are 'yes'"
    with pytest.raises(InputError, match=wrong):
        stream.classifier()
    once = start(detector="never", n_wait=30, refresh=None)
    for _ in range(40):
        once.learn_one({"a": 1.0}, "yes")
    with pytest.raises(InputError, match="the next training comes after a drift"):
        once.classifier()


def test_of_rows_learned_at_once_comes_one_training_at_most() -> None:
    stream, todo = start(detector=KNOWN, refresh=1.3), ROWS
    n_trained = 0
    while todo:
        some, todo = todo[: stream.n_at_once], todo[stream.n_at_once :]
        assert some
        events = stream.learn_many([x for x, _ in some], [y for _, y in some])
        trained = [event for event in events if isinstance(event, ModelTrained)]
        assert [event.row for event in trained] in ([], [stream.n_rows])
        n_trained += len(trained)
    assert n_trained > 4
    assert start(detector="never", refresh=None).n_at_once == 30


def test_waiting_for_trainings_is_kept_in_the_store() -> None:
    for wait in (True, False):
        store = MemoryStore()
        learn(start(store, wait=wait), ROWS[:5])
        assert QuiltStream.open(store)._engine.setup.wait is wait
        assert QuiltStream.open(store, wait=not wait)._engine.setup.wait is not wait
        assert QuiltStream.open(store)._engine.setup.wait is not wait  # as it was last


def test_a_stream_opened_again_waits_as_before(tmp_path: Path) -> None:
    learn(start(hasty(tmp_path), detector="never"), ROWS[:29]).close()
    with QuiltStream.open(hasty(tmp_path)) as again:
        learn(again, ROWS[29:30])
        assert (again.model, again.training) == (1, False)


def test_a_store_that_does_not_say_whether_to_wait_does_not() -> None:
    store = MemoryStore()
    learn(start(store), ROWS[:5])
    kept = store.state["stream"]
    store.write_state({"stream": {name: kept[name] for name in kept if name != "wait"}})
    assert QuiltStream.open(store)._engine.setup.wait is False


@pytest.mark.parametrize("wrong", ["yes", 1, 0.0])
def test_waiting_is_true_or_false(wrong: object) -> None:
    with pytest.raises(InputError, match=r"wait is .*; it takes True or False"):
        start(wait=wrong)
    store = MemoryStore()
    learn(start(store), ROWS[:5])
    with pytest.raises(InputError, match=r"wait is .*; it takes True or False"):
        QuiltStream.open(store, wait=wrong)  # type: ignore[arg-type]


def test_a_status_is_one_value_until_something_changes(tmp_path: Path) -> None:
    stream = start(hasty(tmp_path), detector=KNOWN)
    learn(stream, ROWS[:100])
    before = stream.status()
    assert before is stream.status()
    assert (before.n_rows, before.n_segments, before.n_drifts, before.last_drift) == (100, 1, 1, 80)
    assert before.last_event == stream.events[-1].number
    assert before.models == tuple(stream.models)
    stream.predict_one(ROWS[100][0], key="one")
    assert (stream.status().n_waiting, before.n_waiting) == (1, 0)
    learn(stream, ROWS[100:101])
    assert (stream.status().n_rows, before.n_rows) == (101, 100)
    stream.close()
    with QuiltStream.open(hasty(tmp_path)) as again:
        assert again.status() == stream.status()


def test_a_status_is_plain_values() -> None:
    status = learn(start(), ROWS[:20]).status()
    plain = json.loads(json.dumps(status.to_json(), allow_nan=False))
    assert plain["accuracy"] == round(status.n_right / 20, 6)
    assert plain["classes"] == list(status.classes)
    assert start().status().accuracy is None
