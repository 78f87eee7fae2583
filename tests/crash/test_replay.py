"""A replay that is killed again and again ends in the file of one that was left alone."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa

from driftquilt.decision.journal import EVENTS, read_replay
from driftquilt.decision.replay import Replay
from tests.crash import test_stream as streams
from tests.crash.killing import Workers, report
from tests.crash.test_stream import N_ROWS, ROWS, open_or_start
from tests.stream.streams import start

#: Each model goes when the next one comes, and must have been written down by then.
SETTINGS = {**streams.SETTINGS, "max_models": 1}
N_KILLS = 12

warm_up = streams.warm_up


def table() -> pa.Table:
    """Return the rows of a replay; before every tenth stands one without a label."""
    labelled = [{**x, "sold": y} for x, y in ROWS]
    rows = list[dict[str, Any]]()
    for number, row in enumerate(labelled):
        rows += [{**row, "sold": None}, row] if number % 10 == 0 else [row]
    names = sorted({name for row in rows for name in row})
    return pa.table({name: [row.get(name) for row in rows] for name in names})


def work(folder: Path, rng: Random) -> None:  # noqa: ARG001
    """Go on with the replay in the folder, and report how far it has come."""
    with open_or_start(folder / "store", **SETTINGS) as stream:
        report(stream.n_rows)
        for progress in Replay(stream, folder).run(table(), "sold", report_every=100):
            report(progress.rows)


def lines(folder: Path) -> list[dict[str, Any]]:
    """Return what a replay wrote, but for how long things took."""
    records = [json.loads(line) for line in (folder / EVENTS).read_text().splitlines()]
    return [{name: v for name, v in line.items() if name != "seconds"} for line in records]


def test_a_replay_that_is_killed_again_and_again_ends_in_the_same_file(
    workers: Workers, tmp_path: Path
) -> None:
    left_alone, rng, n_kills = tmp_path / "alone", Random(3), 0  # noqa: S311
    for _ in Replay(start(**SETTINGS), left_alone).run(table(), "sold"):
        pass
    killed = workers.kill(tmp_path / "killed", seed=0, n_reports=1)
    while not killed.done:
        n_kills += 1
        # The first three come so soon that even a fast machine is not done before them.
        soon = n_kills < 3
        killed = workers.kill(
            killed.folder,
            seed=0,
            n_reports=100 if n_kills == N_KILLS else 1 if soon else rng.randint(1, 2),
            seconds=rng.uniform(0, 0.01 if soon else 0.1),
        )
    assert n_kills > 2
    assert lines(killed.folder) == lines(left_alone)
    selections = [
        line["selection"] for line in lines(killed.folder) if line.get("record") == "selection"
    ]
    assert len(selections) > 5
    assert None not in selections
    replayed = read_replay(killed.folder)
    assert replayed.n_rows == N_ROWS
    assert replayed.n_skipped == 90
    assert replayed.n_drifts > 2
    assert len(replayed.drifts) > 2
