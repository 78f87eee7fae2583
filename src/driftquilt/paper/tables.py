"""The paper's tables, our numbers beside theirs: values first, then Markdown, CSV and HTML.

A value is a mean over seeds, then over segments; its spread is the standard deviation over
seeds, averaged over segments, as in the paper. In text a cell reads
"**.888** ±.004 (.888, +.000)": ours, its spread, the paper's number and the difference; the best
of ours in a column is bold.

>>> published("accuracy_f1_runtime", "sea", "quilt", "accuracy")
0.888
"""

from __future__ import annotations

import csv
import html
import io
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from importlib.resources import files
from typing import Literal

import numpy as np

from driftquilt.paper.plan import EXPERIMENTS, METHODS
from driftquilt.paper.run import Result

__all__ = [
    "Table",
    "Value",
    "make_tables",
    "precision_recall",
    "published",
    "summarise",
    "to_csv",
    "to_html",
    "to_markdown",
]

Better = Literal["higher", "lower"]

_HTML = ("<b>{}</b>", "<br><small>{}</small>")  # the best; the paper's figure, difference


@dataclass(frozen=True)
class Value:
    """One cell of a table."""

    ours: float
    spread: float | None = None
    paper: float | None = None

    @property
    def difference(self) -> float | None:
        return None if self.paper is None else self.ours - self.paper


@dataclass(frozen=True)
class Table:
    """Rows and columns by name; a missing cell was not run."""

    name: str
    experiment: str
    title: str
    rows: Sequence[str]
    columns: Sequence[str]
    cells: dict[tuple[str, str], Value]
    digits: int = 3
    better: Better | None = "higher"

    def best(self, column: str) -> float | None:
        """Return the best value of ours in a column, as it is printed."""
        values = [round(v.ours, self.digits) for (_, c), v in self.cells.items() if c == column]
        if not values or self.better is None:
            return None
        return max(values) if self.better == "higher" else min(values)


@dataclass(frozen=True)
class MethodTable:
    """A table of methods by streams: what it shows, and where the paper prints it."""

    name: str
    title: str
    experiment: str
    metric: Callable[[Result], float | None]
    paper_table: str
    paper_metric: str
    digits: int = 3
    better: Better | None = "higher"

    def published(self, dataset: str, method: str) -> float | None:
        if self.experiment == "initialization" and method == "quilt":
            method = "quilt_init_random"
        return published(self.paper_table, dataset, method, self.paper_metric)


_MAIN = "accuracy_f1_runtime"
_TRAINING = "CPU seconds of the training that made the model"

TABLES = (
    MethodTable("accuracy", "Accuracy", "accuracy", lambda r: r.accuracy, _MAIN, "accuracy"),
    MethodTable("f1", "F1", "accuracy", lambda r: r.f1, _MAIN, "f1"),
    MethodTable(
        "runtime", _TRAINING, "accuracy", lambda r: r.training_cpu_seconds, _MAIN, "runtime_s",
        2, "lower",
    ),
    MethodTable(
        "runtime-whole", "CPU seconds from the drift to the model, search included", "accuracy",
        lambda r: r.cpu_seconds, "", "", 2, "lower",
    ),
    MethodTable(
        "ablation", "Ablation: accuracy", "ablation", lambda r: r.accuracy, "ablation", "accuracy"
    ),
    MethodTable("ablation-f1", "Ablation: F1", "ablation", lambda r: r.f1, "ablation", "f1"),
    MethodTable(
        "ablation-runtime", f"Ablation: {_TRAINING}", "ablation",
        lambda r: r.training_cpu_seconds, "ablation", "runtime_s", 2, "lower",
    ),
    MethodTable(
        "ablation-usage", "Ablation: rows used per epoch, percent", "ablation",
        lambda r: None if r.usage is None else 100 * r.usage, "ablation", "usage_percent", 1, None,
    ),
    MethodTable(
        "ablation-epochs", "Ablation: epochs", "ablation", lambda r: r.epochs, "ablation",
        "epochs", 1, None,
    ),
    MethodTable(
        "initialization", "Initialisation: accuracy", "initialization", lambda r: r.accuracy,
        "initialization", "accuracy",
    ),
    MethodTable(
        "initialization-runtime", f"Initialisation: {_TRAINING}", "initialization",
        lambda r: r.training_cpu_seconds, "initialization", "runtime_s", 2, "lower",
    ),
)  # fmt: skip


