"""Is the default for numbers ever worse than the naive choice? On public and generated tables.

Three models of the same net, the same encoding and the same scale of the target answer the rest of
a segment whose first 15 % are labelled: the default, one trained on all rows and one on the current
rows alone. With `--model lightgbm` they are LightGBM with `QuiltSelector`, and on both. The tables:

    bike, pollution, traffic        public (DRIFTQUILT_DATA/tables)
    abrupt, gradual, recurring      generated (`friedman`)

Defaults were chosen on the last six segments of the public tables and on seeds below 100 of the
generated ones; `--confirm` takes the segments before and seeds from 100 on. Run from the project's
folder:

    python -m benchmarks.regression_tables --out regression.csv
    python -m benchmarks.regression_tables --confirm
    python -m benchmarks.regression_tables --confirm --model lightgbm
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
from numpy.typing import NDArray
from rich.console import Console
from sklearn.base import clone

from driftquilt.core.segment import cut
from driftquilt.data.categories import Categories
from driftquilt.data.frame import read_frame
from driftquilt.paper.baselines.naive import CurrentSegment, FullData
from driftquilt.quilt.boosters import make_booster
from driftquilt.quilt.executor import one_blas_thread
from driftquilt.quilt.method import Training
from driftquilt.quilt.regressor import QuiltRegressor
from driftquilt.quilt.selector import QuiltSelector

PUBLIC = ("bike", "pollution", "traffic")
DRIFTS = ("abrupt", "gradual", "recurring")
_LABELLED = 0.15
_FEW = 4  # segments of a table that are predicted
_CHOSEN_ON = 6  # last segments of a public table that took part in choosing the defaults
_COVERAGE = 0.8
_SEGMENTS, _ROWS = 8, 1000  # of a generated stream


@dataclass(frozen=True)
class Case:
    """A table up to a segment: rows to learn from, and the rest of the segment."""

    table: str
    segment: int
    X: pd.DataFrame
    y: NDArray[np.float64]
    segments: NDArray[Any]
    X_test: pd.DataFrame
    y_test: NDArray[np.float64]


def friedman(seed: int, drift: str) -> tuple[pd.DataFrame, NDArray[Any], NDArray[Any]]:
    """Friedman's function of ten columns, whose roles change: at once, bit by bit, or back again.

    A concept is an order of the columns. `abrupt` has a new one from the sixth segment on, in
    `gradual` ever more rows follow it, and `recurring` has three that take turns.
    """
    rng = np.random.default_rng((seed, DRIFTS.index(drift)))
    orders = np.array([rng.permutation(10) for _ in range(3)])
    segments = np.repeat(np.arange(_SEGMENTS), _ROWS)
    X = rng.random((len(segments), 10))
    if drift == "abrupt":
        concept = (segments >= 5).astype(np.int64)  # noqa: PLR2004
    elif drift == "gradual":
        share = np.interp(np.arange(len(segments)) / _ROWS, [2, 7.5], [0, 1])
        concept = (rng.random(len(segments)) < share).astype(np.int64)
    else:
        concept = segments % 3
    a, b, c, d, e, *_ = np.take_along_axis(X, orders[concept], axis=1).T
    y = 10 * np.sin(np.pi * a * b) + 20 * (c - 0.5) ** 2 + 10 * d + 5 * e
    return pd.DataFrame(X).add_prefix("x"), y + rng.normal(size=len(y)), segments


def cases(names: list[str], seeds: list[int], *, confirm: bool) -> Iterator[Case]:
    """Every table, segment by segment."""
    folder = Path(os.environ["DRIFTQUILT_DATA"]) / "tables"
    for name in names:
        if name in PUBLIC:
            table = pd.read_parquet(folder / f"{name}.parquet")
            y, segments = table.pop("label").to_numpy(float), table.pop("segment").to_numpy()
            known = np.unique(segments)[: -_CHOSEN_ON if confirm else None]
            for segment in known[-_FEW:]:
                yield _cut(name, table, y, segments, int(segment))
        else:
            for seed in seeds:
                for segment in (_SEGMENTS - 2, _SEGMENTS - 1):
                    yield _cut(name, *friedman(seed, name), segment)


def _cut(
    name: str, table: pd.DataFrame, y: NDArray[Any], segments: NDArray[Any], segment: int
) -> Case:
    current = np.flatnonzero(segments == segment)
    n_labelled = max(8, int(_LABELLED * len(current)))
    seen = np.concatenate([np.flatnonzero(segments < segment), current[:n_labelled]])
    test = current[n_labelled:]
    parts = table.iloc[seen], y[seen], segments[seen]
    return Case(name, segment, *parts, table.iloc[test], y[test])


@dataclass(frozen=True)
class Answer:
    """What a method says of the test rows, its CPU seconds, and its intervals if it has some."""

    method: str
    predicted: NDArray[Any]
    cpu: float
    intervals: NDArray[Any] | None = None


def net_answers(case: Case, seed: int, settings: dict[str, Any]) -> Iterator[Answer]:
    """Return the default, and the same net on all rows and on the current ones."""
    started = time.process_time()
    model = QuiltRegressor(random_state=seed, **settings)
    model.fit(case.X, case.y, segments=case.segments)
    predicted = model.predict(case.X_test)
    cpu = time.process_time() - started
    yield Answer("default", predicted, cpu, model.predict_interval(case.X_test, _COVERAGE))
    assert model.encoder_ is not None  # noqa: S101
    codes, names = pd.factorize(case.segments)
    matrix = model.encoder_.transform(read_frame(case.X))
    history, current = cut(matrix, model.target_.scale(case.y), codes, list(names))
    test = model.encoder_.transform(read_frame(case.X_test))
    kinds: dict[str, type[Training]] = {"all": FullData, "current": CurrentSegment}
    for name, kind in kinds.items():
        started = time.process_time()
        naive: Any = kind(
            learner=model.make_learner(),
            n_folds=model.n_folds,
            max_epochs=model.max_epochs,
            patience=model.patience,
            seed=seed,
            sampling=model.sampling,
        )
        with one_blas_thread():
            outputs = np.sort(naive.adapt(history, current).predict(test), axis=1)
        answer = model.target_.restore(outputs[:, model.make_learner().loss.middle])
        yield Answer(name, answer, time.process_time() - started)


def booster_answers(case: Case, seed: int) -> Iterator[Answer]:
    """Return the answers of LightGBM with `QuiltSelector`, on all rows and on the current ones."""
    booster = make_booster("lightgbm", is_regression=True).set_params(n_jobs=1, random_state=seed)
    started = time.process_time()
    selector = QuiltSelector(booster, quilt=QuiltRegressor(n_jobs=1), random_state=seed)
    predicted = selector.fit(case.X, case.y, segments=case.segments).predict(case.X_test)
    yield Answer("default", predicted, time.process_time() - started)
    categories = Categories.fit(case.X)
    X, test = categories.apply(case.X), categories.apply(case.X_test)
    is_current = case.segments == case.segment
    for name, rows in (("all", np.ones(len(X), dtype=bool)), ("current", is_current)):
        started = time.process_time()
        answer = clone(booster).fit(X[rows], case.y[rows]).predict(test)
        yield Answer(name, answer, time.process_time() - started)


def scores(y: NDArray[Any], answer: Answer) -> dict[str, float]:
    """Absolute and squared error; of intervals the share of targets in them, and their width."""
    off = answer.predicted - y
    found = {"mae": float(np.abs(off).mean()), "rmse": float(np.sqrt((off**2).mean()))}
    if answer.intervals is not None:
        low, high = answer.intervals.T
        found["coverage"] = float(((y >= low) & (y <= high)).mean())
        found["width"] = float((high - low).mean())
    return found


def compare(results: pd.DataFrame) -> pd.DataFrame:
    """Return the default against the better naive choice: a line per table, means over the rest."""
    means = results.groupby(["table", "method"], sort=False)[["mae", "rmse", "cpu"]].mean()
    mae, rmse, cpu = (means[name].unstack("method") for name in ("mae", "rmse", "cpu"))
    ours = results[results["method"] == "default"].groupby("table")
    intervals = [name for name in ("coverage", "width") if name in results]
    better = mae[["all", "current"]].min(axis=1)
    return pd.DataFrame(
        {
            **{name: mae[name] for name in ("default", "all", "current")},
            "worse_by_%": 100 * (mae["default"] / better - 1),
            "rmse_by_%": 100 * (rmse["default"] / rmse[["all", "current"]].min(axis=1) - 1),
            **ours[intervals].mean(),
            "cpu": cpu["default"],
        }
    ).loc[results["table"].unique()]


def main() -> None:
    """Run from the command line."""
    console, progress = Console(width=160), Console(stderr=True)
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tables", default=",".join((*PUBLIC, *DRIFTS)), help="by comma")
    parser.add_argument("--model", choices=["net", "lightgbm"], default="net")
    parser.add_argument("--seeds", type=int, default=3, help="of generated tables and of models")
    parser.add_argument("--confirm", action="store_true", help="segments and seeds not chosen on")
    parser.add_argument("--settings", default="{}", help="of the net, as JSON")
    parser.add_argument("--out", type=Path, help="a CSV file for every single result")
    options = parser.parse_args()
    first = 100 if options.confirm else 0
    seeds = list(range(first, first + options.seeds))
    lines: list[dict[str, Any]] = []
    for case in cases(options.tables.split(","), seeds, confirm=options.confirm):
        for seed in seeds if case.table in PUBLIC else seeds[:1]:
            settings = {"n_jobs": 1, **json.loads(options.settings)}
            is_net = options.model == "net"
            answers = net_answers(case, seed, settings) if is_net else booster_answers(case, seed)
            for answer in answers:
                key = {"table": case.table, "segment": case.segment, "seed": seed}
                found = scores(case.y_test, answer)
                lines.append({**key, "method": answer.method, **found, "cpu": answer.cpu})
        progress.print(f"{case.table}, segment {case.segment}")
    results = pd.DataFrame(lines)
    if options.out is not None:
        results.to_csv(options.out, index=False)
    table = compare(results)
    console.print(table.round(3).to_string())
    shown = [name for name in ("worse_by_%", "coverage") if name in table]
    console.print("mean", table[shown].mean().round(3).to_dict())


if __name__ == "__main__":
    main()
