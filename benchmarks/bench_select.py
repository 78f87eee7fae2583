"""From a file to a decision: how long `driftquilt select` takes, and in how much memory.

    python -m benchmarks.bench_select [--gigabytes 5] [--folder DIR] [--out FILE]

Makes a shop's history of 24 months with 20 columns (numbers, text, dates, booleans, missing
values) in which customers leave for reasons that change and come back, as a CSV of 200,000 rows
and, with `--gigabytes`, as a Parquet file of that size. Tells seconds and peak memory of each
command, run as a user would; `--folder` keeps the files and the reports, `--out` the figures.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import csv
from pyarrow import parquet as pq

__all__ = ["N_MONTHS", "main", "month_of_rows", "to_text", "write_csv", "write_parquet"]

N_MONTHS = 24
N_ROWS = 200_000  # of the CSV
_CITIES = np.array(["Oslo", "Rome", "Bonn", "Lyon", "Porto", "Graz", "Ghent", "Turku"])
_PLANS = np.array(["free", "basic", "family", "team"])
_MISSING = 0.05  # share of values
_REASONS = ("price", "speed", "price", "age")  # why customers leave, six months each


def month_of_rows(month: int, n_rows: int, rng: np.random.Generator) -> Any:
    """Return the rows of a month as a record batch."""
    numbers = {f"usage_{j}": rng.normal(size=n_rows) for j in range(9)}
    price, speed = rng.gamma(2.0, 10.0, n_rows), rng.normal(50, 15, n_rows)
    age, calls = rng.integers(18, 90, n_rows), rng.poisson(2, n_rows)
    plan = rng.integers(0, len(_PLANS), n_rows)
    pull = {
        "price": (price - 20) / 10 + (plan == 0),
        "speed": (50 - speed) / 10 + 0.5 * calls - 1,
        "age": (age - 54) / 15 - (plan == 2),  # noqa: PLR2004
    }[_REASONS[month * len(_REASONS) // N_MONTHS]]
    leaves = rng.random(n_rows) < 1 / (1 + np.exp(-2 * (pull + numbers["usage_0"])))
    start = np.datetime64("2024-01-01") + np.timedelta64(30 * month, "D")
    day = start + rng.integers(0, 30, n_rows).astype("timedelta64[D]")
    rest = {
        "price": _with_gaps(price, rng),
        "speed": _with_gaps(speed, rng),
        "age": pa.array(age),
        "calls": pa.array(calls),
        "city": _with_gaps(_CITIES[rng.integers(0, len(_CITIES), n_rows)], rng),
        "plan": pa.array(_PLANS[plan]),
        "joined": pa.array(day - rng.integers(0, 3000, n_rows).astype("timedelta64[D]")),
        "seen": pa.array(day),
        "mobile": pa.array(rng.integers(0, 2, n_rows).astype(bool)),
        "month": pa.array([f"{2024 + month // 12}-{month % 12 + 1:02}"] * n_rows),
        "leaves": pa.array(np.where(leaves, "yes", "no")),
    }
    return pa.record_batch({**{name: pa.array(of) for name, of in numbers.items()}, **rest})


def _with_gaps(values: NDArray[Any], rng: np.random.Generator) -> Any:
    return pa.array(values, mask=rng.random(len(values)) < _MISSING)


def write_csv(path: Path, n_rows: int) -> None:
    """Write the history as CSV."""
    rng = np.random.default_rng(0)
    first = month_of_rows(0, 1, rng)
    with csv.CSVWriter(path, first.schema) as writer:
        for month in range(N_MONTHS):
            writer.write_batch(month_of_rows(month, n_rows // N_MONTHS, rng))


def write_parquet(path: Path, n_bytes: int) -> int:
    """Write the history as Parquet of at least so many bytes; return how many rows."""
    rng, n_rows = np.random.default_rng(0), 0
    schema = month_of_rows(0, 1, rng).schema
    with pq.ParquetWriter(path, schema) as writer:
        for month in range(N_MONTHS):
            for batch in _until(path, n_bytes * (month + 1) // N_MONTHS, month, rng):
                writer.write_batch(batch)
                n_rows += batch.num_rows
    return n_rows


def _until(path: Path, n_bytes: int, month: int, rng: np.random.Generator) -> Iterator[Any]:
    while path.stat().st_size < n_bytes:
        yield month_of_rows(month, 500_000, rng)


def measure(data: Path, n_rows: int, out: Path) -> dict[str, float]:
    """Wall seconds, CPU seconds and peak memory of the command in a process of its own."""
    run = "from driftquilt.cli.app import main; main()"
    asked = ["select", str(data), "--label", "leaves", "--segment-by", "month", "--out", str(out)]
    started = time.perf_counter()
    child = subprocess.Popen([sys.executable, "-c", run, *asked], stdout=subprocess.DEVNULL)  # noqa: S603
    _, status, used = os.wait4(child.pid, 0)
    seconds, code = time.perf_counter() - started, os.waitstatus_to_exitcode(status)
    if code:
        raise SystemExit(f"driftquilt select {data} ended with exit code {code}")
    return {
        "n_rows": n_rows,
        "n_bytes": data.stat().st_size,
        "seconds": seconds,
        "cpu_seconds": used.ru_utime + used.ru_stime,
        "peak_bytes": used.ru_maxrss * 1024,
    }


def to_text(found: dict[str, dict[str, float]]) -> str:
    """Return the figures in a sentence, as `docs/results.md` has it."""
    return "; ".join(
        f"{kind} of {of['n_bytes'] / 1e6:,.0f} MB ({of['n_rows']:,} rows) takes "
        f"{of['seconds']:.0f} seconds ({of['cpu_seconds']:.0f} of CPU) and "
        f"{of['peak_bytes'] / 1e9:.2f} GB of memory"
        for kind, of in found.items()
    )


def main() -> None:
    """Make the files, measure and tell."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bench_select")
    parser.add_argument("--gigabytes", type=float, default=0)
    parser.add_argument("--folder", type=Path, help="where to keep files and reports")
    parser.add_argument("--out", type=Path, help="where to keep the figures, as JSON")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as passing:
        folder = options.folder or Path(passing)
        folder.mkdir(parents=True, exist_ok=True)
        table = folder / "shop.csv"
        write_csv(table, N_ROWS)
        found = {"CSV": measure(table, N_ROWS, folder / "csv")}
        if options.gigabytes:
            large = folder / "shop.parquet"
            n_rows = write_parquet(large, int(options.gigabytes * 1e9))
            found["Parquet"] = measure(large, n_rows, folder / "parquet")
    sys.stdout.write(f"{to_text(found)}\n")
    if options.out is not None:
        options.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
