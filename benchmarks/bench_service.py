"""How many predictions a second the service answers, beside a plain endpoint, and while it trains.

    python -m benchmarks.bench_service [--out service.json] [--seconds 8] [--rounds 5]

One process each, 16 connections of wrk on loopback, ten features, requests of 1 and of 100 rows.
The service has all its guards on: token, limits, request ids, metrics, a line of log for each
request, and rows that wait for their labels durably before the answer goes out. The yardstick is
`plain_endpoint`, which has none of that. The two are measured in turn, because a shared machine
changes by the minute; each figure is the median over rounds.

Then the same load on the service alone, quiet, and while one training after the other runs.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import random
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import httpx

from driftquilt.server.tokens import Tokens

__all__ = ["main", "to_text"]

_FEATURES = [f"f{number}" for number in range(10)]
_LUA = """
wrk.method = "POST"
wrk.body = {body}
wrk.headers["Content-Type"] = "application/json"
wrk.headers["Authorization"] = "Bearer {token}"
done = function(summary, latency)
  io.write(string.format("found %d %d %d %d %d %d %d\\n", summary.requests, summary.duration,
    latency:percentile(50), latency:percentile(99), summary.errors.status,
    summary.errors.connect + summary.errors.read + summary.errors.write, summary.errors.timeout))
end
"""


@dataclass(frozen=True)
class Load:
    """What wrk saw; latencies in milliseconds."""

    per_second: float
    p50: float
    p99: float
    n_errors: int


def main(arguments: list[str] | None = None) -> None:
    """Measure, print Markdown tables, and write JSON if asked to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--seconds", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args(arguments)
    if shutil.which("wrk") is None:
        parser.error("wrk is not installed; it is Debian's package wrk")
    with tempfile.TemporaryDirectory() as folder:
        found = _measure(Path(folder), options.seconds, options.rounds)
    sys.stdout.write(to_text(found) + "\n")
    if options.out:
        options.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def _measure(folder: Path, seconds: int, rounds: int) -> dict[str, Any]:
    token = Tokens(folder / "tokens.json").create("bench", ["admin"])
    with _serve(folder) as ours, _plain() as plain:
        client = httpx.Client(
            base_url=f"{ours}/v1", headers={"Authorization": f"Bearer {token}"}, timeout=60
        )
        _teach(client)
        loads: dict[str, list[Load]] = {}
        for _ in range(rounds):
            for n_rows in (1, 100):
                body = _body(n_rows)
                named = json.dumps({"columns": _FEATURES, **json.loads(body)})
                targets = {
                    "service": (f"{ours}/v1/streams/bench/predict", named),
                    "plain": (f"{plain}/predict", body),
                }
                for name, (url, sent) in targets.items():
                    load = _wrk(folder, url, sent, token, seconds)
                    loads.setdefault(f"{name} {n_rows}", []).append(load)
        url = f"{ours}/v1/streams/bench/predict"
        for _ in range(rounds):
            sent = json.dumps({"columns": _FEATURES, **json.loads(_body(1))})
            loads.setdefault("quiet", []).append(_wrk(folder, url, sent, token, seconds))
            with _training(client) as n_trained:
                load = _wrk(folder, url, sent, token, seconds)
            loads.setdefault("training", []).append(load)
        return {
            "loads": {name: [asdict(load) for load in some] for name, some in loads.items()},
            "n_trained": n_trained[0],
        }


def _teach(client: httpx.Client) -> None:
    """Make a stream with a model and some past."""
    client.post("/streams", json={"name": "bench", "random_state": 0}).raise_for_status()
    rng = random.Random(0)  # noqa: S311
    for part in range(20):
        rows = [[rng.random() for _ in _FEATURES] for _ in range(100)]
        labels = [int((row[0] > row[1]) == (part < 10)) for row in rows]  # noqa: PLR2004
        sent = {"columns": _FEATURES, "rows": rows, "labels": labels}
        client.post("/streams/bench/labels", json=sent).raise_for_status()
    until = time.monotonic() + 120
    while client.get("/streams/bench").json()["model"] is None and time.monotonic() < until:
        time.sleep(0.2)


