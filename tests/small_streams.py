"""Streams small enough to run every method on within seconds."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from driftquilt.paper.datasets.synthetic import sine
from driftquilt.paper.run import Result

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


def write_shop(path: Path) -> Path:
    """Three months of a shop, with text, a date, a boolean and gaps, as an engineer has them.

    The channel "app" begins in the test rows of June and the column "app version" with it, the
    third answer in July.
    """
    rng = np.random.default_rng(0)
    lines = ["price,visits,channel,member,since,app version,bought,month"]
    for month, name in enumerate(("may", "june", "july")):
        for row in range(120):
            price, visits, member = rng.uniform(1, 100), rng.poisson(3), rng.random() < 0.5
            channel = ("web", "shop", "")[rng.integers(3)]
            with_app = (month, row) >= (1, 20) and row % 4 == 0
            bought = "yes" if (price + 10 * visits < 80) ^ (month == 1) else "no"
            cells = [
                f"{price:.2f}",
                "" if row % 10 == 5 else str(visits),
                "app" if with_app else channel,
                str(member),
                f"2023-0{month + 5}-{row % 28 + 1:02d}",
                str(row % 3) if with_app else "",
                "later" if month == 2 and row % 9 == 0 else bought,
                name,
            ]
            lines.append(",".join(cells))
    path.write_text("\n".join(lines) + "\n")
    return path


def without_times(results: list[Result]) -> list[dict[str, Any]]:
    """The rows in order of their cells, but for what was timed."""
    rows = [asdict(result) for result in sorted(results, key=lambda result: result.cell)]
    return [{key: value for key, value in row.items() if key not in TIMES} for row in rows]
