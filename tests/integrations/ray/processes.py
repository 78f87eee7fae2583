"""The processes of a Ray that was started here: found by a mark, and killed."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import numpy as np

from tests.processes import find_processes

MARK = "DRIFTQUILT_TEST_RAY"
FAST_HEALTH_CHECKS = {
    "health_check_initial_delay_ms": 1000,
    "health_check_period_ms": 500,
    "health_check_timeout_ms": 1000,
    "health_check_failure_threshold": 2,
}


@contextmanager
def killed_workers(n_kills: int, name: str = "ray::_") -> Iterator[list[int]]:
    """While the block runs, kill so many workers that are busy with a task, one now and then."""
    over, killed, draw = threading.Event(), list[int](), np.random.default_rng(0)

    def kill() -> None:
        while len(killed) < n_kills and not over.wait(0.02):
            busy = [pid for pid in find_processes(os.environ[MARK], name) if pid not in killed]
            if busy:
                killed.append(int(draw.choice(busy)))
                with suppress(ProcessLookupError):
                    os.kill(killed[-1], signal.SIGKILL)

    thread = threading.Thread(target=kill, daemon=True)
    thread.start()
    try:
        yield killed
    finally:
        over.set()
        thread.join()
