"""How far off a stream of numbers is when every row is predicted first and learned after.

    python -m benchmarks.prequential_numbers [--streams a,b] [--models ours,soknl] [--seed 0]

Three public tables and three generated streams, in order: all rows, but of traffic the first
20,000 for every model, so that no stream takes them much more than ten minutes of CPU time:

    bike, pollution, traffic        public (DRIFTQUILT_DATA/tables); a day of text is left out,
                                    other text is a column of 0 and 1 for each value
    abrupt, gradual, recurring      Friedman's function, 8,000 rows (`benchmarks.regression_tables`)

Every model gets the same matrix, row by row:

    ours    QuiltStream(QuiltRegressor(random_state=seed), wait=True), all else as it is
    rows    the same with panel="rows": no expert sees the labels before a row
    online  the net that QuiltStream has beside its model, alone: never retrained
    last    the last label
    arf     river's ARFRegressor, as it is but for the seed
    soknl, arfreg, sgbr   CapyMOA's SOKNL, AdaptiveRandomForestRegressor and
                          StreamingGradientBoostedRegression, as they are but for the seed

The first row has no answer and is not counted, for any model. CapyMOA is not part of the project's
environment: `pip install capymoa` into another one (it needs Java, and no torch for these), and put
its site-packages at the end of PYTHONPATH.

Settings were chosen on generated streams of seeds below 100 and on the first halves of the tables;
`--seed 100` and the second halves, which have their own column, took no part. Each stream and model
becomes one JSON line of `prequential_numbers.jsonl`; what is there already is not run again.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
from numpy.typing import NDArray
from river.forest import ARFRegressor
from sklearn.utils import check_random_state

from benchmarks.prequential import RESULTS, Line, add_line, chosen, read_lines, versions
from benchmarks.regression_tables import DRIFTS, PUBLIC, friedman
from driftquilt.data.frame import Row
from driftquilt.detectors import Never
from driftquilt.quilt.regressor import QuiltRegressor
from driftquilt.stream import QuiltStream
from driftquilt.stream.learning import Learning
from driftquilt.stream.task import Regression

STREAMS = (*PUBLIC, *DRIFTS)
PEERS = ("arf", "soknl", "arfreg", "sgbr")
_LEFT_OUT = ("segment", "dteday")
_FIRST_ROWS = {"traffic": 20_000}  # for every model

#: What a model answers to each row, before it learns it; the first answer is not looked at.
Answers: TypeAlias = Iterator[float]


@dataclass(frozen=True)
class NumberStream:
    """Rows in order, and the number of each."""

    name: str
    X: pd.DataFrame
    y: NDArray[np.float64]

    def rows(self) -> Iterator[tuple[Row, float]]:
        """Rows as dictionaries, with their numbers."""
        columns = list(self.X.columns)
        for x, y in zip(self.X.to_numpy().tolist(), self.y.tolist(), strict=True):
            yield dict(zip(columns, x, strict=True)), y


def load_stream(name: str, seed: int) -> NumberStream:
    """Read a public table, or generate a stream."""
    if name in DRIFTS:
        X, y, _ = friedman(seed, name)
        return NumberStream(name, X, y)
    folder = Path(os.environ["DRIFTQUILT_DATA"]) / "tables"
    table = pd.read_parquet(folder / f"{name}.parquet")[: _FIRST_ROWS.get(name)]
    y = table.pop("label").to_numpy(float)
    X = pd.get_dummies(table.drop(columns=[n for n in _LEFT_OUT if n in table]), dtype=float)
    return NumberStream(name, X.astype(float), y)


def ours_on(stream: NumberStream, seed: int, **settings: Any) -> Answers:
    """Return the answers of our stream."""
    model = QuiltStream(QuiltRegressor(random_state=seed), wait=True, **settings)
    for x, y in stream.rows():
        answer = model.predict_one(x)
        yield 0.0 if answer is None else answer
        model.learn_one(x, y)


def rows_on(stream: NumberStream, seed: int) -> Answers:
    """Return the same without experts that see labels."""
    return ours_on(stream, seed, panel="rows")


def online_on(stream: NumberStream, seed: int) -> Answers:
    """Return those of the net alone; its weights begin as those in the stream of the same seed."""
    seed = int(check_random_state(seed).randint(np.iinfo(np.int32).max))
    learning = Learning(Never(), seed, n_recent=1, panel="rows", task=Regression())
    for x, y in stream.rows():
        answer = learning.predict(x)
        yield float(answer[0]) if len(answer) else 0.0
        learning.learn(x, y)


def last_on(stream: NumberStream, seed: int) -> Answers:  # noqa: ARG001
    """Return the label before each row."""
    return iter([0.0, *stream.y[:-1].tolist()])


def river_on(stream: NumberStream, seed: int) -> Answers:
    """Return those of river's forest."""
    model = ARFRegressor(seed=seed)
    for x, y in stream.rows():
        yield model.predict_one(x)
        model.learn_one(x, y)


