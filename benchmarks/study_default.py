"""Which settings should be the default? One change at a time, on streams of many kinds.

Settings are chosen on four of the paper's streams and four made for the purpose (`tune`), and
confirmed on the other five of the paper's (`confirm`), which took no part in any choice.
Resumes where it stopped. Run from the project's folder, with the real streams in DRIFTQUILT_DATA:

    python benchmarks/study_default.py --out study-out --seeds 5
"""

from __future__ import annotations

import argparse
import os
import sys
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import Progress

sys.path.insert(0, str(Path(__file__).parent))

from study_streams import write_streams

from driftquilt.core.pace import FULL_PACE
from driftquilt.experiments.plan import make_plan
from driftquilt.experiments.results import Result, read_results
from driftquilt.experiments.run import run_plan
from driftquilt.learners.mlp import MLP
from driftquilt.methods.base import Method
from driftquilt.methods.quilt import DEFAULT, PAPER, Quilt
from driftquilt.search.shared import Shared

TUNE = ["sine", "random_rbf", "weather", "usenet2"]
CONFIRM = ["sea", "hyperplane", "electricity", "spam", "usenet1"]


def _paced(**changes: Any) -> Quilt:
    return replace(DEFAULT, pace=replace(DEFAULT.pace, **changes))


def _bounds(step: float, **drop: Any) -> Shared:
    return Shared(tuple(step * k for k in range(1, round(2 / step) + 1)), **drop)


VARIANTS: dict[str, Quilt] = {
    "default": DEFAULT,
    "paper": PAPER,
    "exact, two folds": Quilt(n_folds=2),
    **{f"{n} fold(s)": replace(DEFAULT, n_folds=n) for n in (1, 2, 3, 4, 5, 8)},
    **{f"patience {n}": replace(DEFAULT, patience=n) for n in (4, 6, 8, 10)},
    **{f"rate {r}": replace(DEFAULT, learner=MLP(learning_rate=r)) for r in (2e-3, 4e-3, 1e-2)},
    "batches of 64": replace(DEFAULT, learner=MLP(learning_rate=6e-3, batch_size=64)),
    "no averaging": _paced(averaging=0.0),
    "averaging 0.9": _paced(averaging=0.9),
    "all rows scored": _paced(score_rows=None),
    "64 rows scored": _paced(score_rows=64),
    "scored every epoch": _paced(score_every=1),
    "scored every 6 epochs": _paced(score_every=6),
    "all rows trained": _paced(epoch_rows=None),
    "1024 rows trained": _paced(epoch_rows=1024),
    "4096 rows trained": _paced(epoch_rows=4096),
    "none dropped": replace(DEFAULT, search=_bounds(0.125)),
    "dropped at 10 %": replace(DEFAULT, search=_bounds(0.125, drop_by=0.1)),
    "dropped at 40 %": replace(DEFAULT, search=_bounds(0.125, drop_by=0.4)),
    "8 bounds": replace(DEFAULT, search=_bounds(0.25, drop_by=0.2)),
    "32 bounds": replace(DEFAULT, search=_bounds(0.0625, drop_by=0.2)),
    "full pace, dropped": replace(DEFAULT, pace=FULL_PACE),
}


def make(name: str, seed: int, _: str) -> Method:
    return replace(VARIANTS[name], seed=seed)


def summarise(results: Sequence[Result], tune: Sequence[str]) -> str:
    """Mean accuracy and geometric mean of CPU seconds per drift, by variant and group."""
    cells: dict[tuple[str, str], list[Result]] = defaultdict(list)
    for result in results:
        cells[result.method, result.dataset].append(result)
    datasets = list(dict.fromkeys(result.dataset for result in results))
    groups = {
        "tune": [d for d in datasets if d in tune],
        "confirm": [d for d in datasets if d not in tune],
    }
    names = [Path(d).stem for d in datasets]
    lines = [
        "| | " + " | ".join([*groups, *names]) + " |",
        "| --- |" + " ---: |" * (len(names) + 2),
    ]
    for method in dict.fromkeys(result.method for result in results):
        accuracy = {
            d: np.mean([r.accuracy for r in cells[method, d]] or [np.nan]) for d in datasets
        }
        seconds = {
            d: np.mean([r.cpu_seconds for r in cells[method, d]] or [np.nan]) for d in datasets
        }
        means = [
            f"{np.mean([accuracy[d] for d in group]):.4f}, "
            f"{np.exp(np.mean([np.log(seconds[d]) for d in group])):.2f} s"
            for group in groups.values()
            if group
        ]
        lines.append(
            f"| {method} | "
            + " | ".join([*means, *(f"{accuracy[d]:.3f}, {seconds[d]:.2f}" for d in datasets)])
            + " |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=Path("study-out"))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--variants", help="some of them, separated by commas")
    parser.add_argument("--confirm", action="store_true", help="the five streams kept apart")
    options = parser.parse_args()
    tune = [*TUNE, *write_streams(options.out / "streams")]
    variants = options.variants.split(",") if options.variants else list(VARIANTS)
    plan = make_plan(
        datasets=CONFIRM if options.confirm else tune,
        methods=variants,
        n_seeds=options.seeds,
        extra={name: partial(make, name) for name in variants},
    )
    with Progress(console=Console(stderr=True)) as progress:
        task = progress.add_task("study", total=len(plan.cells))
        for new in run_plan(plan, options.out, jobs=options.jobs):
            progress.advance(task, len(new))
    table = summarise(read_results(options.out / "results.jsonl"), tune)
    (options.out / "study.md").write_text(table + "\n")
    print(table)  # noqa: T201


if __name__ == "__main__":
    main()
