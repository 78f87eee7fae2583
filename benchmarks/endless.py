"""Whether a stream that does not end stays within bounds: memory, disk, rows per second.

    python -m benchmarks.endless [--rows 1000000] [--folder DIR] [--out endless.json]

Rows of four numbers, of which two matter, go through a `QuiltStream` with a `DiskStore`, a
thousand at a time; everything is as it is by default, but the classifier works on one thread.
Every 20,000 rows the concept changes: two curves, and both with their labels flipped, in turn.

Memory is what the process holds for itself (RssAnon, Linux only): mapped files are not in it. It
is looked at every 10 ms. What counts is the peak after the first 100,000 rows, over what was held
when they were learned: at most 1.5.

>>> X, y = make_batch(0, n_rows=3)
>>> [len(X), sorted(X[0]), len(y)]
[3, ['x0', 'x1', 'x2', 'x3'], 3]
"""

from __future__ import annotations

import argparse
import json
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from rich.console import Console
from rich.progress import track

from driftquilt.errors import DriftquiltError
from driftquilt.quilt.classifier import QuiltClassifier
from driftquilt.store.disk import DiskStore
from driftquilt.stream import QuiltStream

__all__ = ["Watch", "anonymous_bytes", "main", "make_batch", "measure"]

_STATUS = Path("/proc/self/status")
_BATCH = 1_000
_CONCEPT_ROWS = 20_000
_WARM_ROWS = 100_000
_MOST_GROWTH = 1.5


def make_batch(first_row: int, n_rows: int = _BATCH) -> tuple[list[dict[str, float]], list[int]]:
    """Rows from number `first_row` on, the same each time, and their labels."""
    draws = np.random.default_rng(first_row).random((n_rows, 4))
    concept = (first_row + np.arange(n_rows)) // _CONCEPT_ROWS % 4
    a, b = draws[:, 0], draws[:, 1]
    curve = np.where(concept < 2, np.sin(b), 0.5 + 0.3 * np.sin(3 * np.pi * b))  # noqa: PLR2004
    labels = (a < curve) ^ (concept % 2 == 1)
    columns = ("x0", "x1", "x2", "x3")
    return [dict(zip(columns, x, strict=True)) for x in draws.tolist()], labels.astype(int).tolist()


def anonymous_bytes() -> int:
    """Memory of this process that no file backs."""
    if _STATUS.exists():
        for line in _STATUS.read_text(encoding="utf-8").splitlines():
            if line.startswith("RssAnon:"):
                return 1024 * int(line.split()[1])
    raise DriftquiltError(f"{_STATUS} has no line RssAnon; measure memory on Linux")


class Watch:
    """The peak of `anonymous_bytes` since it was last asked for, from a thread of its own."""

    def __init__(self, seconds: float = 0.01) -> None:
        self._seconds, self._over = seconds, threading.Event()
        self._peak = anonymous_bytes()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def take_peak(self) -> int:
        """Return the peak so far, and start counting again."""
        peak, self._peak = self._peak, anonymous_bytes()
        return peak

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._over.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._over.wait(self._seconds):
            self._peak = max(self._peak, anonymous_bytes())


def measure(n_rows: int, folder: Path, warm_rows: int = _WARM_ROWS) -> dict[str, Any]:
    """Learn so many rows; what it cost."""
    events: Counter[str] = Counter()
    course: list[int] = []  # the peak of each `warm_rows` rows
    held = 0
    started, cpu = time.perf_counter(), time.process_time()
    stream = QuiltStream(QuiltClassifier(random_state=0, n_jobs=1), store=DiskStore(folder))
    with Watch() as watch, stream:
        batches = range(0, n_rows, _BATCH)
        for first in track(batches, console=Console(stderr=True), description="learning"):
            X, y = make_batch(first, min(_BATCH, n_rows - first))
            events.update(type(event).__name__ for event in stream.learn_many(X, y))
            if (first + len(y)) % warm_rows == 0:
                held = held or anonymous_bytes()
                course.append(watch.take_peak())
        events.update(type(event).__name__ for event in stream.finish_training())
        seconds, accuracy = time.perf_counter() - started, stream.accuracy
        course.append(watch.take_peak())
        n_segments = len(stream.store.segments)
    return {
        "n_rows": n_rows,
        "rows_per_second": n_rows / seconds,
        "cpu_seconds": time.process_time() - cpu,
        "accuracy": accuracy,
        "n_changes": (n_rows - 1) // _CONCEPT_ROWS,
        "events": dict(events),
        "n_segments": n_segments,
        "held_bytes": held,
        "peak_before_bytes": course[0],
        "peak_after_bytes": max(course[1:], default=0),
        "course_bytes": course,
        "growth": max(course[1:]) / held if held else None,
        "disk_bytes": sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()),
    }


def to_markdown(found: dict[str, Any]) -> str:
    """Return the figures as a table, and whether memory stayed within bounds."""
    names = ("held_bytes", "peak_before_bytes", "peak_after_bytes", "disk_bytes")
    mega = {name: f"{found[name] / 1e6:.0f}" for name in names}
    growth = found["growth"]
    bound = "" if growth is None else f" ({'at most' if growth <= _MOST_GROWTH else 'above'} 1.5)"
    rows = {
        "rows": f"{found['n_rows']:,}",
        "rows per second": f"{found['rows_per_second']:,.0f}",
        "accuracy": f"{found['accuracy']:.3f}",
        "changes of the concept": str(found["n_changes"]),
        "drifts found": str(found["events"].get("DriftFound", 0)),
        "trainings": str(found["events"].get("ModelTrained", 0)),
        "past segments kept": str(found["n_segments"]),
        f"memory after {_WARM_ROWS:,} rows, MB": mega["held_bytes"],
        "its peak until then, MB": mega["peak_before_bytes"],
        "its peak afterwards, MB": mega["peak_after_bytes"],
        "ratio": "too few rows" if growth is None else f"{growth:.2f}{bound}",
        "disk, MB": mega["disk_bytes"],
    }
    lines = [f"| {name} | {value} |" for name, value in rows.items()]
    return "\n".join(["| | |", "| --- | ---: |", *lines, ""])


def main(arguments: list[str] | None = None) -> None:
    """Measure, print a table, and write JSON if asked to."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.endless")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--folder", type=Path, help="on the disk to be measured")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        found = measure(options.rows, Path(folder) / "state")
    print(to_markdown(found))  # noqa: T201
    if options.out:
        options.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
