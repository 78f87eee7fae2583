"""A replay that is killed again and again ends in the file of one that was left alone."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from driftquilt.decision.replay import EVENTS, Replay
from driftquilt.decision.replayed import read_replay
from tests.decision.replay_zygote import SETTINGS, table
from tests.store.test_kill import ROOT, Zygote
from tests.stream.crash_zygote import N_ROWS
from tests.stream.streams import start

N_KILLS = 12


class ReplayZygote(Zygote):
    """Starts replays, and kills them."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.decision.replay_zygote"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
        )

    def run(self, folder: Path, *, n_words: int, seconds: float) -> bool:
        """Kill a replay so long after so many words; whether it had ended before."""
        orders, answers = self.pipes
        orders.write(f"{folder} 0\n")
        pid, said = int(answers.readline().split()[1]), [""]
        while len(said) <= n_words and said[-1] != "done":
            said.append(answers.readline().strip())
        time.sleep(seconds)
        os.kill(pid, signal.SIGKILL)
        orders.write("reap\n")
        while not (line := answers.readline()).startswith("dead"):
            said.append(line.strip())
        assert line == f"dead {-signal.SIGKILL}\n" or "done" in said  # else it fell, and said why
        return "done" in said


@pytest.fixture
def zygote() -> Iterator[ReplayZygote]:
    started = ReplayZygote()
    yield started
    started.close()


def lines(folder: Path) -> list[dict[str, Any]]:
    """What a replay wrote, but for how long things took."""
    found = [json.loads(line) for line in (folder / EVENTS).read_text().splitlines()]
    return [{name: v for name, v in line.items() if name != "seconds"} for line in found]


def test_a_replay_that_is_killed_again_and_again_ends_in_the_same_file(
    zygote: ReplayZygote, tmp_path: Path
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
        if zygote.run(killed, n_words=n_words, seconds=seconds):
            break
        n_kills += 1
    else:
        assert zygote.run(killed, n_words=100, seconds=0)
    assert n_kills > 2
    assert lines(killed) == lines(left_alone)
    replayed = read_replay(killed)
    assert replayed.n_rows == N_ROWS
    assert replayed.n_skipped == 90
    assert replayed.n_drifts > 2
    assert len(replayed.drifts) > 2
