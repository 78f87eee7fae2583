"""What QuiltSelector gives a LightGBM that has other ways to deal with the past.

LightGBM with its own defaults answers the rest of a segment whose first rows are labelled, trained
on rows that are chosen in seven ways:

    selector  QuiltSelector
    all       every row
    current   the current rows alone
    last3     the current rows and the two segments before
    fading    weights that halve every so many segments, chosen by held-out current rows
    column    every row, with the number of the segment as a column
    balanced  every row, the current ones weighted up to half of the total

The tables: the nine streams of the paper (10 % of a segment are labelled), four public tables and
generated messy ones with and without drift (15 %). Defaults were chosen on the last two segments
of each stream, on two of the last six segments of the public tables, and on seed 0 of the
generated ones. `--confirm` takes segments and seeds that took no part: the two segments before of
a stream, the last two before those six of a public table, seeds from 100 on. Run from the
project's folder:

    python -m benchmarks.selector --out selector.csv
    python -m benchmarks.selector --confirm

With `--model auto`, `choose_model` is compared with the two models that it chooses from, the net
and HistGradientBoostingClassifier, each with selection:

    python -m benchmarks.selector --model auto --confirm
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import lightgbm as lgb
import numpy as np
import pandas as pd  # type: ignore[import-untyped]
from numpy.typing import NDArray
from rich.console import Console

from benchmarks.messy_tables import messy_table
from benchmarks.real_tables import POSITIVES, PUBLIC, Case, scores
from driftquilt import QuiltSelector, choose_model
from driftquilt.data.categories import Categories

STREAMS = (
    "sea", "sine", "hyperplane", "random_rbf", "electricity", "weather", "spam", "usenet1",
    "usenet2",
)  # fmt: skip
POLICIES = ("all", "current", "last3", "fading", "column", "balanced")
AUTO = ("auto", ("net", "hgb"))
HALF_LIVES = (0.5, 1, 2, 4, 8)  # segments
_SEGMENTS = {  # which are predicted, from the end, by kind and whether they confirm
    ("streams", False): (-1, -2), ("streams", True): (-3, -4),
    ("public", False): (-1, -4), ("public", True): (-7, -8),
    ("messy", False): (-1,), ("messy", True): (-1,),
}  # fmt: skip
_LABELLED = {"streams": 0.10, "public": 0.15, "messy": 0.15}
_N_FOLDS = 3
_CLOSE = 0.003


def cases(kinds: list[str], seeds: list[int], *, confirm: bool) -> Iterator[Case]:
    """Every table of some kinds, segment by segment."""
    data = Path(os.environ["DRIFTQUILT_DATA"])
    for kind, folder, names in (("streams", data, STREAMS), ("public", data / "tables", PUBLIC)):
        for name in names if kind in kinds else ():
            table = pd.read_parquet(folder / f"{name}.parquet")
            y, segments = pd.factorize(table.pop("label"), sort=True)[0], table.pop("segment")
            yield from _cut(name, kind, table, y, segments.to_numpy(), confirm)
    for seed in seeds if "messy" in kinds else ():
        for positives in POSITIVES:
            made = messy_table(seed, positives=positives)
            yield from _cut(f"messy {positives:.0%}", "messy", *made, confirm)
        yield from _cut(
            "steady 10%", "messy", *messy_table(seed, positives=0.1, drift=False), confirm
        )


def _cut(
    name: str,
    kind: str,
    table: pd.DataFrame,
    y: NDArray[Any],
    segments: NDArray[Any],
    confirm: bool,
) -> Iterator[Case]:
    known = np.unique(segments)
    places = [place for place in _SEGMENTS[kind, confirm] if len(known) + place >= 1]
    for segment in known[places]:
        current = np.flatnonzero(segments == segment)
        n_labelled = max(8, int(_LABELLED[kind] * len(current)))
        past = np.flatnonzero(segments < segment)
        seen, test = np.concatenate([past, current[:n_labelled]]), current[n_labelled:]
        parts = table.iloc[seen], y[seen].astype(np.int64), segments[seen]
        yield Case(name, int(segment), *parts, table.iloc[test], y[test].astype(np.int64))


def model() -> lgb.LGBMClassifier:
    """Return the LightGBM that every way trains."""
    return lgb.LGBMClassifier(n_jobs=1, verbose=-1, random_state=0)


def answers(case: Case) -> Iterator[tuple[str, NDArray[Any], float]]:
    """Yield what each way predicts for the test rows, and its CPU seconds."""
    started = time.process_time()
    selector = QuiltSelector(model(), random_state=0)
    selector.fit(case.X, case.y, segments=case.segments)
    cpu = time.process_time() - started
    n_classes = int(max(case.y.max(), case.y_test.max())) + 1
    answer = np.zeros((len(case.y_test), n_classes))
    answer[:, selector.classes_] = selector.predict_proba(case.X_test)
    yield "selector", answer, cpu
    categories = Categories.fit(case.X)
    X, X_test = categories.apply(case.X), categories.apply(case.X_test)
    age = np.searchsorted(np.unique(case.segments), case.segments)
    age = age.max() - age
    weights = {
        "all": np.ones(len(age)),
        "current": (age == 0).astype(float),
        "last3": (age < 3).astype(float),  # noqa: PLR2004
        "balanced": np.where(age == 0, max(1.0, (age > 0).sum() / (age == 0).sum()), 1.0),
        "fading": _fading(X, case.y, age),
    }
    for name, weight in weights.items():
        started = time.process_time()
        answer = _fit(X, case.y, weight, X_test, n_classes)
        yield name, answer, time.process_time() - started
    column = "segment number"
    answer = _fit(
        X.assign(**{column: age}), case.y, weights["all"], X_test.assign(**{column: 0}), n_classes
    )
    yield "column", answer, np.nan


def choices(case: Case) -> Iterator[tuple[str, NDArray[Any], float]]:
    """Yield the predictions of the net, HistGradientBoostingClassifier and the better of both."""
    started = time.process_time()
    choice = choose_model(case.X, case.y, case.segments)
    cpu = time.process_time() - started
    n_classes = int(max(case.y.max(), case.y_test.max())) + 1
    for name, fitted in {**choice.models, "auto": choice.model}.items():
        answer = np.zeros((len(case.y_test), n_classes))
        answer[:, fitted.classes_] = fitted.predict_proba(case.X_test)
        yield name, answer, cpu if name == "auto" else np.nan


def _fit(
    X: pd.DataFrame, y: NDArray[Any], weight: NDArray[Any], X_test: pd.DataFrame, n_classes: int
) -> NDArray[np.float64]:
    """Return the probabilities of test rows after a fit on the rows that have a weight."""
    rows, answer = weight > 0, np.zeros((len(X_test), n_classes))
    if len(np.unique(y[rows])) == 1:
        answer[:, y[rows][0]] = 1
        return answer
    fitted = model().fit(X[rows], y[rows], sample_weight=weight[rows] / weight[rows].mean())
    answer[:, fitted.classes_] = fitted.predict_proba(X_test)
    return answer


def _fading(X: pd.DataFrame, y: NDArray[Any], age: NDArray[Any]) -> NDArray[np.float64]:
    """Return the fading weights that held-out blocks of current rows like best."""
    current, n_classes = np.flatnonzero(age == 0), int(y.max()) + 1
    options = [0.5 ** (age / half_life) for half_life in HALF_LIVES]
    losses = []
    for weight in options:
        loss = 0.0
        for block in np.array_split(current, _N_FOLDS):
            held_out = weight.copy()
            held_out[block] = 0
            answer = _fit(X, y, held_out, X.iloc[block], n_classes)
            loss -= np.log(np.maximum(answer[np.arange(len(block)), y[block]], 1e-6)).sum()
        losses.append(loss)
    return options[int(np.argmin(losses))]


def compare(results: pd.DataFrame, score: str, ours: str, others: Sequence[str]) -> pd.DataFrame:
    """One score of every way, a line per table, with the distance to the best other way."""
    table = results.groupby(["table", "method"])[score].mean().unstack("method").dropna()
    table = table[[ours, *others]]
    table["lead"] = table[ours] - table[list(others)].max(axis=1)
    return table


def main() -> None:
    """Run from the command line."""
    console, progress = Console(width=160), Console(stderr=True)
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", choices=("lightgbm", "auto"), default="lightgbm")
    parser.add_argument("--kinds", default="streams,public,messy", help="by comma")
    parser.add_argument("--tables", help="some of the tables alone, by comma")
    parser.add_argument("--seeds", type=int, default=1, help="of generated tables")
    parser.add_argument("--confirm", action="store_true", help="segments and seeds not chosen on")
    parser.add_argument("--out", type=Path, help="a CSV file for every single result")
    options = parser.parse_args()
    first = 100 if options.confirm else 0
    seeds, kinds = list(range(first, first + options.seeds)), options.kinds.split(",")
    lines: list[dict[str, Any]] = []
    is_auto = options.model == "auto"
    tables = None if options.tables is None else options.tables.split(",")
    for case in cases(kinds, seeds, confirm=options.confirm):
        if tables is not None and case.table not in tables:
            continue
        for method, answer, cpu in choices(case) if is_auto else answers(case):
            found = {"auc": np.nan, **scores(case.y_test, answer), "cpu": cpu}
            lines.append({"table": case.table, "segment": case.segment, "method": method, **found})
        results = pd.DataFrame(lines)
        if options.out is not None:
            results.to_csv(options.out, index=False)
        progress.print(f"{case.table}, segment {case.segment}")
    for score in ("accuracy", "auc"):
        table = compare(results, score, *(AUTO if is_auto else ("selector", POLICIES)))
        console.print(score, table.round(4).to_string(), "mean", table.mean().round(4).to_dict())
        console.print(f"best or within {_CLOSE}: {(table['lead'] >= -_CLOSE).mean():.0%}")
    if is_auto:
        return
    cpu = results.groupby(["table", "method"])["cpu"].mean().unstack("method")
    fits = (cpu["selector"] - cpu["all"]) / cpu["all"]
    console.print("overhead in fits on all rows", fits.round(1).to_dict(), f"{fits.median():.1f}")


if __name__ == "__main__":
    main()