def capymoa_on(name: str) -> Callable[[NumberStream, int], Answers]:
    """Return what asks one of CapyMOA's regressors."""

    def answer(stream: NumberStream, seed: int) -> Answers:
        regressors, streams = map(import_module, ("capymoa.regressor", "capymoa.stream"))
        source = streams.NumpyStream(stream.X.to_numpy(), stream.y, target_type="numeric")
        model = getattr(regressors, name)(schema=source.get_schema(), random_seed=seed)
        while source.has_more_instances():
            instance = source.next_instance()
            found = model.predict(instance)
            yield 0.0 if found is None else float(found)
            model.train(instance)

    return answer


MODELS: dict[str, Callable[[NumberStream, int], Answers]] = {
    "ours": ours_on,
    "rows": rows_on,
    "online": online_on,
    "last": last_on,
    "arf": river_on,
    "soknl": capymoa_on("SOKNL"),
    "arfreg": capymoa_on("AdaptiveRandomForestRegressor"),
    "sgbr": capymoa_on("StreamingGradientBoostedRegression"),
}


def measure(stream: NumberStream, model: str, seed: int) -> Line:
    """One model over one stream: the mean absolute error of all rows, and of the second half."""
    started = time.process_time()
    answers = np.fromiter(MODELS[model](stream, seed), dtype=np.float64)
    off = np.abs(np.nan_to_num(answers) - stream.y)[1:]
    return {
        "dataset": stream.name,
        "model": model,
        "seed": seed,
        "mae": float(off.mean()),
        "mae_second_half": float(off[len(off) // 2 :].mean()),
        "n_rows": len(stream.y),
        "cpu_seconds": round(time.process_time() - started, 2),
        "versions": versions() | ({"capymoa": version("capymoa")} if model in PEERS[1:] else {}),
    }


def conditions(lines: Sequence[Line], key: str) -> tuple[int, int]:
    """Return on how many streams ours is best of ours and the peers, and on how many all ran."""
    by = {(line["dataset"], line["model"]): line[key] for line in lines}
    whole = [s for s in STREAMS if all((s, model) in by for model in ("ours", *PEERS))]
    return sum(by[s, "ours"] < min(by[s, peer] for peer in PEERS) for s in whole), len(whole)


def to_markdown(lines: Sequence[Line]) -> str:
    """Return a table per seed and part, with what holds."""
    parts = ["# Prequential mean absolute error of numbers", ""]
    for seed in sorted({line["seed"] for line in lines}):
        of_seed = [line for line in lines if line["seed"] == seed]
        for key, what in (("mae", "all rows"), ("mae_second_half", "second half")):
            best, n_streams = conditions(of_seed, key)
            parts += [f"## Seed {seed}, {what}", "", *_table(of_seed, key), ""]
            parts += [f"Ours is best on {best} of {n_streams} streams.", ""]
    return "\n".join(parts)


def _table(lines: Sequence[Line], key: str) -> list[str]:
    models = [model for model in MODELS if any(line["model"] == model for line in lines)]
    by = {(line["dataset"], line["model"]): line[key] for line in lines}
    table = [f"| | {' | '.join(models)} |", f"| --- |{' ---: |' * len(models)}"]
    for stream in STREAMS:
        cells = [f"{by[stream, m]:.4g}" if (stream, m) in by else "" for m in models]
        if any(cells):
            table.append(f"| {stream} | {' | '.join(cells)} |")
    return table


def main(arguments: list[str] | None = None) -> None:
    """Run what is left, write the table and print it."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.prequential_numbers")
    parser.add_argument("--streams", help=f"of {', '.join(STREAMS)}")
    parser.add_argument("--models", help=f"of {', '.join(MODELS)}")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args(arguments)
    path = options.out / "prequential_numbers.jsonl"
    done = {(line["dataset"], line["model"], line["seed"]) for line in read_lines(path)}
    for name in chosen(options.streams, STREAMS, "stream"):
        for model in chosen(options.models, MODELS, "model"):
            if (name, model, options.seed) not in done:
                add_line(path, measure(load_stream(name, options.seed), model, options.seed))
    text = to_markdown(read_lines(path))
    (options.out / "prequential_numbers.md").write_text(text, encoding="utf-8")
    print(text)  # noqa: T201


if __name__ == "__main__":
    main()