@contextlib.contextmanager
def _training(client: httpx.Client) -> Iterator[list[int]]:
    """One training after the other."""
    stop, n_trained = threading.Event(), [0]

    def train() -> None:
        while not stop.is_set():
            if not client.get("/streams/bench").json()["training"]:
                client.post("/streams/bench/adapt").raise_for_status()
                n_trained[0] += 1
            time.sleep(0.05)

    thread = threading.Thread(target=train)
    thread.start()
    time.sleep(0.5)
    try:
        yield n_trained
    finally:
        stop.set()
        thread.join()


def _body(n_rows: int) -> str:
    rng = random.Random(1)  # noqa: S311
    return json.dumps({"rows": [[rng.random() for _ in _FEATURES] for _ in range(n_rows)]})


def _wrk(folder: Path, url: str, body: str, token: str, seconds: int) -> Load:
    script = folder / "load.lua"
    script.write_text(_LUA.format(body=json.dumps(body), token=token), encoding="utf-8")
    command = ["wrk", "-t1", "-c16", f"-d{seconds}s", "-s", str(script), url]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout  # noqa: S603
    match = re.search(r"found (.*)", told)
    if match is None:
        raise RuntimeError(f"wrk said nothing of use: {told}")
    requests, micros, p50, p99, *errors = map(int, match[1].split())
    return Load(requests / micros * 1e6, p50 / 1e3, p99 / 1e3, sum(errors))


@contextlib.contextmanager
def _serve(folder: Path) -> Iterator[str]:
    port = _free_port()
    program = str(Path(sys.executable).with_name("driftquilt"))
    command = [program, "serve", "--store", str(folder)]
    with _running([*command, "--port", str(port), "--rate", "1000000"], port, folder) as url:
        yield url


@contextlib.contextmanager
def _plain() -> Iterator[str]:
    port = _free_port()
    command = [sys.executable, "-m", "benchmarks.plain_endpoint", str(port)]
    with _running(command, port, None) as url:
        yield url


@contextlib.contextmanager
def _running(command: list[str], port: int, folder: Path | None) -> Iterator[str]:
    with contextlib.ExitStack() as opened:
        log: Any = subprocess.DEVNULL
        if folder is not None:
            log = opened.enter_context((folder / "log").open("wb"))
        process = subprocess.Popen(command, stderr=log)  # noqa: S603
        try:
            _await(port)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(60)


def _await(port: int) -> None:
    until = time.monotonic() + 60
    while time.monotonic() < until:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.1)
    raise RuntimeError(f"nothing listens on port {port}")


def _free_port() -> int:
    with socket.socket() as made:
        made.bind(("127.0.0.1", 0))
        return int(made.getsockname()[1])


def to_text(found: dict[str, Any]) -> str:
    """Return the figures as Markdown, as `docs/results.md` shows them."""
    loads = found["loads"]

    def median(name: str, key: str) -> float:
        return statistics.median(float(load[key]) for load in loads[name])

    def ratio(name: str, other: str, key: str) -> float:
        pairs = zip(loads[name], loads[other], strict=True)
        return statistics.median(float(one[key] / two[key]) for one, two in pairs)

    lines = [
        "| load | requests/s | p50 ms | p99 ms | p99 / p50 | errors |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for name, some in loads.items():
        spread = statistics.median(load["p99"] / load["p50"] for load in some)
        lines.append(
            f"| {name} | {median(name, 'per_second'):,.0f} | {median(name, 'p50'):.2f} | "
            f"{median(name, 'p99'):.2f} | {spread:.2f} | {sum(x['n_errors'] for x in some)} |"
        )
    lines += [
        "",
        f"Requests a second, service / plain: {ratio('service 1', 'plain 1', 'per_second'):.2f} "
        f"with 1 row, {ratio('service 100', 'plain 100', 'per_second'):.2f} with 100. p99 while "
        f"training / quiet: {ratio('training', 'quiet', 'p99'):.2f}.",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
