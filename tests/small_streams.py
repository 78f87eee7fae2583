"""Streams small enough to run every method on within seconds."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from driftquilt.datasets.synthetic import sine
from driftquilt.experiments.results import Result

#: What differs between two runs of the same cell.
TIMES = {"seconds", "cpu_seconds", "training_seconds", "training_cpu_seconds"}


def write_sine(path: Path, n_segments: int = 3, n_rows: int = 120) -> str:
    """A short sine stream as a CSV file; returns what the command line calls it."""
    stream = sine(n_segments, n_rows)
    lines = [",".join([*stream.feature_names, "label", "segment"])]
    for row, label, segment in zip(stream.features, stream.labels, stream.segments, strict=True):
        lines.append(",".join([*map(repr, row.tolist()), str(label), f"month {segment}"]))
    path.write_text("\n".join(lines) + "\n")
    return str(path)


def without_times(results: list[Result]) -> list[dict[str, Any]]:
    """The rows in order of their cells, but for what was timed."""
    rows = [asdict(result) for result in sorted(results, key=lambda result: result.cell)]
    return [{key: value for key, value in row.items() if key not in TIMES} for row in rows]
