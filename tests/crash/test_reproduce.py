"""A run that is killed again and again ends in the rows of one that was left alone."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from uuid import uuid4

import pytest

from driftquilt.paper.plan import make_plan
from driftquilt.paper.run import read_results, run_plan
from tests.processes import PATIENCE, cpu_seconds, expect_gone, find_processes, wait_for
from tests.small_streams import without_times, write_sine

METHODS = ["full_data", "sega", "quilt"]
N_KILLS = 6
N_JOBS = 2

pytestmark = pytest.mark.skipif(not Path("/proc").exists(), reason="finds processes by /proc")


class Reproduce:
    """`driftquilt reproduce` in a process group of its own, with a mark on all its processes."""

    def __init__(
        self, out: Path, dataset: str, n_seeds: int, methods: Sequence[str] = METHODS
    ) -> None:
        self.mark = uuid4().hex
        self.path = out / "results.jsonl"
        code = "from driftquilt.cli.app import main; main()"
        experiment = "selection" if "best_segments" in methods else "accuracy"
        options = [f"--datasets={dataset}", f"--methods={','.join(methods)}", f"--jobs={N_JOBS}"]
        options += [f"--seeds={n_seeds}", f"--out={out}"]
        self.process = subprocess.Popen(
            [sys.executable, "-c", code, "reproduce", experiment, *options],
            env={**os.environ, "DRIFTQUILT_TEST_MARK": self.mark},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    @property
    def running(self) -> bool:
        return self.process.poll() is None

    @property
    def n_lines(self) -> int:
        return self.path.read_bytes().count(b"\n") if self.path.exists() else 0

    def alive(self) -> list[int]:
        """Its processes, workers and all."""
        return find_processes(self.mark)

    def wait_for(self, condition: Callable[[], bool]) -> None:
        """Until the condition holds or the run has ended."""
        wait_for(lambda: not self.running or condition(), what="a condition of the run")

    def interrupt(self) -> int:
        """Send Ctrl-C to all its processes at once; return how many results there were by then."""
        os.killpg(self.process.pid, signal.SIGSTOP)
        n_lines = self.n_lines
        os.killpg(self.process.pid, signal.SIGINT)
        os.killpg(self.process.pid, signal.SIGCONT)
        return n_lines

    def expect_stopped(self) -> None:
        """It ends in one line that says how to go on, and leaves no process behind."""
        stdout, stderr = self.process.communicate(timeout=PATIENCE)
        assert self.process.returncode == 130
        assert stdout == ""
        assert stderr.splitlines()[-1].startswith("driftquilt: stopped; the same command ")
        assert "Traceback" not in stderr
        assert "KeyboardInterrupt" not in stderr
        expect_gone(self.mark)

    def close(self) -> None:
        for pid in self.alive():
            os.kill(pid, signal.SIGKILL)
        self.process.communicate(timeout=PATIENCE)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[[int], Reproduce]]:
    """Starts the command, always on the same stream and folder."""
    dataset, begun = write_sine(tmp_path / "short.csv"), list[Reproduce]()

    def begin(n_seeds: int) -> Reproduce:
        begun.append(Reproduce(tmp_path / "out", dataset, n_seeds))
        return begun[-1]

    yield begin
    for run in begun:
        run.close()


def test_a_run_that_is_killed_again_and_again_ends_in_the_same_rows(
    start: Callable[[int], Reproduce], tmp_path: Path
) -> None:
    rng, n_seeds, n_kills = random.Random(0), 5, 0  # noqa: S311
    while True:
        run = start(n_seeds)
        goal = run.n_lines + rng.randint(1, 4)
        if n_kills >= N_KILLS:
            run.wait_for(lambda: False)
        elif n_kills % 2:  # every other one dies while it is starting
            time.sleep(rng.uniform(0.2, 2))
        else:
            run.wait_for(lambda run=run, goal=goal: run.n_lines >= goal)  # type: ignore[misc]
            time.sleep(rng.uniform(0, 0.05))
        if not run.running:
            break
        run.process.kill()
        n_kills += 1
        expect_gone(run.mark)
    assert n_kills >= N_KILLS
    _, errors = run.process.communicate()
    assert run.process.returncode == 0, errors
    assert (tmp_path / "out" / "accuracy.md").exists()
    found = read_results(tmp_path / "out" / "results.jsonl")
    plan = make_plan(datasets=[str(tmp_path / "short.csv")], methods=METHODS, n_seeds=n_seeds)
    undisturbed = [r for results in run_plan(plan, tmp_path / "alone") for r in results]
    assert len({result.cell for result in found}) == len(found)
    assert without_times(found) == without_times(undisturbed)


@pytest.mark.parametrize("moment", ["workers start", "workers work"])
def test_ctrl_c_loses_nothing_and_begins_nothing(
    start: Callable[[int], Reproduce], moment: str
) -> None:
    run = start(20)
    if moment == "workers start":
        run.wait_for(lambda: len(run.alive()) >= 2 + N_JOBS)  # parent, tracker of resources
    else:
        run.wait_for(lambda: run.n_lines >= 2)
    assert run.running
    n_lines = run.interrupt()
    run.expect_stopped()
    assert n_lines <= len(read_results(run.path)) <= n_lines + 2 * N_JOBS


@pytest.mark.parametrize("while_stopped", [False, True])
def test_ctrl_c_does_not_wait_for_tasks_that_take_hours(
    tmp_path: Path, while_stopped: bool
) -> None:
    run = Reproduce(tmp_path, "random_rbf:14", 1, ["best_segments"])
    try:
        run.wait_for(lambda: sum(cpu_seconds(pid) > 8 for pid in run.alive()) >= N_JOBS)
        if while_stopped:  # then any thread may hear it, when it goes on
            run.interrupt()
        else:
            os.killpg(run.process.pid, signal.SIGINT)
        run.expect_stopped()
        assert run.n_lines == 0
    finally:
        run.close()
