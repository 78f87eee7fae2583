"""The service as it is run: `driftquilt serve` in a process of its own, and rows that drift."""

from __future__ import annotations

import itertools
import math
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

from driftquilt.client import Client
from driftquilt.errors import DriftquiltError
from driftquilt.server.tokens import Tokens
from driftquilt.server.worker import open_store
from tests.processes import PATIENCE, free_port, wait_for

HOSTILE = "<img src=x onerror=alert(1)>\"'& <b>bold</b>"
_SERVE = "from driftquilt.cli.app import main; main()"


class Running:
    """A service on a free port; it can be ended and begun again on the same port and store.

    `settings` are those of `ServeSettings`, by name.
    """

    def __init__(self, folder: Path, **settings: object) -> None:
        self.store, self._log_path = folder / "state", folder / "serve.log"
        self._settings = {f"DRIFTQUILT_SERVE_{k.upper()}": str(v) for k, v in settings.items()}
        self.port = free_port()
        self._log = self._log_path.open("ab")

    def __enter__(self) -> Running:
        try:
            self.begin()
        except BaseException:
            self._close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def tokens(self) -> Tokens:
        return Tokens(self.store / "tokens.json")

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def log(self) -> str:
        """What it has said so far."""
        return self._log_path.read_text(encoding="utf-8")

    def client(self, token: str | None = None) -> Client:
        return Client(self.url, token=token)

    def begin(self) -> None:
        """Returns when it is ready."""
        serve = ["serve", "--store", str(self.store), "--port", str(self.port)]
        self._process = subprocess.Popen(
            [sys.executable, "-c", _SERVE, *serve], stdout=self._log, stderr=self._log,
            env={**os.environ, **self._settings},
        )  # fmt: skip
        with Client(self.url, retries=0) as client:  # until the test's own limit: it may compile
            wait_for(lambda: self._is_ready(client), timeout=math.inf)

    def kill(self) -> None:
        """As if the power went."""
        self._process.kill()
        self._process.wait()

    def terminate(self) -> None:
        """Ask it to stop, as a service manager does; `wait` for the end."""
        self._process.send_signal(signal.SIGTERM)

    def wait(self) -> int:
        """Return its exit code."""
        return self._process.wait(timeout=PATIENCE)

    def end(self) -> None:
        """In order, as a service manager does."""
        self.terminate()
        assert self.wait() == 0

    def _close(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        self._log.close()

    def _is_ready(self, client: Client) -> bool:
        assert self._process.poll() is None, "the service ended by itself; see serve.log"
        try:
            return bool(client.ready())
        except DriftquiltError:
            return False


def stored_numbers(stream: Path) -> list[int]:
    """The column `number` of all rows in a stream's folder, which nobody may have open."""
    with open_store(stream) as store:
        tables = [*(store.read(segment.number) for segment in store.segments), store.open_rows()]
    return [int(n) for table in tables if len(table) for n in table["number"].to_pylist()]


def drifting_rows(n: int, *, flipped: bool, seed: int) -> tuple[list[dict[str, Any]], list[str]]:
    """Rows of two numbers and a text of which the first number decides; flipped, the other way."""
    draws = np.random.default_rng(seed).uniform(size=(n, 2))
    rows = [
        {"a": a, HOSTILE: b, "where": HOSTILE if b > 0.5 else "here"} for a, b in draws.tolist()
    ]
    return rows, [HOSTILE if (a > 0.5) != flipped else "no" for a in draws[:, 0]]


def feed(client: Client, name: str, n: int, *, flipped: bool, seed: int = 0) -> None:
    """Labelled rows, a few at a time, as they would come."""
    rows, labels = drifting_rows(n, flipped=flipped, seed=seed)
    for start in range(0, n, 25):
        part = slice(start, start + 25)
        client.stream(name).learn(rows[part], labels[part])


def feed_until_chosen(client: Client, name: str, *, n_past: int, flipped: bool) -> None:
    """Rows until a model took over that could choose among so many past segments.

    None come while one trains: on a busy machine they would be the next segments by then.
    """
    stream, seeds = client.stream(name), itertools.count(100 * n_past)

    def is_there() -> bool:
        if stream.status()["training"]:
            return False
        chosen = stream.selections()["selections"]
        if any(one["model"] and len(one["patches"]) == n_past for one in chosen):
            return True
        feed(client, name, 25, flipped=flipped, seed=next(seeds))
        return False

    wait_for(is_there)
