"""What a stream cannot use is one of our errors, and leaves the stream and its store unharmed."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from driftquilt.errors import DriftquiltError, InputError, StoreError
from driftquilt.quilt.classifier import QuiltClassifier
from driftquilt.store.memory import MemoryStore
from driftquilt.stream import QuiltStream
from driftquilt.stream.events import ModelDamaged, ModelTrained, SegmentDamaged
from driftquilt.stream.persistence import versions
from driftquilt.stream.settings import FORMAT, Guard
from tests.stream.streams import hasty, learn, left, rows, start

ROWS = rows(80)


BAD_ROWS: list[Any] = [
    None,
    5,
    "a",
    [1.0, 2.0],
    np.zeros(3),
    {"a": "text where numbers were"},
    {"city": 7.0},
    {"a": math.inf},
    {"a": 1e39},
    {"a": b"bytes"},
    {"a": [1.0]},
    {"a": object()},
    {"label": 1.0},
    {"city": "\ud800"},
    {"\udfff": 1.0},
    {"a": datetime(2024, 5, 1, tzinfo=UTC), "b": 1.0},
    {"a (time of day, sin)": 0.5, "b": 1.0},
]
BAD_LABELS: list[Any] = [None, math.nan, 1.5, 3, True, b"yes", ["yes"], object(), "\ud800", "\0"]
BAD_TABLES: list[Any] = [
    {"a": 1.0, "b": 2.0},
    "rows",
    None,
    5,
    np.zeros((2, 2)),
    [[1.0], [2.0]],
    [{"a": 1.0}, None],
    [{"c": 1.0}, {"c": "text"}],
]


def test_bad_rows_and_labels_leave_the_stream_as_it_was() -> None:
    stream = learn(start(), ROWS[:40])
    before, good = left(stream), ROWS[40][0]
    for row in BAD_ROWS:
        with pytest.raises(InputError):
            stream.learn_one(row, "yes")
        with pytest.raises(InputError):
            stream.predict_one(row)
    for label in BAD_LABELS:
        with pytest.raises(InputError, match="label"):
            stream.learn_one(good, label)
    for table in BAD_TABLES:
        with pytest.raises(InputError):
            stream.learn_many(table, ["yes", "no"])
    for labels in (None, 5, "ab", {"y": 1, "z": 2}, ["yes"], ["yes", 3]):
        with pytest.raises(InputError):
            stream.learn_many([good, good], labels)  # type: ignore[arg-type]
    for table in BAD_TABLES[:4]:
        with pytest.raises(InputError):
            stream.predict_many(table)
    assert left(stream) == before
    whole = learn(start(), ROWS)
    assert left(learn(stream, ROWS[40:])) == left(whole)


def test_a_date_is_no_number_later_on_and_the_other_way_round() -> None:
    stream = start()
    stream.learn_one({"day": datetime(2024, 5, 1, tzinfo=UTC), "b": 1.0}, "yes")
    for row in ({"day": 3.0, "b": 1.0}, {"day": "1 May", "b": 1.0}):
        with pytest.raises(InputError, match="'day' has held dates or times so far"):
            stream.learn_one(row, "yes")
    with pytest.raises(InputError, match="'b' holds a date or a time"):
        stream.predict_one({"b": datetime(2024, 5, 1, tzinfo=UTC)})
    stream.learn_one({"day": None, "b": 2.0}, "no")
    assert stream.failure is None


def test_columns_have_a_bound() -> None:
    stream = start(max_columns=3)
    stream.learn_one({"a": 1.0, "b": 1.0}, "yes")
    for row in ({"a": 1.0, "c": 1.0, "d": 1.0}, {"a": 1.0, "c": "x", "d": "y"}):
        with pytest.raises(InputError, match="more than 3 columns"):
            stream.learn_one(row, "yes")
    stream.learn_one({"a": 1.0, "c": 1.0}, "yes")
    assert len(stream.columns) == 3


@pytest.mark.parametrize("note", [{"x": {1, 2}}, {1: 2}, {"stream": 1}, {"waiting.0": None}])
def test_notes_that_cannot_be_stored_are_refused_before_anything_is_learned(note: Any) -> None:
    stream = learn(start(), ROWS[:5])
    with pytest.raises(InputError):
        stream.note(note)
    with pytest.raises(InputError):
        stream.learn_many([ROWS[5][0]], ["yes"], notes=[note])
    with pytest.raises(InputError, match="1 rows but 0 notes"):
        stream.learn_many([ROWS[5][0]], ["yes"], notes=[])
    learn(stream, ROWS[5:6])
    assert stream.n_rows == 6


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"n_weight": 5}, "n_weight"),
        ({"detector": "adwim"}, "adwin"),
        ({"guard": 5}, "the guard is a int"),
    ],
)
def test_settings_are_checked_before_a_folder_is_made(
    tmp_path: Path, wrong: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        start(tmp_path / "store", **wrong)
    assert not (tmp_path / "store").exists()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ("clf", "the estimator is a str; a stream takes a QuiltClassifier"),
        (QuiltClassifier(encode=False), "encode=False"),
        (QuiltClassifier(random_state="seven"), "random_state is 'seven'"),  # type: ignore[arg-type]
    ],
    ids=["kind", "encode", "seed"],
)
def test_an_estimator_that_cannot_be_used_is_refused(wrong: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        QuiltStream(wrong)


def test_a_folder_that_is_not_ours_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("all my work")
    for make in (start, QuiltStream.open):
        with pytest.raises(StoreError, match=r"is not a store: it has 'thesis\.txt'"):
            make(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]
    with pytest.raises(StoreError, match="is a file"):
        start(tmp_path / "thesis.txt")
    for name in ("thesis.txt", "missing"):
        with pytest.raises(StoreError, match="there is no folder"):
            QuiltStream.open(tmp_path / name)
    assert not (tmp_path / "missing").exists()


def test_a_store_that_holds_a_stream_is_not_begun_anew(tmp_path: Path) -> None:
    stream = learn(start(hasty(tmp_path)), ROWS[:40])
    before = left(stream)
    stream.close()
    with pytest.raises(StoreError, match="a stream in this store already"):
        start(tmp_path)
    with QuiltStream.open(hasty(tmp_path), wait=True) as again:
        assert left(again) == before


def test_a_store_without_a_stream_is_neither_opened_nor_taken(tmp_path: Path) -> None:
    with hasty(tmp_path) as store:
        store.append(pa.record_batch({"x": [1.0]}))
    for make, message in ((QuiltStream.open, "no stream in this store"), (start, "already")):
        with pytest.raises(StoreError, match=message):
            make(tmp_path)
    with hasty(tmp_path) as store:  # it was let go of, and has what it had
        assert store.open_rows().to_pylist() == [{"x": 1.0}]


def test_a_store_has_one_writer(tmp_path: Path) -> None:
    first = learn(start(hasty(tmp_path)), ROWS[:10])
    for make in (start, QuiltStream.open):
        with pytest.raises(StoreError, match=r"in use|another process|is open"):
            make(tmp_path)
    learn(first, ROWS[10:40])
    first.close()
    with QuiltStream.open(tmp_path) as again:
        assert again.n_rows == 40


def test_a_store_that_the_caller_opened_stays_open_when_the_stream_cannot_begin() -> None:
    store = MemoryStore()
    store.append(pa.record_batch({"x": [1.0]}))
    with pytest.raises(StoreError):
        QuiltStream(store=store)
    with pytest.raises(StoreError):
        QuiltStream.open(store)
    assert store.n_open == 1
    assert store.append(pa.record_batch({"x": [2.0]})) == 2


def test_a_stream_of_a_newer_format_is_refused_with_what_to_do(tmp_path: Path) -> None:
    learn(start(hasty(tmp_path)), ROWS[:10]).close()
    with hasty(tmp_path) as store:
        setup = store.state["stream"]
        store.write_state({"stream": {**setup, "format": FORMAT + 1}})
    with pytest.raises(StoreError, match=f"has format {FORMAT + 1}, this version reads {FORMAT}"):
        QuiltStream.open(tmp_path)
    with hasty(tmp_path) as store:
        assert store.n_appended == 10


def test_a_damaged_checkpoint_is_an_error_of_ours(tmp_path: Path) -> None:
    learn(start(hasty(tmp_path)), ROWS[:40]).close()
    for path in (tmp_path / "models").iterdir():
        path.write_bytes(path.read_bytes()[:-3] + b"???")
    with pytest.raises(DriftquiltError):
        QuiltStream.open(tmp_path)


@pytest.mark.parametrize("damage", ["flipped", "gone"])
def test_trainings_go_on_without_a_damaged_segment(tmp_path: Path, damage: str) -> None:
    many = rows(140)
    settings = {"detector": {"kind": "known", "points": [40, 80]}, "n_wait": 10}
    learn(start(hasty(tmp_path), **settings), many[:100]).close()
    path = tmp_path / "segments" / "000001.arrow"
    if damage == "gone":
        path.unlink()
    else:
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 1
        path.write_bytes(content)

    with QuiltStream.open(tmp_path) as stream:
        assert stream.status().n_damaged == 0  # nobody has looked
        learn(stream, many[100:120])
        stream.adapt()
        reported = [event for event in stream.events if isinstance(event, SegmentDamaged)]
        assert [(event.segment, event.n_rows) for event in reported] == [(1, 41)]
        assert "000001.arrow" in str(reported[0])
        trained = [event for event in stream.events if isinstance(event, ModelTrained)][-1]
        assert trained.weights.keys() == {2}
        assert (stream.status().n_segments, stream.status().n_damaged) == (1, 1)

    assert path.exists() == (damage == "flipped")  # what is left may be repaired
    with QuiltStream.open(tmp_path) as again:
        assert again.status().n_damaged == 1
        learn(again, many[120:])
        again.adapt()
        assert sum(isinstance(event, SegmentDamaged) for event in again.events) == 1
        assert again.n_rows == 140


@pytest.mark.parametrize("panel", ["all", "model"])
def test_a_stream_goes_on_without_a_damaged_model(tmp_path: Path, panel: str) -> None:
    learn(start(hasty(tmp_path), panel=panel, detector="never"), ROWS[:45]).close()
    with hasty(tmp_path) as store:
        newest = max(versions(store))
        path = tmp_path / "models" / f"{versions(store)[newest]:06}.safetensors"
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)

    with QuiltStream.open(tmp_path) as stream:
        reported = [event for event in stream.events if isinstance(event, ModelDamaged)]
        assert [event.model for event in reported] == [newest]
        assert path.name in str(reported[0])
        assert sum(stream.predict_proba_one(ROWS[45][0]).values()) == pytest.approx(1)
        learn(stream, ROWS[45:50])
        assert stream.status().model == newest + 1
        assert stream.n_rows == 50
    assert path.exists()  # it may be repaired
    with QuiltStream.open(tmp_path) as again:
        assert again.status().model == newest + 1
        assert again.n_rows == 50


def test_code_of_the_users_own_has_to_be_given_again(tmp_path: Path) -> None:
    class Own:
        drift_detected = False

        def update(self, value: float) -> None: ...

    learn(start(hasty(tmp_path), detector=Own()), ROWS[:40]).close()
    with pytest.raises(InputError, match="give the object again"):
        QuiltStream.open(tmp_path)
    with QuiltStream.open(tmp_path, detector=Own()) as again:
        assert again.n_rows == 40


def test_after_closing_a_stream_predicts_and_learning_is_refused(tmp_path: Path) -> None:
    stream = learn(start(hasty(tmp_path)), ROWS[:40])
    stream.close()
    stream.close()
    assert stream.predict_one(ROWS[40][0]) in ("yes", "no")
    for wrong in (
        lambda: stream.learn_one(*ROWS[40]),
        lambda: stream.predict_one(ROWS[40][0], key=1),
        lambda: stream.expect_label(ROWS[40][0], key=1),
        lambda: stream.forget(1),
    ):
        with pytest.raises(StoreError, match="the stream is closed"):
            wrong()
    assert (stream.n_rows, stream.n_waiting) == (40, 0)
    with QuiltStream.open(tmp_path) as again:
        assert again.n_rows == 40


def test_what_is_kept_of_a_setup_is_json() -> None:
    store = MemoryStore()
    start(store, guard=Guard(margin=math.inf), refresh=None)
    text = json.dumps(store.state["stream"])
    assert json.loads(text) == store.state["stream"]
