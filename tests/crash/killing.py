"""Workers that are killed at any moment, by a warm process that forks them.

A module of this folder has a function `work(folder, rng)` that goes on with what is in the folder
and calls `report` with whatever was acknowledged, and may have a function `warm_up()`. Starting
Python takes a second, so a process (`python -m tests.crash.killing module`) imports the module
once, warms up, and forks a worker for every kill:

    with Workers("tests.crash.test_store") as workers:
        for killed in workers.kills(folder, 50, seed=0):
            ...  # look at killed.folder, compare with killed.reports

Orders are lines "folder seed", and "reap" to wait for the end of a worker. Reports come back
through one pipe, with "dead" and the exit code at the end, so nothing comes after that.
"""

from __future__ import annotations

import importlib
import os
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import IO, NamedTuple, Self

from tests.processes import ROOT

_DONE = "done"


class Killed(NamedTuple):
    """Where a worker worked, what it reported before it died, and whether it came to its end."""

    folder: Path
    reports: list[str]
    done: bool


class Workers:
    """Starts workers of a module, and kills them."""

    def __init__(self, module: str) -> None:
        self._zygote = subprocess.Popen(
            [sys.executable, "-m", "tests.crash.killing", module],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
        )

    @property
    def _pipes(self) -> tuple[IO[str], IO[str]]:
        assert self._zygote.stdin is not None
        assert self._zygote.stdout is not None
        return self._zygote.stdin, self._zygote.stdout

    def kill(self, folder: Path, *, seed: float, n_reports: int, seconds: float = 0) -> Killed:
        """Kill a worker so many seconds after so many reports, or after it is done."""
        orders, answers = self._pipes
        orders.write(f"{folder} {seed}\n")
        word, _, pid = answers.readline().partition(" ")
        assert word == "pid", "the process that forks workers ended; stderr has its traceback"
        reports: list[str] = []
        while len(reports) < n_reports and _DONE not in reports:
            line = answers.readline()
            assert line, "the process that forks workers ended; stderr has its traceback"
            reports.append(line.strip())
        time.sleep(seconds)
        os.kill(int(pid), signal.SIGKILL)
        orders.write("reap\n")
        while not (line := answers.readline()).startswith("dead"):
            reports.append(line.strip())
        done = _DONE in reports
        reports = [report for report in reports if report != _DONE]
        assert done or line == f"dead {-signal.SIGKILL}\n", (
            f"a worker failed by itself in {folder} after {reports[-1:]}; stderr has its traceback"
        )
        return Killed(folder, reports, done)

    def kills(
        self,
        folder: Path,
        n_kills: int,
        *,
        seed: int,
        reports: tuple[int, int] = (0, 25),
        seconds: float = 0.01,
    ) -> Iterator[Killed]:
        """Kill workers that go on with each other's work, at random moments.

        The kill comes after a number of reports within `reports`, and up to `seconds` later. A
        worker that is done is followed by one in a new subfolder.
        """
        rng, n_done = Random(seed), 0  # noqa: S311
        for _ in range(n_kills):
            killed = self.kill(
                folder / str(n_done),
                seed=rng.random(),
                n_reports=rng.randint(*reports),
                seconds=rng.uniform(0, seconds),
            )
            n_done += killed.done
            yield killed

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for pipe in self._pipes:
            pipe.close()
        self._zygote.wait(timeout=30)


def report(*words: object) -> None:
    """Write one line in one call, which a kill cannot tear."""
    os.write(1, (" ".join(map(str, words)) + "\n").encode())


def _fork(work: str, folder: str, seed: str) -> int:
    pid = os.fork()
    if pid:
        return pid
    try:
        report("pid", os.getpid())
        getattr(sys.modules[work], "work")(Path(folder), Random(seed))  # noqa: B009, S311
        report(_DONE)
    except BaseException:
        traceback.print_exc()
        raise
    finally:
        os._exit(1)


def _main(module: str) -> None:
    warm_up = getattr(importlib.import_module(module), "warm_up", None)
    if warm_up is not None:
        warm_up()
    while order := sys.stdin.readline().split():
        pid = _fork(module, *order)
        sys.stdin.readline()
        _, status = os.waitpid(pid, 0)
        report("dead", os.waitstatus_to_exitcode(status))


if __name__ == "__main__":
    _main(sys.argv[1])
