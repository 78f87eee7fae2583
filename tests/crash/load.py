"""Callers that never give up: whatever is sent is sent again until it is acknowledged.

Every row carries a number that no other row has, so that the store can be asked which rows it
has, and how often.
"""

from __future__ import annotations

import itertools
import threading
import time
import uuid
from collections.abc import Callable
from random import Random
from typing import Any

import httpx

from tests.server.running import Running

SETTINGS = {"n_wait": 50, "segment_rows": 400, "max_segments": 100_000, "max_models": 100}
_PATH = "/v1/streams/s"
_PAUSE = 0.02  # seconds between two tries


class Load:
    """Threads that predict, label, learn and change models, for as long as it is entered."""

    def __init__(self, running: Running, seed: int) -> None:
        self.running, self._seed = running, seed
        self.acknowledged: list[int] = []  # numbers of rows
        self.changes: list[int] = []  # versions that were promoted or rolled back to
        self.wrong: list[object] = []
        self._numbers = itertools.count()
        self._may_go, self._over = threading.Event(), threading.Event()
        tasks: list[Callable[[httpx.Client, Random], None]] = [
            *(self._predict_and_label, self._learn) * 2,
            self._change,
        ]
        self._threads = [
            threading.Thread(target=self._work, args=[work, Random(f"{seed} {number}")])  # noqa: S311
            for number, work in enumerate(tasks)
        ]

    def __enter__(self) -> Load:
        self._may_go.set()
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def end(self) -> None:
        """When everything that was begun is acknowledged."""
        self._over.set()
        self._may_go.set()
        for thread in self._threads:
            thread.join(timeout=120)
            assert not thread.is_alive()

    def pause(self) -> None:
        self._may_go.clear()

    def go_on(self) -> None:
        self._may_go.set()

    def ask(self, path: str = "") -> Any:
        return httpx.get(f"{self.running.url}{_PATH}{path}", timeout=60).raise_for_status().json()

    def _work(self, work: Callable[[httpx.Client, Random], None], rng: Random) -> None:
        with httpx.Client(base_url=self.running.url, timeout=60) as client:
            while not self._over.is_set():
                try:
                    work(client, rng)
                except Exception as error:  # the test tells of it
                    self.wrong.append(error)
                    raise

    def _post(self, client: httpx.Client, path: str, body: Any = None) -> httpx.Response:
        """What was answered, in the end."""
        headers = {"Idempotency-Key": uuid.uuid4().hex}
        while True:
            self._may_go.wait()
            try:
                answer = client.post(f"{_PATH}{path}", json=body, headers=headers)
            except httpx.TransportError:
                time.sleep(_PAUSE)
                continue
            if answer.status_code not in (429, 503):
                return answer
            time.sleep(_PAUSE)

    def _rows(self, rng: Random) -> tuple[list[int], list[dict[str, Any]], list[str]]:
        numbers = [next(self._numbers) for _ in range(rng.randint(1, 20))]
        draws = [rng.random() for _ in numbers]
        rows = [
            {"number": n, "x": x, "where": rng.choice("abc")}
            for n, x in zip(numbers, draws, strict=True)
        ]
        turned = numbers[0] // 700 % 2 == 1
        return numbers, rows, ["yes" if (x > 0.5) != turned else "no" for x in draws]

    def _predict_and_label(self, client: httpx.Client, rng: Random) -> None:
        numbers, rows, labels = self._rows(rng)
        answered = self._post(client, "/predict", {"rows": rows}).raise_for_status().json()
        pairs = [{"id": i, "label": y} for i, y in zip(answered["ids"], labels, strict=True)]
        rng.shuffle(pairs)
        half = len(pairs) // 2
        for some in (pairs[:half], pairs[half:]):
            if some:
                self._check(self._post(client, "/labels", {"labels": some}), len(some))
        self.acknowledged += numbers

    def _learn(self, client: httpx.Client, rng: Random) -> None:
        numbers, rows, labels = self._rows(rng)
        answer = self._post(client, "/labels", {"rows": rows, "labels": labels})
        self._check(answer, len(numbers))
        self.acknowledged += numbers

    def _check(self, answer: httpx.Response, n_rows: int) -> None:
        answered = answer.raise_for_status().json()
        if (answered["learned"], answered["repeated"], answered["refused"]) != (n_rows, 0, []):
            self.wrong.append(answered)

    def _change(self, client: httpx.Client, rng: Random) -> None:
        time.sleep(rng.uniform(0, 0.3))
        kind = rng.choice(["adapt", "promote", "rollback"])
        if kind == "adapt":
            answer = self._post(client, "/adapt")
        elif kind == "rollback":
            answer = self._post(client, "/models/rollback")
        else:
            answer = self._post(client, f"/models/{rng.randint(1, 12)}/promote")
        if answer.status_code == 200:
            self.changes.append(answer.json()["model"])
        elif answer.status_code not in (202, 404, 409):  # no such model, or none yet
            self.wrong.append(answer.text)
