"""Which settings should be the default? One change at a time, on streams of many kinds.

Settings are chosen on four of the paper's streams and four made for the purpose (`tune`), and
confirmed on the other five of the paper's (`confirm`), which took no part in any choice.
Resumes where it stopped. Run from the project's folder, with the real streams in DRIFTQUILT_DATA:

    python -m benchmarks.study_default --out study-out
    python -m benchmarks.study_default --out study-out --confirm --variants 'default,paper'
"""

from __future__ import annotations

import argparse
import math
import os
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import Progress

from benchmarks.study_streams import write_streams
from driftquilt.learners.mlp import MLP
from driftquilt.paper.plan import make_plan
from driftquilt.paper.run import Result, read_results, run_plan
from driftquilt.quilt.method import CANDIDATES, DEFAULT, PAPER, Method, Quilt
from driftquilt.search.shared import Shared

_AS_WRITTEN = argparse.RawDescriptionHelpFormatter

TUNE = ["sine", "random_rbf", "weather", "usenet2"]
CONFIRM = ["sea", "hyperplane", "electricity", "spam", "usenet1"]


def _paced(**changes: Any) -> Quilt:
    return replace(DEFAULT, sampling=replace(DEFAULT.sampling, **changes))


def _learning(**changes: Any) -> Quilt:
    return replace(DEFAULT, learner=MLP(**{"learning_rate": None, "batch_size": 64, **changes}))


def _bounds(*bounds: float, drop_by: float = math.inf, relative: bool = True) -> Quilt:
    return replace(DEFAULT, search=Shared(bounds, drop_by, relative))


VARIANTS: dict[str, Quilt] = {
    "default": DEFAULT,
    "paper": PAPER,
    "paper, shared bounds": Quilt(),
    **{f"{n} fold(s)": replace(DEFAULT, n_folds=n) for n in (1, 2, 3, 5, 8)},
    **{f"patience {n}": replace(DEFAULT, patience=n) for n in (4, 8, 10)},
    **{f"rate {r}": _learning(learning_rate=r) for r in (1e-3, 3e-3, 1e-2)},
    **{f"batches of {n}": _learning(batch_size=n) for n in (32, 128)},
    **{f"averaging {share}": _paced(averaging=share) for share in (0.0, 0.6, 0.9)},
    **{f"{n} rows scored": _paced(score_rows=n) for n in (64, 1024, None)},
    **{f"scored every {n} epochs": _paced(score_every=n) for n in (1, 6)},
    **{f"{n} rows trained": _paced(epoch_rows=n) for n in (1024, 4096, None)},
    "without the blend": replace(DEFAULT, blend=False),
    "three bounds": _bounds(0.0, 0.5, 2.0),
    "seven bounds": _bounds(0.0, 0.177, 0.354, 0.5, 0.707, 1.0, 2.0),
    "eight fixed bounds": _bounds(*np.arange(0.25, 2.25, 0.25).tolist(), relative=False),
    **{f"dropped at {share}": _bounds(*CANDIDATES, drop_by=share) for share in (0.3, 1.2)},
}


def make(name: str, seed: int, _: str) -> Method:
    """Return the variant of that name."""
    return replace(VARIANTS[name], seed=seed)


def summarise(results: Sequence[Result], tune: Sequence[str]) -> str:
    """Mean accuracy and CPU seconds per drift, by variant: over each group, and per stream."""
    cells: dict[tuple[str, str], list[Result]] = defaultdict(list)
    for result in results:
        cells[result.method, result.dataset].append(result)
    datasets = list(dict.fromkeys(result.dataset for result in results))
    groups = {
        "tune": [dataset for dataset in datasets if dataset in tune],
        "confirm": [dataset for dataset in datasets if dataset not in tune],
    }
    titles = ["", *groups, *(Path(dataset).stem for dataset in datasets)]
    lines = [f"| {' | '.join(titles)} |", "| --- |" + " ---: |" * (len(titles) - 1)]
    for method in dict.fromkeys(result.method for result in results):
        shown = [_say([cells[method, d] for d in group]) for group in groups.values()]
        shown += [_say([cells[method, d]]) for d in datasets]
        lines.append(f"| {method} | {' | '.join(shown)} |")
    return "\n".join(lines)


def _say(streams: Sequence[Sequence[Result]]) -> str:
    """Mean accuracy over streams, and the geometric mean of their seconds per drift."""
    if not streams or not all(streams):
        return ""
    accuracy = np.mean([np.mean([r.accuracy for r in results]) for results in streams])
    seconds = [np.log(np.mean([r.cpu_seconds for r in results])) for results in streams]
    return f"{accuracy:.4f}, {np.exp(np.mean(seconds)):.2f} s"


def main() -> None:
    """Run what is missing and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=_AS_WRITTEN)
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
