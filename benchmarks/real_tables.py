"""Is the default ever worse than the naive choice? On tables as people have them.

Three models of the same net and the same encoding answer the rest of a segment whose first 15 %
are labelled: the default, one trained on all rows and one on the current rows alone. The tables:

    public     bank, credit, electricity_full, employment (DRIFTQUILT_DATA/tables)
    messy      generated (`messy_tables`), 25, 10, 3 and 1 % positives
    steady     the same without any drift
    logged     the messy ones with logarithms taken and outliers removed by hand
    clustered  generated (`clustered_tables`), with and without drift: rows are like those before
    unseen     sensors whose labelled rows show some of the classes only

Defaults were chosen on the last six segments of the public tables and on seeds below 20 of the
generated ones; `--confirm` takes the segments before and seeds from 100 on. Employment has four
segments, which all took part; it gets other seeds alone. Run from the project's folder:

    python -m benchmarks.real_tables --out real-tables.csv
    python -m benchmarks.real_tables --confirm
"""

from __future__ import annotations

import argparse
import csv
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
from numpy.typing import NDArray
from rich.console import Console
from sklearn.metrics import log_loss, roc_auc_score

from benchmarks.clustered_tables import CLUSTERED, clustered_table
from benchmarks.messy_tables import messy_table
from driftquilt import QuiltClassifier
from driftquilt.core.segment import cut
from driftquilt.data.frame import read_frame
from driftquilt.paper import METHODS as NAMED
from driftquilt.quilt.executor import one_blas_thread

PUBLIC = ("bank", "credit", "electricity_full", "employment")
POSITIVES = (0.25, 0.10, 0.03, 0.01)
METHODS = ("default", "all", "current")
_LABELLED = 0.15
_FEW = 4  # segments of a table that are predicted
_CHOSEN_ON = 6  # last segments of a public table that took part in choosing the defaults
_BINS = 10  # of the calibration error


@dataclass(frozen=True)
class Case:
    """A table up to a segment: rows to learn from, and the rest of the segment."""

    table: str
    segment: int
    X: pd.DataFrame
    y: NDArray[np.int64]
    segments: NDArray[Any]
    X_test: pd.DataFrame
    y_test: NDArray[np.int64]


def cases(kinds: list[str], seeds: list[int], *, confirm: bool) -> Iterator[Case]:
    """Every table of some kinds, segment by segment."""
    if "public" in kinds:
        folder = Path(os.environ["DRIFTQUILT_DATA"]) / "tables"
        for name in PUBLIC:
            table = pd.read_parquet(folder / f"{name}.parquet")
            label, segment = table.pop("label"), table.pop("segment").to_numpy()
            yield from _cut(name, table, pd.factorize(label, sort=True)[0], segment, confirm)
    for kind in ("messy", "steady", "logged"):
        for positives in POSITIVES if kind in kinds else ():
            for seed in seeds:
                settings = {"drift": kind != "steady", "heavy_tails": kind != "logged"}
                table, y, month = messy_table(seed, positives=positives, **settings)
                yield from _cut(f"{kind} {positives:.0%}", table, y, month, confirm=False)
    for name in CLUSTERED if "clustered" in kinds else ():
        for drift in (False, True):
            for seed in seeds:
                parts = clustered_table(seed, name, drift=drift)
                yield from _cut(f"{name} {'drift' if drift else 'steady'}", *parts, confirm=False)
    for seed in seeds if "unseen" in kinds else ():
        yield from _cut("unseen", *_unseen(seed), confirm=False)


def _cut(
    name: str, table: pd.DataFrame, y: NDArray[Any], segments: NDArray[Any], confirm: bool
) -> Iterator[Case]:
    known = np.unique(segments)
    if confirm and len(known) > _CHOSEN_ON:
        known = known[:-_CHOSEN_ON]
    for segment in known[max(1, len(known) - _FEW) :]:
        current = np.flatnonzero(segments == segment)
        n_labelled = max(8, int(_LABELLED * len(current)))
        past = np.flatnonzero(segments < segment)
        seen, test = np.concatenate([past, current[:n_labelled]]), current[n_labelled:]
        parts = table.iloc[seen], y[seen].astype(np.int64), segments[seen]
        yield Case(name, int(segment), *parts, table.iloc[test], y[test].astype(np.int64))


