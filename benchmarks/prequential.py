"""How often a stream is right when every row is predicted first and learned after.

    python -m benchmarks.prequential [--datasets a,b] [--models ours,arf] [--seed 0] [--out DIR]

The nine streams in the order in which they were made or measured, columns called x0, x1, ...; all
rows count, those after a drift and before a training too. The models:

    ours    QuiltStream(QuiltClassifier(random_state=seed), wait=True), all else as it is
    online  the net that QuiltStream has beside its model, alone: never retrained
    hat, arf, srp   river's adaptive tree, forest and random patches, as they are but for the seed

Each stream and model becomes one JSON line of `prequential.jsonl` when it is done; what is there
already is not run again. `prequential.md` has the tables, and says whether our conditions hold.

>>> line = {"seed": 0, "n_rows": 9, "dataset": "sea"}
>>> lines = [{**line, "model": "ours", "accuracy": 0.9}, {**line, "model": "arf", "accuracy": 0.8}]
>>> [f"{what}: {holds}" for what, _, holds in conditions(lines)[:1]]
['mean at least 2 points above ARF: True']
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, Protocol, TypeAlias

import numpy as np
from rich.console import Console
from rich.progress import Progress
from river.ensemble import SRPClassifier
from river.forest import ARFClassifier
from river.tree import HoeffdingAdaptiveTreeClassifier
from sklearn.utils import check_random_state

from driftquilt.data.frame import Row
from driftquilt.detectors import Never
from driftquilt.errors import InputError
from driftquilt.paper.datasets import load, names
from driftquilt.paper.datasets.stream import Stream
from driftquilt.quilt.classifier import QuiltClassifier
from driftquilt.stream import QuiltStream
from driftquilt.stream.learning import Learning

__all__ = [
    "MODELS",
    "RESULTS",
    "Line",
    "add_line",
    "chosen",
    "conditions",
    "labelled_rows",
    "main",
    "measure",
    "read_lines",
    "run",
    "to_markdown",
    "versions",
]

RESULTS = Path(__file__).parent / "results"
#: One measured cell.
Line: TypeAlias = dict[str, Any]
LabelledRows: TypeAlias = Iterable[tuple[Row, int]]


class _River(Protocol):
    def predict_one(self, x: Any) -> Any: ...

    def learn_one(self, x: Any, y: Any) -> None: ...


def ours_on(rows: LabelledRows, seed: int) -> float:
    """Accuracy of the whole stream."""
    stream = QuiltStream(QuiltClassifier(random_state=seed), wait=True)
    for x, y in rows:
        stream.learn_one(x, y)
    return stream.accuracy


def online_on(rows: LabelledRows, seed: int) -> float:
    """Accuracy of the net alone; its weights begin as those in the stream of the same seed."""
    seed = int(check_random_state(seed).randint(np.iinfo(np.int32).max))
    learning = Learning(Never(), seed, n_recent=1, panel="rows")
    for x, y in rows:
        learning.learn(x, y)
    return learning.n_right / learning.n_rows


def river_on(make: Callable[..., _River]) -> Callable[[LabelledRows, int], float]:
    """Accuracy of a model of river's."""

    def run_model(rows: LabelledRows, seed: int) -> float:
        model, right = make(seed=seed), []
        for x, y in rows:
            right.append(model.predict_one(x) == y)
            model.learn_one(x, y)
        return statistics.fmean(right)

    return run_model


MODELS: dict[str, Callable[[LabelledRows, int], float]] = {
    "ours": ours_on,
    "online": online_on,
    "hat": river_on(HoeffdingAdaptiveTreeClassifier),
    "arf": river_on(ARFClassifier),
    "srp": river_on(SRPClassifier),
}


def labelled_rows(stream: Stream) -> Iterator[tuple[Row, int]]:
    """Rows as dictionaries, with the code of their class."""
    columns = [f"x{j}" for j in range(stream.features.shape[1])]
    for x, y in zip(stream.features.tolist(), stream.labels.tolist(), strict=True):
        yield dict(zip(columns, x, strict=True)), y


def measure(
    stream: Stream, model: str, seed: int, shown: Callable[[LabelledRows], LabelledRows] = iter
) -> Line:
    """One model over one stream; `shown` may watch the rows go by."""
    started = time.process_time()
    accuracy = MODELS[model](shown(labelled_rows(stream)), seed)
    return {
        "dataset": stream.name,
        "model": model,
        "seed": seed,
        "accuracy": accuracy,
        "n_rows": len(stream.labels),
        "cpu_seconds": round(time.process_time() - started, 2),
        "versions": versions(),
    }


def run(streams: Sequence[Stream], models: Sequence[str], seed: int, path: Path) -> list[Line]:
    """Measure what the file lacks and add it there; gives all lines of the file."""
    done = {(line["dataset"], line["model"], line["seed"]) for line in read_lines(path)}
    left = [(s, m) for m in models for s in streams if (s.name, m, seed) not in done]
    with Progress(console=Console(stderr=True), disable=not left) as progress:
        bar = progress.add_task("", total=sum(len(stream.labels) for stream, _ in left))

        def shown(rows: LabelledRows) -> LabelledRows:
            for number, row in enumerate(rows, start=1):
                yield row
                if number % 100 == 0:
                    progress.advance(bar, 100)

        for stream, model in left:
            progress.update(bar, description=f"{model} on {stream.name}")
            add_line(path, measure(stream, model, seed, shown))
    return read_lines(path)


