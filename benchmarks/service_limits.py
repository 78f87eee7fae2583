"""What hostile clients cost the others: a body of 10 MB, and 200 that send a byte a second.

    python -m benchmarks.service_limits [--out FILE]

A service is started on a free port. One client asks for predictions all the time, over one
connection; its delays are what the others feel. On a machine that is busy with other things its
slowest delay alone says how much of them is not the service's.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import numpy as np

N_BYTES = 10_000_000
N_SLOW = 200
SECONDS = 10.0
LIMITS = {"413": 0.1, "held up": 0.05, "ratio": 2.0}
_ROW = b'{"rows": [{"a": 1, "b": "x"}], "keep": false}'
_SERVE = "from driftquilt.cli.app import main; main()"


def post(path: str, body: bytes, length: int | None = None) -> bytes:
    """Return a request; `length` if it says another than it has."""
    n_bytes = len(body) if length is None else length
    return (
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        f"Content-Length: {n_bytes}\r\n\r\n"
    ).encode() + body


async def read_answer(reader: asyncio.StreamReader) -> int:
    """Return the status of an answer, when all of it is here."""
    head = await reader.readuntil(b"\r\n\r\n")
    [length] = [
        int(line.split(b":")[1])
        for line in head.split(b"\r\n")
        if line.lower().startswith(b"content-length:")
    ]
    await reader.readexactly(length)
    return int(head.split()[1])


async def predict(port: int, delays: list[float]) -> None:
    """Ask again and again, with a short pause; until cancelled."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    request = post("/v1/streams/s/predict", _ROW)
    try:
        while True:
            began = time.perf_counter()
            writer.write(request)
            if await read_answer(reader) != 200:  # noqa: PLR2004
                raise RuntimeError("a prediction was refused")
            delays.append(time.perf_counter() - began)
            await asyncio.sleep(0.002)
    finally:
        writer.close()


@contextlib.asynccontextmanager
async def predicting(port: int) -> AsyncIterator[list[float]]:
    """Run a client that asks meanwhile, and yield its delays."""
    delays: list[float] = []
    task = asyncio.create_task(predict(port, delays))
    try:
        yield delays
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def send_large(port: int) -> float:
    """Seconds until the answer to a body that is too large."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    request = post("/v1/streams/s/predict", bytes(N_BYTES))
    began = time.perf_counter()
    writer.write(request)
    status = await read_answer(reader)
    took = time.perf_counter() - began
    writer.close()
    if status != 413:  # noqa: PLR2004
        raise RuntimeError(f"a large body was answered by {status}")
    return took


async def send_slowly(port: int) -> None:
    """Send a body, a byte a second, until cancelled or refused."""
    _, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(post("/v1/streams/s/predict", b"", length=10_000))
    with contextlib.suppress(ConnectionError):
        while True:
            await asyncio.sleep(1)
            writer.write(b" ")
            await writer.drain()


async def measure(port: int) -> dict[str, float]:
    """Seconds by name, and the ratio."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(post("/v1/streams", b'{"name": "s"}'))
    await read_answer(reader)
    writer.close()
    async with predicting(port):  # to warm up
        await asyncio.sleep(1)
    found: dict[str, float] = {}
    async with predicting(port) as delays:
        taken = []
        for _ in range(10):
            taken.append(await send_large(port))
            await asyncio.sleep(0.05)
        found["413"], found["held up"] = max(taken), max(delays)
    async with predicting(port) as delays:
        await asyncio.sleep(SECONDS)
        found["p99 alone"], found["slowest alone"] = float(np.quantile(delays, 0.99)), max(delays)
    slow = [asyncio.create_task(send_slowly(port)) for _ in range(N_SLOW)]
    async with predicting(port) as delays:
        await asyncio.sleep(SECONDS)
        found["p99 among slow"] = float(np.quantile(delays, 0.99))
    for task in slow:
        task.cancel()
    await asyncio.gather(*slow, return_exceptions=True)
    found["ratio"] = found["p99 among slow"] / found["p99 alone"]
    return found


@contextlib.contextmanager
def service(folder: Path) -> Iterator[int]:
    """Run a service on a free port, and yield the port when it is ready."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = int(free.getsockname()[1])
    command = [sys.executable, "-c", _SERVE, "serve", "--store", str(folder), "--port", str(port)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # noqa: S603
    try:
        for _ in range(600):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                break
            time.sleep(0.1)
        yield port
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()


def to_text(found: dict[str, float]) -> str:
    """Return the figures in a sentence, as `docs/results.md` has it."""
    return (
        f"a body of {N_BYTES // 10**6} MB is refused within {1000 * found['413']:.0f} ms, another "
        f"client waits {1000 * found['held up']:.0f} ms at most meanwhile, and {N_SLOW} slow "
        f"clients make the p99 of the others {found['ratio']:.1f} times what it is alone"
    )


def main() -> None:
    """Measure and tell."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.service_limits")
    parser.add_argument("--out", type=Path, help="where to keep the figures, as JSON")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, service(Path(folder)) as port:
        found = asyncio.run(measure(port))
    unit = {"ratio": ("", 1)}
    words = {
        "413": f"answer to {N_BYTES // 10**6} MB, slowest of 10",
        "held up": "another client meanwhile, slowest",
        "p99 alone": "p99 of a client alone",
        "slowest alone": "slowest of a client alone",
        "p99 among slow": f"p99 beside {N_SLOW} slow clients",
        "ratio": "ratio",
    }
    for name, value in found.items():
        mark, factor = unit.get(name, ("ms", 1000))
        most = f"at most {LIMITS[name] * factor:g} {mark}" if name in LIMITS else ""
        sys.stdout.write(f"{words[name]:<40}{value * factor:8.1f} {mark:<3} {most}\n")
    sys.stdout.write(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}\n")
    if options.out is not None:
        options.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
