"""How fast rows become durable, beside plain SQLite, and what opening a large store costs.

    python -m benchmarks.bench_store [--out store.json] [--folder DIR] [--only append|open]

Appending: batches of 1, 100 and 10,000 rows (ten float32 and an int label), each durable before
the next. Plain SQLite is what the store could at best be: WAL, synchronous=FULL, one blob a
batch, made of the bytes of the numpy arrays. Both append in turn, batch by batch, in one process
on one disk, because a disk's speed changes by the second; each figure is the median over rounds.

Opening: 10 million rows in 500 sealed segments, in a fresh process.
"""

from __future__ import annotations

import argparse
import json
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.cost.measure import run_fresh
from driftquilt.store.disk import DiskStore

__all__ = ["main"]

_N_BATCHES = {1: 50, 100: 50, 10_000: 20}  # a round, by rows a batch
_N_ROUNDS = 25

_OPEN = """
import json, sys, time
from benchmarks.cost.measure import peak_bytes
from driftquilt.store.disk import DiskStore
before, started = peak_bytes(), time.perf_counter()
with DiskStore(sys.argv[1]) as store:
    seconds = time.perf_counter() - started
    found = {"seconds": seconds, "n_rows": store.n_appended, "n_segments": len(store.segments)}
    found |= {"peak_mb": peak_bytes() / 1e6, "peak_before_mb": before / 1e6}
    started = time.perf_counter()
    table = store.read(store.segments[0].number)
    found["first_read_seconds"] = time.perf_counter() - started
print(json.dumps(found))
"""


def main(arguments: list[str] | None = None) -> None:
    """Measure, print a Markdown table, and write JSON if asked to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--folder", type=Path, help="on the disk to be measured")
    parser.add_argument("--only", choices=["append", "open"])
    options = parser.parse_args(arguments)
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        if options.only != "open":
            found["append"] = [measure_append(Path(folder), n) for n in _N_BATCHES]
            print(append_table(found["append"]))  # noqa: T201
        if options.only != "append":
            found["open"] = measure_open(Path(folder))
            print(open_table(found["open"]))  # noqa: T201
    if options.out:
        options.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def measure_append(folder: Path, n_rows: int) -> dict[str, float]:
    """Durable rows per second of both, and the ratio, for batches of `n_rows`."""
    X, y = _rows(n_rows)
    batch = _batch(X, y)
    ours, plain = list[float](), list[float]()
    database = _open_plain(folder / f"{n_rows}.sqlite")
    with DiskStore(folder / str(n_rows)) as store:
        store.append(batch)  # writes the schema
        for _ in range(_N_ROUNDS):
            seconds = _time_in_turn(
                lambda: store.append(batch),
                lambda: _append_plain(database, X, y),
                _N_BATCHES[n_rows],
            )
            ours.append(seconds[0])
            plain.append(seconds[1])
    database.close()
    n_all = n_rows * _N_BATCHES[n_rows]
    return {
        "rows_per_batch": n_rows,
        "store": n_all / statistics.median(ours),
        "sqlite": n_all / statistics.median(plain),
        "ratio": statistics.median(p / s for p, s in zip(plain, ours, strict=True)),
    }


def measure_open(folder: Path, n_segments: int = 500, n_rows: int = 20_000) -> dict[str, float]:
    """Fill a store, then open it in a fresh process."""
    batch, path = _batch(*_rows(n_rows)), folder / "large"
    with DiskStore(path) as store:
        for number in range(n_segments):
            store.append(batch, {"position": number})
            store.seal(number)
    found: dict[str, float] = json.loads(run_fresh(_OPEN, str(path)))
    return found


def append_table(rows: list[dict[str, float]]) -> str:
    """Markdown."""
    lines = ["| rows a batch | store, rows/s | plain SQLite, rows/s | ratio |", "|" + " --- |" * 4]
    lines += [
        f"| {r['rows_per_batch']:,} | {r['store']:,.0f} | {r['sqlite']:,.0f} | {r['ratio']:.2f} |"
        for r in rows
    ]
    return "\n".join(lines) + "\n"


def open_table(found: dict[str, float]) -> str:
    """Markdown."""
    return (
        "| rows | segments | opening, s | peak memory, MB | first read of a segment, s |\n"
        f"|{' --- |' * 5}\n"
        f"| {found['n_rows']:,} | {found['n_segments']} | {found['seconds']:.3f} | "
        f"{found['peak_mb']:.0f} | {found['first_read_seconds']:.3f} |\n"
    )


def _open_plain(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None)
    for setting in ("journal_mode=WAL", "synchronous=FULL"):
        connection.execute(f"PRAGMA {setting}")
    connection.execute("CREATE TABLE batches (number INTEGER PRIMARY KEY, data BLOB)")
    return connection


def _append_plain(connection: sqlite3.Connection, X: Any, y: Any) -> None:
    connection.execute("INSERT INTO batches (data) VALUES (?)", (X.tobytes() + y.tobytes(),))


def _time_in_turn(
    one: Callable[[], object], other: Callable[[], object], repeats: int
) -> tuple[float, float]:
    seconds = [0.0, 0.0]
    for _ in range(repeats):
        for k, work in enumerate((one, other)):
            started = time.perf_counter()
            work()
            seconds[k] += time.perf_counter() - started
    return seconds[0], seconds[1]


def _rows(n_rows: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    return rng.normal(size=(n_rows, 10)).astype(np.float32), rng.integers(0, 2, n_rows)


def _batch(X: Any, y: Any) -> pa.RecordBatch:
    columns = {f"x{j}": pa.array(X[:, j].copy()) for j in range(X.shape[1])}
    return pa.record_batch({**columns, "label": pa.array(y)})


if __name__ == "__main__":
    main()