def summarise(results: Iterable[Result], metric: Callable[[Result], float | None]) -> Value | None:
    """Mean over seeds, then over segments, of one method's results on one stream."""
    by_segment: dict[int, list[float]] = defaultdict(list)
    for result in results:
        value = metric(result)
        if value is not None:
            by_segment[result.segment].append(value)
    if not by_segment:
        return None
    mean = np.mean([np.mean(values) for values in by_segment.values()])
    if all(len(values) == 1 for values in by_segment.values()):
        return Value(float(mean))
    return Value(float(mean), float(np.mean([np.std(values) for values in by_segment.values()])))


def method_table(results: Sequence[Result], spec: MethodTable) -> Table:
    """Methods down, streams across."""
    groups: dict[tuple[str, str], list[Result]] = defaultdict(list)
    for result in results:
        groups[result.method, result.dataset].append(result)
    rows, columns = _methods(results, spec.experiment), _datasets(results, spec.experiment)
    cells = {}
    for row in rows:
        for column in columns:
            value = summarise(groups[row, column], spec.metric)
            if value is not None:
                cells[row, column] = replace(value, paper=spec.published(column, row))
    return Table(
        spec.name, spec.experiment, spec.title, rows, columns, cells, spec.digits, spec.better
    )


def selection_table(results: Sequence[Result]) -> Table:
    """Precision and recall of the segments chosen against Best Segments, seed by seed."""
    gold = {
        (r.dataset, r.segment, r.seed): set(r.selected or ())
        for r in results
        if r.method == "best_segments"
    }

    def score(metric: int, r: Result) -> float | None:
        best = gold.get((r.dataset, r.segment, r.seed))
        if best is None or r.selected is None:
            return None
        return precision_recall(set(r.selected), best)[metric]

    groups: dict[tuple[str, str], list[Result]] = defaultdict(list)
    for r in results:
        if r.method != "best_segments" and (r.selected is not None or r.method not in METHODS):
            groups[r.method, r.dataset].append(r)
    cells, rows, order = {}, dict[str, None](), list(METHODS)
    for (method, dataset), group in sorted(
        groups.items(), key=lambda g: order.index(g[0][0]) if g[0][0] in order else len(order)
    ):
        for number, metric in enumerate(("precision", "recall")):
            value = summarise(group, partial(score, number))
            rows[f"{method}, {metric}"] = None
            if value is not None:
                paper = published("selection_quality", dataset, method, metric)
                cells[f"{method}, {metric}", dataset] = replace(value, paper=paper)
    columns = [c for c in _datasets(results, "selection") if any(c == d for _, d in cells)]
    title = "Segments selected at least once, against Best Segments"
    return Table("selection", "selection", title, list(rows), columns, cells, digits=2, better=None)


def precision_recall(selected: set[int], gold: set[int]) -> tuple[float, float]:
    """Of what was selected, how much is gold; of the gold, how much was selected.

    Where there is nothing to be wrong about (nothing selected, no gold) the figure is 1.
    """
    hits = len(selected & gold)
    precision = hits / len(selected) if selected else 1.0
    recall = hits / len(gold) if gold else 1.0
    return precision, recall


def make_tables(results: Sequence[Result], experiments: Iterable[str] = ()) -> list[Table]:
    """Every table of the experiments, and of those that the results compare methods for."""
    methods = {result.method for result in results}
    shown = {
        name
        for name, experiment in EXPERIMENTS.items()
        if len(methods.intersection(experiment.all_methods)) > 1
    }.union(experiments)
    tables = [method_table(results, spec) for spec in TABLES if spec.experiment in shown]
    tables.append(selection_table(results))
    return [table for table in tables if table.cells]


