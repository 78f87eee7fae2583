"""A replay tells what the stream did, goes on where it was left, and refuses other rows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from driftquilt.decision.backtest import BASELINES, baselines
from driftquilt.decision.journal import (
    COUNT,
    EVENTS,
    TrainedAt,
    expect_same,
    read_replay,
    replay_header,
)
from driftquilt.decision.replay import Progress, Replay
from driftquilt.decision.streaming import fingerprint
from driftquilt.errors import InputError
from driftquilt.stream import QuiltStream
from driftquilt.stream.events import DriftFound, ModelPromoted
from tests.decision.tables import shop_table, sine_table
from tests.stream.streams import start

KNOWN = {"kind": "known", "points": [249, 499]}


def replay(table: pa.Table, out: Path, stream: QuiltStream, **settings: Any) -> list[Progress]:
    given: dict[str, Any] = {"label": "label", "drop": ["segment"], "report_every": 200}
    given |= settings
    return list(Replay(stream, out).run(table, **given))


def test_a_replay_is_what_the_stream_does_by_itself(tmp_path: Path) -> None:
    table = sine_table(3, 250)
    stream, alone = start(detector=KNOWN), start(detector=KNOWN)
    told = replay(table, tmp_path, stream)
    rows = table.drop_columns(["label", "segment"]).to_pylist()
    alone.learn_many(rows, table["label"].to_pylist())
    replayed = read_replay(tmp_path)
    assert replayed.events == alone.events == stream.events
    assert (replayed.n_rows, replayed.n_right) == (750, round(alone.accuracy * 750))
    assert [progress.rows for progress in told] == [200, 400, 600, 750]
    assert told[-1].n_drifts == replayed.n_drifts == 2
    assert told[-1].last_event == str(alone.events[-1])
    assert [count.row for count in replayed.accuracy] == [200, 400, 600, 750]
    n_right = sum(round(count.value * count.n_rows) for count in replayed.accuracy)
    assert n_right == replayed.n_right


def test_each_segment_has_the_selection_of_its_last_model(tmp_path: Path) -> None:
    stream = start(detector=KNOWN)
    replay(sine_table(3, 250), tmp_path, stream)
    replayed = read_replay(tmp_path)
    promoted = [event for event in stream.events if isinstance(event, ModelPromoted)]
    ends = [250, 500, 750]
    last = [max((e for e in promoted if e.row <= end), key=lambda e: e.row) for end in ends]
    assert [(d.row, d.model) for d in replayed.drifts] == [(e.row, e.model) for e in last]
    assert [len(d.selection) for d in replayed.drifts] == [0, 1, 2]
    final = stream.classifier()
    assert replayed.drifts[-1].model == stream.model
    assert [u.share for u in replayed.drifts[-1].selection] == [u.share for u in final.selection_]
    assert len(replayed.drifts[-1].bounds) == len(final.search_)
    assert all(drift.since <= drift.row for drift in replayed.drifts)


def test_a_table_that_grew_is_gone_on_with(tmp_path: Path) -> None:
    table, whole, parts = sine_table(3, 250), tmp_path / "whole", tmp_path / "parts"
    replay(table, whole, start(detector=KNOWN))
    with start(parts / "store", detector=KNOWN) as stream:
        replay(table.slice(0, 333), parts, stream)
    with QuiltStream.open(parts / "store", wait=True) as stream:
        told = replay(table, parts, stream)
    assert told[0].rows == 400
    assert read_replay(parts).events == read_replay(whole).events
    assert read_replay(parts).n_right == read_replay(whole).n_right
    before = (parts / EVENTS).read_bytes()
    with QuiltStream.open(parts / "store", wait=True) as stream:
        replay(table, parts, stream)  # nothing is left to do
    assert (parts / EVENTS).read_bytes() == before


@pytest.mark.parametrize("n_bytes", [1, 40, 700])
def test_a_torn_end_is_told_again(tmp_path: Path, n_bytes: int) -> None:
    table = sine_table(3, 250).slice(0, 700)
    with start(tmp_path / "store", detector=KNOWN) as stream:
        replay(table, tmp_path, stream)
    path = tmp_path / EVENTS
    whole = path.read_bytes()
    path.write_bytes(whole[:-n_bytes])
    with QuiltStream.open(tmp_path / "store", wait=True) as stream:
        replay(table, tmp_path, stream)
    assert path.read_bytes() == whole


def test_text_gaps_and_rows_without_a_label_are_fine(tmp_path: Path) -> None:
    table = shop_table(300)
    told = replay(table, tmp_path, start(), label="bought", drop=["order"])
    assert (told[-1].rows, told[-1].skipped, told[-1].n_rows) == (294, 6, 300)
    assert read_replay(tmp_path).n_skipped == 6


def test_other_rows_are_refused(tmp_path: Path) -> None:
    table = sine_table(3, 250)
    with start(tmp_path / "store") as stream:
        replay(table.slice(0, 300), tmp_path, stream)
    with QuiltStream.open(tmp_path / "store", wait=True) as stream:
        with pytest.raises(InputError, match="'segment' and are 'segment', 'x0'"):
            replay(table, tmp_path, stream, drop=["segment", "x0"])
        with pytest.raises(InputError, match="The first row differs"):
            replay(table.slice(1), tmp_path, stream)
        with pytest.raises(InputError, match=r"300 rows, .* 200"):
            replay(table.slice(0, 200), tmp_path, stream)
        with pytest.raises(InputError, match="were not replayed to this folder"):
            replay(table, tmp_path / "elsewhere", stream)
        assert not (tmp_path / "elsewhere").exists()
        gaps = pa.array([None if k == 7 else y for k, y in enumerate(table["label"].to_pylist())])
        missing = table.set_column(table.column_names.index("label"), "label", gaps)
        with pytest.raises(InputError, match="1 row without a label"):
            replay(missing, tmp_path, stream)
        late = [0, 400, *range(1, 400), *range(401, 750)]  # a row came in among the old ones
        with pytest.raises(InputError, match="row 300 of the stream differs"):
            replay(table.take(late), tmp_path, stream)
        replay(table.slice(0, 310), tmp_path, stream)  # the right ones still are not
    with pytest.raises(InputError, match="but the stream is new"):
        replay(table, tmp_path, start())


def test_rows_are_refused_by_the_call_and_not_by_the_first_step(tmp_path: Path) -> None:
    stream, table = start(), sine_table(2, 100)
    replay(table, tmp_path, stream)
    with pytest.raises(InputError, match="belongs to other rows"):
        Replay(stream, tmp_path).run(table, "label")
    steps = Replay(stream, tmp_path).run(table, "label", drop=["segment"])
    assert [progress.rows for progress in steps] == [200]  # nothing is left to do


def test_every_model_is_told_of_though_the_stream_keeps_one(tmp_path: Path) -> None:
    table, often = sine_table(3, 250), {"refresh": 1.2, "max_models": 1}
    replay(table, tmp_path, start(detector=KNOWN, **often))
    lines = [json.loads(line) for line in (tmp_path / EVENTS).read_text().splitlines()]
    told = [line["selection"] for line in lines if line.get("record") == "selection"]
    assert len(told) > 15
    assert None not in told


def test_a_stream_that_learned_elsewhere_is_refused(tmp_path: Path) -> None:
    table, stream = sine_table(3, 250), start()
    replay(table.slice(0, 200), tmp_path, stream)
    rows = table.drop_columns(["label", "segment"]).slice(200, COUNT + 1)
    stream.learn_many(rows.to_pylist(), table["label"].slice(200, COUNT + 1).to_pylist())
    with pytest.raises(InputError, match=r"401 rows, .* 200"):
        replay(table, tmp_path, stream)


def test_damage_is_found_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no replay in"):
        read_replay(tmp_path)
    replay(sine_table(2, 250), tmp_path, start(detector=KNOWN))
    path = tmp_path / EVENTS
    good = path.read_text().splitlines(keepends=True)
    path.write_text("".join([good[0], "{]\n", *good[1:]]))
    with pytest.raises(InputError, match="line 2 is damaged"):
        read_replay(tmp_path)
    path.write_text("".join([good[0], '{"event": "Nonsense", "row": 3}\n']))
    with pytest.raises(InputError, match="is damaged: KeyError"):
        read_replay(tmp_path)
    path.write_text("".join(good[1:]))
    with pytest.raises(InputError, match="is not a replay"):
        read_replay(tmp_path)


def test_every_line_is_strict_json(tmp_path: Path) -> None:
    replay(sine_table(2, 250), tmp_path, start(detector=KNOWN))

    def refuse(word: str) -> Any:
        raise AssertionError(word)

    for line in (tmp_path / EVENTS).read_text().splitlines():
        json.loads(line, parse_constant=refuse)


def test_trainings_are_known_by_their_rows(tmp_path: Path) -> None:
    replay(sine_table(2, 250), tmp_path, start(detector=KNOWN, refresh=None))
    replayed = read_replay(tmp_path)
    assert replayed.trainings == (TrainedAt(30, 0, 30), TrainedAt(280, 250, 30))
    assert [e.row for e in replayed.events if isinstance(e, DriftFound)] == [250, 500]


def test_baselines_are_asked_about_the_rows_after_each_training() -> None:
    table = sine_table(3, 400)  # three concepts
    trainings = [TrainedAt(100, 0, 100), TrainedAt(900, 800, 100)]
    told: list[tuple[int, int]] = []
    found = baselines(
        table, "label", trainings, drop=["segment"], watch=lambda *at: told.append(at)
    )
    assert tuple(found) == BASELINES
    assert sorted(found["all data"]) == [200, 400, 600, 800, 1000, 1200]
    assert found["all data"][200] == found["current only"][200]  # the first has no past
    assert found["current only"][1200] > found["all data"][1200] + 0.1
    assert told == [(0, 2), (1, 2)]


TABLE = pa.table({"a": [1, 2], "b": ["x", "y"], "sold": [True, False]})


def header(table: pa.Table = TABLE, **changed: Any) -> dict[str, Any]:
    given: dict[str, Any] = {"label": "sold", "drop": [], "name": "may.csv", "count": 200}
    return replay_header(table, **(given | changed))


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (header(label="b"), r"The label was 'sold' and is 'b'\."),
        (header(drop=["a"]), r"The columns dropped were none and are 'a'\."),
        (header(TABLE.drop_columns(["a"])), r"Columns gone: 'a'\."),
        (header(TABLE.append_column("c", [[1, 2]])), r"Columns new: 'c'\."),
        (header(TABLE.rename_columns(["z", "b", "sold"])), r"Columns gone: 'a'; columns new: 'z'"),
        (header(TABLE.set_column(0, "a", [[1.5, 2]])), "Column 'a' was int64 and is double"),
        (header(TABLE.select(["b", "a", "sold"])), "The columns are in another order"),
        (header(TABLE.slice(1)), "The first row differs"),
        (header(count=100), "The count was 200 and is 100"),
    ],
)
def test_what_differs_is_said(other: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        expect_same("events.jsonl", header(), other)


def test_both_tables_are_named_with_their_rows_and_no_digest() -> None:
    with pytest.raises(InputError) as refused:
        expect_same("out/events.jsonl", header(), header(TABLE.slice(1), name="june.csv"))
    said = str(refused.value)
    assert "out/events.jsonl" in said
    assert "may.csv (2 rows), and this is june.csv (1 row)" in said
    assert "--store" in said
    assert fingerprint(TABLE, 0) not in said


def test_a_table_may_grow_and_change_its_name() -> None:
    expect_same("events.jsonl", header(TABLE.slice(0, 1)), header(name="june.csv"))
