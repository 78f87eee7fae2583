"""Guard, settings, past segments and events: each keeps what it promises."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from driftquilt.data.frame import read_label
from driftquilt.errors import InputError
from driftquilt.store import MemoryStore, SealedSegment
from driftquilt.stream import events
from driftquilt.stream.columns import Columns
from driftquilt.stream.events import Event, ModelTrained, read_event
from driftquilt.stream.persistence import History, least_used
from driftquilt.stream.settings import LET_ALL_THROUGH, Guard, StreamSettings

losses = st.floats(0, 10)


@given(st.integers(0, 300), st.integers(0, 300), st.integers(0, 300), st.integers(0, 300))
def test_a_drift_counts_when_the_segment_and_the_pause_are_long_enough(
    min_rows: int, cool_down: int, n_current: int, since: int
) -> None:
    guard = Guard(min_rows=min_rows, cool_down=cool_down)
    assert guard.accepts_drift(n_current, since) == (n_current >= min_rows and since > cool_down)
    assert LET_ALL_THROUGH.accepts_drift(n_current, since + 1)


@given(losses, losses, st.floats(-0.9, 5))
def test_a_challenger_within_the_margin_is_promoted(new: float, old: float, margin: float) -> None:
    assert Guard(margin=margin).promotes(new, old) == (new <= old * (1 + margin))
    assert LET_ALL_THROUGH.promotes(new, old)


def test_a_model_without_a_loss_is_never_promoted() -> None:
    assert not Guard().promotes(math.nan, 0.5)
    assert not LET_ALL_THROUGH.promotes(math.nan, 0.5)


@pytest.mark.parametrize(
    "wrong",
    [{"cool_down": -1}, {"min_rows": 1.5}, {"min_rows": True}, {"margin": -1}, {"margin": "0.1"},
     {"margin": math.nan}, {"margin": None}],
    ids=str,
)  # fmt: skip
def test_a_guard_refuses_what_makes_no_sense(wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=f"{next(iter(wrong))} is .*; it takes"):
        Guard(**wrong)


@pytest.mark.parametrize(
    "wrong",
    [{"n_wait": 1}, {"n_wait": 2.0}, {"n_wait": True}, {"n_wait": "9"}, {"max_models": 0},
     {"max_segments": 0}, {"max_rows": 1}, {"max_waiting": -1}, {"checkpoint_rows": 0},
     {"refresh": 1}, {"refresh": math.inf}, {"refresh": "2"}, {"refresh": math.nan}],
    ids=str,
)  # fmt: skip
def test_settings_refuse_what_makes_no_sense(wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=f"{next(iter(wrong))} is .*; it takes"):
        StreamSettings(**wrong)


def test_settings_that_contradict_each_other_are_refused() -> None:
    with pytest.raises(InputError, match="segment_rows is 50, fewer than the 100 rows"):
        StreamSettings(n_wait=100, segment_rows=50)
    with pytest.raises(InputError, match="max_rows is 900, fewer than the 1000 rows"):
        StreamSettings(segment_rows=1000, max_rows=900)
    with pytest.raises(InputError, match="no setting 'n_weight'; it has n_wait,"):
        StreamSettings.of(n_weight=5)


@given(st.integers(2, 10**6), st.floats(1.001, 10))
def test_the_next_training_is_further_on(n_current: int, refresh: float) -> None:
    later = StreamSettings(refresh=refresh).next_training(n_current)
    assert later is not None
    assert n_current < later <= math.ceil(n_current * refresh)
    assert StreamSettings(refresh=None).next_training(n_current) is None


sizes = st.lists(st.tuples(st.integers(1, 50), st.floats(0, 1)), min_size=1, max_size=12)


@given(sizes, st.integers(1, 8), st.integers(2, 200))
def test_the_least_used_go_until_the_rest_is_within_bounds(
    some: list[tuple[int, float]], max_segments: int, max_rows: int
) -> None:
    past = [SealedSegment(n, n, size, 0) for n, (size, _) in enumerate(some)]
    used = {n: use for n, (_, use) in enumerate(some)}
    gone = least_used(past, used, max_segments, max_rows)
    kept = [segment for segment in past if segment not in gone]
    assert kept[-1] == past[-1]
    assert len(kept) == 1 or sum(segment.n_rows for segment in kept) <= max_rows
    assert len(kept) <= max_segments
    others = kept[:-1]
    assert all(used[g.number] <= used[k.number] for g in gone for k in others)


def test_use_fades_towards_the_latest_weight() -> None:
    history = History(MemoryStore(), StreamSettings())
    history.restore({"used": {"1": 1.0}})
    for _ in range(10):
        history.use({1: 0.25, 2: 1.0})  # of which the second is not there
    assert history.used == {1: pytest.approx(0.25, abs=1e-3)}


EXAMPLES: list[Event] = [
    events.DriftFound(1),
    events.SegmentSealed(2, 3, 0, 50, full=True),
    events.SegmentDropped(3, 1, 50, 0.25),
    events.SegmentDamaged(3, 1, 50, "its SHA-256 is another"),
    ModelTrained(4, 30, {1: 0.5, 12: 0.0}, 0.1 + 0.2, 1.5, "because"),
    ModelTrained(4, 30, {}, 0.1, 1.5, "", blend={"all": 0.1, "selected": 0.6, "current": 0.3}),
    events.TrainingFailed(5, "no rows"),
    events.ModelPromoted(6, 2, 0.3, None),
    events.ModelKept(7, 0.4, 0.3),
    events.ModelRolledBack(8, 1),
    events.ModelDamaged(8, 1, "its SHA-256 is another"),
    events.RowForgotten(9, "order 7"),
    events.RowForgotten(9, 7),
    events.ColumnAppeared(10, "age"),
    events.ColumnVanished(11, "age"),
    events.ClassAppeared(12, "maybe"),
    events.ClassAppeared(12, True),
    events.ClassAppeared(12, 3),
]


@pytest.mark.parametrize("event", EXAMPLES, ids=lambda event: type(event).__name__)
def test_an_event_goes_through_json_and_says_what_it_is(event: Event) -> None:
    again = read_event(json.loads(json.dumps(event.to_json())))
    assert again == event
    assert type(again) is type(event)
    assert again.to_json() == event.to_json()
    assert str(event).startswith(f"row {event.row}: ")
    assert len(str(event)) > 12
    assert hash(event) == hash(again)


def test_a_training_uses_segments_from_half_of_the_mean_weight_on() -> None:
    trained = ModelTrained(9, 30, {1: 0.2, 4: 1.0, 7: 0.6}, 0.3, 1.0, "because")
    assert trained.used == [4, 7]
    assert "trained on 2 of 3 past segments and 30 current rows" in str(trained)


def test_a_training_of_an_earlier_version_has_shares_for_weights() -> None:
    now = ModelTrained(9, 30, {1: 0.2, 4: 1.0}, 0.3, 1.0, "because", number=3)
    record = json.loads(json.dumps(now.to_json()))
    record["shares"] = record.pop("weights")
    del record["blend"]
    again = read_event(record)
    assert again == now
    assert again.number == 3


def test_a_thousand_events_and_twenty_explanations_are_kept() -> None:
    kept: list[Event] = []
    for row in range(1_100):
        events.keep(kept, ModelTrained(row, 30, {1: 0.5}, 0.3, 1.0, f"because of {row}"))
    assert [event.row for event in kept] == list(range(100, 1_100))
    said = [event.explanation for event in kept if isinstance(event, ModelTrained)]
    assert said == [""] * 980 + [f"because of {row}" for row in range(1_080, 1_100)]


def test_news_of_columns_does_not_push_drifts_out() -> None:
    kept: list[Event] = [events.DriftFound(0)]
    for row in range(2_000):
        events.keep(kept, events.ColumnAppeared(row, f"word {row}"))
    assert kept[0] == events.DriftFound(0)
    assert [event.row for event in kept[1:]] == list(range(1_800, 2_000))


def test_every_kind_of_event_has_its_example() -> None:
    assert {type(event).__name__ for event in EXAMPLES} == set(events.__all__) - {
        "Event", "keep", "read_event",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("given_as", "label"), [(3, 3), (3.0, 3), (True, True), ("x", "x"), (-(2**63), -(2**63))]
)
def test_labels_become_plain(given_as: Any, label: Any) -> None:
    assert read_label(given_as) == label
    assert type(read_label(given_as)) is type(label)


@pytest.mark.parametrize("wrong", [None, math.nan, 1.5, math.inf, 2**63, b"x", [1], {"y": 1}])
def test_what_is_no_label_is_refused(wrong: Any) -> None:
    with pytest.raises(InputError, match="the label"):
        read_label(wrong)


def test_a_column_has_vanished_when_a_segment_lacks_what_the_one_before_had() -> None:
    columns = Columns()
    segments = [["a", "b"], ["a", "c"], ["a"], ["a"], ["b"]]
    told = []
    for names in segments:
        columns.remember(dict.fromkeys(names, 1.0) | {"gap": None}, 1)
        columns = Columns.from_json(json.loads(json.dumps(columns.to_json())))
        told.append(columns.end_segment())
    assert told == [[], ["b"], ["c"], [], ["a"]]


def test_of_an_early_store_nothing_is_said_to_vanish_that_may_have_been_there() -> None:
    columns = Columns.from_json({"is_text": {"a": False, "b": True}, "label": "str"})
    assert columns.remember({"a": 1.0, "c": 2.0}, "yes") == ["c"]
    assert columns.end_segment() == []
    assert columns.end_segment() == ["a", "c"]


def test_columns_keep_their_kind_through_json() -> None:
    columns = Columns()
    columns.remember({"b": 1.0, "a": "x", "c": None}, True)
    again = Columns.from_json(json.loads(json.dumps(columns.to_json())))
    for one in (columns, again):
        one.expect([{"a": "y", "b": None, "c": "new"}], [False])
        wrong: list[tuple[list[Any], list[Any]]] = [
            ([{"a": 1.0}], []),
            ([{"b": "x"}], []),
            ([{"c": 1.0}, {"c": "x"}], []),
            ([{}], ["yes"]),
            ([{}], [1]),
            ([{"label": 1.0}], []),
            ([{"a": "\ud800"}], []),
            ([{"\ud800": 1.0}], []),
        ]
        for rows, labels in wrong:
            with pytest.raises(InputError):
                one.expect(rows, labels)
        assert one.to_json() == columns.to_json()
