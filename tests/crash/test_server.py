"""A service that is killed at any moment, or stopped under load, loses nothing it acknowledged."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import httpx
import pytest

from tests.crash.load import SETTINGS, Load
from tests.processes import cpu_seconds, wait_for
from tests.server.running import Running, stored_numbers

GROWTH = 2.0  # times what one of the first starts computes


def stored(running: Running) -> Counter[int]:
    """How often each numbered row is in the store."""
    return Counter(stored_numbers(running.store / "streams/s"))


def make_stream(running: Running) -> None:
    body = {"name": "s", "settings": SETTINGS, "random_state": 0}
    httpx.post(f"{running.url}/v1/streams", json=body, timeout=60).raise_for_status()


def wait_some(load: Load, rng: Random) -> None:
    """Until some moment; or one in a training, or right at the change of a model."""
    kind = rng.choice(["any", "training", "change"])
    before = load.ask()["model"]
    happened: dict[str, Callable[[dict[str, Any]], bool]] = {
        "any": lambda _: True,
        "training": lambda status: bool(status["training"]),
        "change": lambda status: status["model"] != before,
    }
    end = time.monotonic() + 3
    while time.monotonic() < end and not happened[kind](load.ask()):
        time.sleep(0.005)
    time.sleep(rng.uniform(0, 1.0 if kind == "any" else 0.2))


def changes(load: Load) -> tuple[list[int], int | None]:
    """Versions that callers made answer, by the service's own account, and the one that answers."""
    while True:
        events = load.ask("/events?limit=1000")["events"]
        status = load.ask()
        if status["last_event"] == (events[-1]["number"] if events else 0):
            break
    crowned = [e["model"] for e in events if e["event"] in ("ModelPromoted", "ModelRolledBack")]
    asked_for = [e["model"] for e in events if e["event"] == "ModelRolledBack"]
    assert status["model"] == (crowned[-1] if crowned else None)
    return asked_for, status["model"]


def expect_all(load: Load) -> None:
    """While nobody calls: what was acknowledged is there, besides what was about to be."""
    assert load.wrong == []
    assert load.ask()["n_rows"] >= len(load.acknowledged)
    found, _ = changes(load)
    n = min(20, len(load.changes), len(found) - 1)
    assert n < 1 or load.changes[-n:] in (found[-n:], found[-n - 1 : -1])


def kill_often(folder: Path, n_kills: int, seed: int) -> None:
    rng, starts = Random(seed), list[float]()  # noqa: S311
    with Running(folder) as running:
        make_stream(running)
        with Load(running, seed) as load:
            for _ in range(n_kills):
                wait_some(load, rng)
                running.kill()
                load.pause()
                running.begin()
                starts.append(cpu_seconds(running.pid))
                expect_all(load)
                load.go_on()
            wait_for(lambda: load.wrong or load.ask()["model"])
        expect_all(load)
        running.end()
        assert len(load.acknowledged) > 100
        assert stored(running) == Counter(load.acknowledged)
    assert min(starts[-3:]) < GROWTH * min(starts[:3])  # it does not grow with what is stored


@pytest.mark.timeout(900)
def test_five_kills_lose_nothing_double_nothing_and_keep_the_model(tmp_path: Path) -> None:
    kill_often(tmp_path, 5, seed=0)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_a_hundred_kills_lose_nothing_double_nothing_and_keep_the_model(tmp_path: Path) -> None:
    kill_often(tmp_path, 100, seed=1)


def test_sigterm_under_load_ends_in_order_and_loses_nothing(tmp_path: Path) -> None:
    with Running(tmp_path) as running:
        make_stream(running)
        with Load(running, seed=2) as load:
            for _ in range(2):
                wait_for(lambda: load.wrong or load.ask()["training"])
                running.terminate()
                time.sleep(0.05)
                running.terminate()
                assert running.wait() == 0
                load.pause()
                running.begin()
                expect_all(load)
                load.go_on()
        running.end()
        assert stored(running) == Counter(load.acknowledged)
        assert "Traceback" not in running.log
        assert "TrainingFailed" not in running.log


def test_a_request_that_is_under_way_at_sigterm_is_answered(tmp_path: Path) -> None:
    rows = [{"number": n, "x": n % 7} for n in range(8_000)]
    body = {"rows": rows, "labels": ["no" if n % 3 else "yes" for n in range(8_000)]}
    answers: list[httpx.Response] = []
    with Running(tmp_path) as running:
        make_stream(running)
        url = f"{running.url}/v1/streams/s"
        under_way = threading.Thread(
            target=lambda: answers.append(httpx.post(f"{url}/labels", json=body, timeout=60))
        )
        under_way.start()
        wait_for(lambda: httpx.get(url, timeout=60).json()["n_rows"])
        running.terminate()
        assert running.wait() == 0
        under_way.join()
        assert answers[0].json()["learned"] == 8_000
        assert stored(running) == Counter(range(8_000))


def test_a_training_that_sigterm_interrupts_begins_again(tmp_path: Path) -> None:
    with Running(tmp_path) as running:
        make_stream(running)
        url = f"{running.url}/v1/streams/s"
        rows = [{"number": n, "x": n % 7} for n in range(40)]
        body = {"rows": rows, "labels": ["no" if n % 3 else "yes" for n in range(40)]}
        httpx.post(f"{url}/labels", json=body, timeout=60).raise_for_status()
        assert httpx.post(f"{url}/adapt", timeout=60).status_code == 202
        running.end()
        running.begin()
        wait_for(lambda: httpx.get(url, timeout=60).json()["model"] == 1)
        events = httpx.get(f"{url}/events", timeout=60).json()["events"]
        assert "TrainingFailed" not in [event["event"] for event in events]
        running.end()