def _unseen(seed: int) -> tuple[pd.DataFrame, NDArray[Any], NDArray[Any]]:
    """Ten classes that come object by object, so that the first rows show only a few of them."""
    rng = np.random.default_rng((seed, 5))
    centres, n_segments, n_rows = rng.normal(size=(10, 8)), 6, 1500
    rows, labels = [], []
    for shift in rng.normal(scale=0.15, size=(n_segments, 8)):
        y = np.repeat(rng.permutation(np.tile(np.arange(10), 6)), n_rows // 60)
        rows.append(centres[y] + shift + rng.normal(scale=0.8, size=(len(y), 8)))
        labels.append(y)
    segments = np.repeat(np.arange(n_segments), n_rows)
    table = pd.DataFrame(np.concatenate(rows), columns=[f"sensor {k}" for k in range(8)])
    return table, np.concatenate(labels), segments


def answers(case: Case, seed: int) -> Iterator[tuple[str, NDArray[Any], float]]:
    """Yield what each method predicts for the test rows, and its CPU seconds."""
    n_classes = int(max(case.y.max(), case.y_test.max())) + 1
    classes = np.arange(n_classes)
    started = time.process_time()
    clf = QuiltClassifier(random_state=seed)
    clf.partial_fit(case.X, case.y, classes=classes, segments=case.segments)
    yield "default", clf.predict_proba(case.X_test), time.process_time() - started
    codes, names = pd.factorize(case.segments)
    assert clf.encoder_ is not None  # noqa: S101
    matrix = clf.encoder_.transform(read_frame(case.X))
    history, current = cut(matrix, case.y, codes, list(names))
    test = clf.encoder_.transform(read_frame(case.X_test))
    for name, method in (("all", "full_data_default"), ("current", "current_segment_default")):
        started = time.process_time()
        naive = replace(cast("Any", NAMED[method](seed, "")), n_classes=n_classes)
        with one_blas_thread():
            answer = naive.adapt(history, current).predict_proba(test)
        yield name, answer, time.process_time() - started


def scores(y: NDArray[np.int64], probabilities: NDArray[Any]) -> dict[str, float]:
    """Log loss and accuracy; of two classes also AUC and the expected calibration error."""
    p = np.clip(probabilities.astype(np.float64), 1e-7, 1)
    p /= p.sum(axis=1, keepdims=True)
    found = {
        "log_loss": float(log_loss(y, p, labels=np.arange(p.shape[1]))),
        "accuracy": float((p.argmax(axis=1) == y).mean()),
    }
    if p.shape[1] == 2 and 0 < y.sum() < len(y):  # noqa: PLR2004
        found["auc"] = float(roc_auc_score(y, p[:, 1]))
        bins = np.array_split(np.argsort(p[:, 1], kind="stable"), _BINS)
        found["ece"] = sum(len(b) / len(y) * abs(p[b, 1].mean() - y[b].mean()) for b in bins)
    return found


def compare(results: pd.DataFrame) -> pd.DataFrame:
    """Compare the default with the better naive choice: a line per table, means over the rest."""
    figures = ["log_loss", "auc", "accuracy", "ece", "cpu"]
    by_table = results.groupby(["table", "method"])[figures].mean().unstack("method")
    naive = ["all", "current"]
    best_loss = by_table["log_loss"][naive].min(axis=1)
    return pd.DataFrame(
        {
            "log_loss": by_table["log_loss"]["default"],
            "all": by_table["log_loss"]["all"],
            "current": by_table["log_loss"]["current"],
            "worse_by_%": 100 * (by_table["log_loss"]["default"] / best_loss - 1),
            "auc": by_table["auc"]["default"],
            "auc_gain": by_table["auc"]["default"] - by_table["auc"][naive].max(axis=1),
            "accuracy_over_all": by_table["accuracy"]["default"] - by_table["accuracy"]["all"],
            "ece": by_table["ece"]["default"],
            "cpu": by_table["cpu"]["default"],
        }
    )


def main() -> None:
    """Run from the command line."""
    console, progress = Console(width=180), Console(stderr=True)
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kinds", default="public,messy,steady,clustered,unseen", help="by comma")
    parser.add_argument("--seeds", type=int, default=5, help="of generated tables and of models")
    parser.add_argument("--confirm", action="store_true", help="segments and seeds not chosen on")
    parser.add_argument("--out", type=Path, help="a CSV file for every single result")
    options = parser.parse_args()
    first = 100 if options.confirm else 0
    seeds = list(range(first, first + options.seeds))
    lines: list[dict[str, Any]] = []
    for case in cases(options.kinds.split(","), seeds, confirm=options.confirm):
        for seed in seeds if case.table in PUBLIC else seeds[:1]:
            for method, answer, cpu in answers(case, seed):
                found = {"auc": np.nan, "ece": np.nan, **scores(case.y_test, answer), "cpu": cpu}
                key = {"table": case.table, "segment": case.segment, "seed": seed}
                lines.append({**key, "method": method, **found})
        progress.print(f"{case.table}, segment {case.segment}")
    results = pd.DataFrame(lines)
    if options.out is not None:
        with options.out.open("w", newline="") as file:
            writer = csv.DictWriter(file, lines[0])
            writer.writeheader()
            writer.writerows(lines)
    table = compare(results)
    console.print(table.round(4).to_string())
    console.print("mean", table[["worse_by_%", "auc_gain"]].mean().round(4).to_dict())


if __name__ == "__main__":
    main()
