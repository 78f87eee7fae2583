"""Pages say what decisions and replays say."""

from __future__ import annotations

from pathlib import Path

import pytest

from driftquilt.decision.cutting import by_column
from driftquilt.decision.deciding import decide
from driftquilt.decision.journal import read_replay
from driftquilt.decision.replay import Replay
from driftquilt.report.page import page_of_decision, page_of_replay
from tests.decision.tables import sine_table, tiny
from tests.stream.streams import start


def test_the_page_of_a_decision_has_its_one_selection() -> None:
    table = sine_table(3, 200)
    decision = decide(
        table, "label", by_column(table, "segment"), drop=["segment"], estimator=tiny()
    )
    page = page_of_decision(decision)
    (drift,) = page.drifts
    assert page.title == "Retraining for '2'"
    assert page.sentences == decision.sentences()
    assert list(drift.accuracies) == ["Quilt", "all data", "current only"]
    assert drift.measure == "log loss, lower is better"
    assert drift.scores == {method.name: method.shown_score.value for method in page.methods}
    assert drift.of_past == decision.of_past
    assert page.methods == decision.methods
    assert [column.name for column in page.columns] == table.column_names


def test_the_page_of_a_replay_has_a_selection_per_segment(tmp_path: Path) -> None:
    table = sine_table(3, 500)
    known = {"kind": "known", "points": [499, 999]}
    for _ in Replay(start(detector=known), tmp_path).run(table, "label", drop=["segment"]):
        pass
    replayed = read_replay(tmp_path)
    others = {"all data": dict.fromkeys(range(400, 1600, 200), 0.5)}
    page = page_of_replay(replayed, others)
    assert [len(drift.selection) for drift in page.drifts] == [0, 1, 2]
    assert [drift.row for drift in page.drifts] == [None, 500, 1000]
    assert [drift.name for drift in page.drifts][1:] == ["rows from 500 on", "rows from 1,000 on"]
    assert page.drifts[1].accuracies["all data"] == 0.5
    assert page.accuracy is not None
    assert page.accuracy.rows == (1000, 1200, 1400)
    assert page.accuracy.drifts == (500, 1000)
    assert page.accuracy.by_method["all data"] == (None, 0.5, 0.5)
    n_right = sum(round(200 * count.value) for count in replayed.accuracy if count.row <= 1000)
    assert page.accuracy.by_method["Quilt"][0] == pytest.approx(n_right / 1000)
    assert page.sentences[0].startswith("In 1,500 rows 2 drifts were detected")
    assert page.warnings == ()
