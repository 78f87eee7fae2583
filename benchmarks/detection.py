"""How soon each detector finds the drifts of a stream, and how often it cries wolf.

    python -m benchmarks.detection [--datasets a,b] [--detectors adwin,ddm] [--seed 0] [--out DIR]

The streams whose drifts are known, in original order, each through a `QuiltStream` with that
detector at its defaults. The errors it watches are the stream's own, so a detector that fires
well also makes the errors it watches next. The guard neither cools down nor asks for a least
number of rows: every alarm counts, and every alarm seals a segment.

A drift at row d is found by the first alarm from d on that comes before the next drift; its
delay is the number of rows of the new concept that were learned by then, the one of the alarm
included. Every other alarm is false: those before the first drift, and each further one between
two drifts.

>>> judge([150, 230, 260], drifts=[100, 200, 300])
Judged(n_found=2, delay=40.0, n_false=1)
"""

from __future__ import annotations

import argparse
import statistics
import time
from bisect import bisect_left
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.progress import Progress

from benchmarks.prequential import (
    RESULTS,
    Line,
    add_line,
    chosen,
    labelled_rows,
    read_lines,
    versions,
)
from driftquilt.errors import InputError
from driftquilt.paper.datasets import load
from driftquilt.paper.datasets.stream import Stream
from driftquilt.quilt.classifier import QuiltClassifier
from driftquilt.stream import QuiltStream
from driftquilt.stream.events import DriftFound
from driftquilt.stream.settings import Guard

__all__ = ["DATASETS", "DETECTORS", "Judged", "judge", "main", "measure", "run", "to_markdown"]

#: Those of the nine whose concepts change at known rows.
DATASETS = ("sea", "sine", "usenet1", "usenet2")
DETECTORS = (
    "experts", "adwin", "ddm", "eddm", "hddm_a", "hddm_w", "kswin", "page_hinkley", "hdddm",
    "dawidd",
)  # fmt: skip


class Judged(NamedTuple):
    """Drifts found, their mean delay in rows (None if none was found), and false alarms."""

    n_found: int
    delay: float | None
    n_false: int


def judge(alarms: Sequence[int], drifts: Sequence[int]) -> Judged:
    """Score alarms; each is the number of rows learned by then, in rising order."""
    first: dict[int, int] = {}  # alarm by the drift that it found
    for alarm in alarms:
        behind = bisect_left(drifts, alarm) - 1  # a drift at row d begins after d rows
        if behind >= 0:
            first.setdefault(drifts[behind], alarm)
    delays = [alarm - drift for drift, alarm in first.items()]
    delay = statistics.fmean(delays) if delays else None
    return Judged(len(delays), delay, len(alarms) - len(delays))


def measure(stream: Stream, detector: str, seed: int) -> Line:
    """One detector over one stream."""
    if not stream.drift_points:
        raise InputError(f"the drifts of {stream.name} are not known; take one with drift_points")
    guard = Guard(cool_down=0, min_rows=0)
    quilt = QuiltStream(QuiltClassifier(random_state=seed), detector, guard=guard, wait=True)
    started = time.process_time()
    alarms = [
        event.row
        for x, y in labelled_rows(stream)
        for event in quilt.learn_one(x, y)
        if isinstance(event, DriftFound)
    ]
    return {
        "dataset": stream.name,
        "detector": detector,
        "seed": seed,
        **judge(alarms, stream.drift_points)._asdict(),
        "n_drifts": len(stream.drift_points),
        "alarms": alarms,
        "accuracy": quilt.accuracy,
        "n_rows": quilt.n_rows,
        "cpu_seconds": round(time.process_time() - started, 2),
        "versions": versions(),
    }


def run(streams: Sequence[Stream], detectors: Sequence[str], seed: int, path: Path) -> list[Line]:
    """Measure what the file lacks and add it there; gives the lines of this seed."""
    done = {(line["dataset"], line["detector"], line["seed"]) for line in read_lines(path)}
    left = [(s, d) for d in detectors for s in streams if (s.name, d, seed) not in done]
    with Progress(console=Console(stderr=True), disable=not left) as progress:
        bar = progress.add_task("", total=sum(len(stream.labels) for stream, _ in left))
        for stream, detector in left:
            progress.update(bar, description=f"{detector} on {stream.name}")
            add_line(path, measure(stream, detector, seed))
            progress.advance(bar, len(stream.labels))
    return [line for line in read_lines(path) if line["seed"] == seed]


def to_markdown(lines: Sequence[Line]) -> str:
    """Return a row per detector and, for each stream, what was found."""
    by = {(line["dataset"], line["detector"]): line for line in lines}
    datasets = list(dict.fromkeys(line["dataset"] for line in lines))
    detectors = list(dict.fromkeys(line["detector"] for line in lines))
    table = [f"| | {' | '.join(datasets)} |", f"| --- |{' ---: |' * len(datasets)}"]
    for detector in detectors:
        cells = [_cell(by.get((dataset, detector))) for dataset in datasets]
        table.append(f"| {detector} | {' | '.join(cells)} |")
    legend = "Each cell: drifts found, mean delay in rows, false alarms; accuracy of the stream."
    return "\n".join(["# Detection", "", legend, "", *table, ""])


def main(arguments: list[str] | None = None) -> None:
    """Run what is left, write the table and print it."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.detection")
    parser.add_argument("--datasets", help=f"of {', '.join(DATASETS)}")
    parser.add_argument("--detectors", help=f"of {', '.join(DETECTORS)}")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args(arguments)
    detectors = chosen(options.detectors, DETECTORS, "detector")
    datasets = chosen(options.datasets, DATASETS, "data set with known drifts")
    streams = [load(name, original_order=True) for name in datasets]
    lines = run(streams, detectors, options.seed, options.out / "detection.jsonl")
    text = to_markdown(lines)
    (options.out / "detection.md").write_text(text, encoding="utf-8")
    print(text)  # noqa: T201


def _cell(line: Line | None) -> str:
    if line is None:
        return ""
    delay = "-" if line["delay"] is None else f"{line['delay']:.0f}"
    accuracy = f"{line['accuracy']:.3f}".lstrip("0")
    return f"{line['n_found']}/{line['n_drifts']}, {delay}, {line['n_false']}; {accuracy}"


if __name__ == "__main__":
    main()