def conditions(lines: Sequence[Line]) -> list[tuple[str, str, bool]]:
    """Return what is asked of our stream, what was found, and whether it holds, for one seed."""
    arf, online = (list(_ahead(lines, model).values()) for model in ("arf", "online"))
    asked = []
    if arf:
        above, most = sum(ahead > 0 for ahead in arf), statistics.fmean(arf)
        least = 7 if len(arf) == len(names()) else len(arf)
        asked += [
            ("mean at least 2 points above ARF", f"{100 * most:+.1f} points", most >= 0.02),  # noqa: PLR2004
            (f"above ARF on at least {least}", f"{above} of {len(arf)}", above >= least),
        ]
    if online:
        worst = min(online)
        what = "never more than half a point below online only"
        asked.append((what, f"{100 * worst:+.1f} points at worst", worst >= -0.005))  # noqa: PLR2004
    return asked


def to_markdown(lines: Sequence[Line]) -> str:
    """Return a table per seed, each with the conditions under it."""
    parts = []
    for seed in sorted({line["seed"] for line in lines}):
        of_seed = [line for line in lines if line["seed"] == seed]
        found = [
            f"- {what}: {shown}, {'holds' if holds else 'does not hold'}"
            for what, shown, holds in conditions(of_seed)
        ]
        parts.append("\n".join([f"## Seed {seed}", "", *_table(of_seed), "", *found, ""]))
    return "\n".join(["# Prequential accuracy", "", *parts])


def versions() -> dict[str, str]:
    """Of everything that an accuracy depends on."""
    packages = {name: version(name) for name in ("driftquilt", "numpy", "river")}
    return {"python": platform.python_version(), **packages}


def read_lines(path: Path) -> list[Line]:
    """All lines of a file; none if there is no file."""
    if not path.exists():
        return []
    whole = path.read_text(encoding="utf-8").splitlines()
    try:
        return [json.loads(line) for line in whole]
    except json.JSONDecodeError as error:
        raise InputError(
            f"{path} has a line that is not JSON ({error}), as a crash may leave it; take it out"
        ) from error


def add_line(path: Path, line: Line) -> None:
    """Append, and wait until it is on the disk."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")
        file.flush()
        os.fsync(file.fileno())


def chosen(given: str | None, known: Iterable[str], what: str) -> list[str]:
    """Return the names in a comma-separated list, or all of them."""
    known = list(known)
    picked = given.split(",") if given else known
    for name in picked:
        if name not in known:
            raise InputError(f"there is no {what} {name!r}; there are {', '.join(known)}")
    return picked


def main(arguments: list[str] | None = None) -> None:
    """Run what is left, write the table and print it."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.prequential")
    parser.add_argument("--datasets", help=f"of {', '.join(names())}")
    parser.add_argument("--models", help=f"of {', '.join(MODELS)}")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args(arguments)
    models = chosen(options.models, MODELS, "model")
    datasets = chosen(options.datasets, names(), "data set")
    streams = [load(name, original_order=True) for name in datasets]
    lines = run(streams, models, options.seed, options.out / "prequential.jsonl")
    text = to_markdown(lines)
    (options.out / "prequential.md").write_text(text, encoding="utf-8")
    print(text)  # noqa: T201


def _ahead(lines: Sequence[Line], model: str) -> dict[str, float]:
    """How far ours is above a model, by stream, where both were run."""
    by = {(line["dataset"], line["model"]): line["accuracy"] for line in lines}
    both = [dataset for dataset, kind in by if kind == model and (dataset, "ours") in by]
    return {dataset: by[dataset, "ours"] - by[dataset, model] for dataset in both}


def _table(lines: Sequence[Line]) -> list[str]:
    models = [model for model in MODELS if any(line["model"] == model for line in lines)]
    by = {(line["dataset"], line["model"]): line["accuracy"] for line in lines}
    found = dict.fromkeys(line["dataset"] for line in lines)
    datasets = sorted(found, key=lambda name: (*names(), name).index(name))
    ahead = _ahead(lines, "arf")
    table = [f"| | {' | '.join(models)} | ours - arf |", f"| --- |{' ---: |' * (len(models) + 1)}"]
    for dataset in datasets:
        cells = [_shown(by.get((dataset, model))) for model in models]
        table.append(f"| {dataset} | {' | '.join(cells)} | {_signed(ahead.get(dataset))} |")
    whole = {m: [by[d, m] for d in datasets if (d, m) in by] for m in models}
    means = [
        _shown(statistics.fmean(a) if len(a) == len(datasets) else None) for a in whole.values()
    ]
    mean = statistics.fmean(ahead.values()) if len(ahead) == len(datasets) else None
    return [*table, f"| mean | {' | '.join(means)} | {_signed(mean)} |"]


def _shown(accuracy: float | None) -> str:
    return "" if accuracy is None else f"{accuracy:.3f}".lstrip("0")


def _signed(ahead: float | None) -> str:
    return "" if ahead is None else f"{ahead:+.3f}".replace("0.", ".")


if __name__ == "__main__":
    main()