def _methods(results: Iterable[Result], experiment: str) -> list[str]:
    """Those of the experiment that were run, in its order; then the user's own."""
    found = dict.fromkeys(result.method for result in results)
    listed = EXPERIMENTS[experiment].all_methods
    return [m for m in listed if m in found] + [m for m in found if m not in METHODS]


def _datasets(results: Iterable[Result], experiment: str) -> list[str]:
    """Return the experiment's own that were run, in the paper's order; then the user's."""
    found = dict.fromkeys(result.dataset for result in results)
    spec = EXPERIMENTS[experiment]
    listed = [d for d in spec.datasets if d in found]
    return listed + [d for d in found if d not in spec.datasets and spec.covers(d)]


def published(table: str, dataset: str, method: str, metric: str) -> float | None:
    """Return a mean as the paper prints it, None where it has no such number."""
    return _numbers().get((table, dataset, method, metric))


@cache
def _numbers() -> dict[tuple[str, str, str, str], float]:
    text = files("driftquilt.paper").joinpath("published.csv").read_text()
    return {
        (row["table"], row["dataset"], row["method"], row["metric"]): float(row["mean"])
        for row in csv.DictReader(text.splitlines())
    }


def to_markdown(table: Table) -> str:
    """Return a GitHub table under its title."""
    lines = [
        f"### {_plain(table.title)}",
        "",
        f"| | {' | '.join(map(_plain, table.columns))} |",
        f"| --- |{' ---: |' * len(table.columns)}",
    ]
    for row in table.rows:
        cells = [_cell(table, row, column, "**{}**", " ({})") for column in table.columns]
        lines.append(f"| {_plain(row)} | {' | '.join(cells)} |")
    return "\n".join([*lines, ""])


def to_html(table: Table) -> str:
    """Return the same as an HTML table."""
    head = "".join(f"<th scope='col'>{html.escape(column)}</th>" for column in table.columns)
    body = "".join(
        f"<tr><th scope='row'>{html.escape(row)}</th>"
        + "".join(f"<td>{_cell(table, row, c, *_HTML)}</td>" for c in table.columns)
        + "</tr>"
        for row in table.rows
    )
    return (
        f"<table><caption>{html.escape(table.title)}</caption>"
        f"<thead><tr><th></th>{head}</tr></thead><tbody>{body}</tbody></table>"
    )


def to_csv(tables: Sequence[Table]) -> str:
    """Return all tables, one line per cell."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["table", "row", "column", "ours", "spread", "paper", "difference"])
    for table in tables:
        for (row, column), value in table.cells.items():
            numbers = [value.ours, value.spread, value.paper, value.difference]
            writer.writerow([table.name, row, column, *map(_number, numbers)])
    return out.getvalue()


def _plain(name: str) -> str:
    """Escape a name, so that it stays in its cell."""
    return " ".join(html.escape(name, quote=False).replace("|", "\\|").split())


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.6g}"


def _cell(table: Table, row: str, column: str, bold: str, beside: str) -> str:
    value = table.cells.get((row, column))
    if value is None:
        return ""
    text = _short(value.ours, table.digits)
    if round(value.ours, table.digits) == table.best(column):
        text = bold.format(text)
    if value.spread is not None:
        text += f" ±{_short(value.spread, table.digits)}"
    return text + (beside.format(_paper(value, table.digits)) if value.paper is not None else "")


def _paper(value: Value, digits: int) -> str:
    difference = round(value.difference or 0.0, digits)
    sign = "-" if difference < 0 else "+"
    return f"{_short(value.paper or 0.0, digits)}, {sign}{_short(abs(difference), digits)}"


def _short(value: float, digits: int) -> str:
    """Return the value without the zero before the point, as the paper prints it."""
    text = f"{value:.{digits}f}"
    return text[1:] if digits >= 3 and text.startswith("0.") else text  # noqa: PLR2004
