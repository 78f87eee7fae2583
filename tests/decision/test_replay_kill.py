"""A replay that is killed again and again ends in the file of one that was left alone."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from driftquilt.decision.replay import EVENTS, Replay
from driftquilt.decision.replayed import read_replay
from tests.decision.replay_zygote import SETTINGS, table
from tests.killing import Zygote
from tests.stream.crash_zygote import N_ROWS
from tests.stream.streams import start

N_KILLS = 12


@pytest.fixture
def zygote() -> Iterator[Zygote]:
    with Zygote("tests.decision.replay_zygote") as started:
        yield started


def lines(folder: Path) -> list[dict[str, Any]]:
    """What a replay wrote, but for how long things took."""
    found = [json.loads(line) for line in (folder / EVENTS).read_text().splitlines()]
    return [{name: v for name, v in line.items() if name != "seconds"} for line in found]


def test_a_replay_that_is_killed_again_and_again_ends_in_the_same_file(
    zygote: Zygote, tmp_path: Path
) -> None:
    left_alone, killed, rng = tmp_path / "alone", tmp_path / "killed", Random(3)  # noqa: S311
    for _ in Replay(start(**SETTINGS), left_alone).run(table(), "sold"):
        pass
    n_kills = 0
    while n_kills < N_KILLS:
        # The first three come so soon that even a fast machine is not done before them.
        n_words, seconds = rng.randint(1, 2), rng.uniform(0, 0.1)
        if n_kills < 3:
            n_words, seconds = 1, seconds / 10
        if zygote.kill(killed, 0, n_words=n_words, seconds=seconds).done:
            break
        n_kills += 1
    else:
        assert zygote.kill(killed, 0, n_words=100, seconds=0).done
    assert n_kills > 2
    assert lines(killed) == lines(left_alone)
    told = [line["selection"] for line in lines(killed) if line.get("record") == "selection"]
    assert len(told) > 5
    assert None not in told
    replayed = read_replay(killed)
    assert replayed.n_rows == N_ROWS
    assert replayed.n_skipped == 90
    assert replayed.n_drifts > 2
    assert len(replayed.drifts) > 2
