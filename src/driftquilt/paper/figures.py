"""The paper's figures: series of points first, then one plot of lines as SVG.

The case study has two concepts ("Case Study: Two Concepts" in the paper). All rows come from one
distribution; rows of concept 0 have label 0, rows of concept 1 label 1. The current concept is 1.
The model is trained on current rows alone, and two past segments are only scored: one with the
current concept, one with the other.

>>> curves = case_study(seed=0)
>>> same, other = curves["same concept"], curves["other concept"]
>>> bool((10 * same.disparity < other.disparity).all())
True

>>> svg = lines_svg({"a": [(1, 2.0), (2, 3.0)]}, title="t", x_label="x", y_label="y")
>>> svg.count("<path")
1
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Container, Iterator, Mapping, Sequence

import numpy as np

from driftquilt.core.segment import Segment
from driftquilt.core.selection import Rule, Scores
from driftquilt.core.training import Run, Task, train
from driftquilt.learners.mlp import MLP
from driftquilt.paper.plan import EXPERIMENTS, METHODS
from driftquilt.paper.results import Result
from driftquilt.quilt.executor import one_blas_thread
from driftquilt.report.lines import Chart, Line, View, chart_parts, round_ticks
from driftquilt.report.svg import content, picture, shorten

__all__ = [
    "Series",
    "accuracy_curves",
    "case_study",
    "case_study_curves",
    "cost_curves",
    "lines_svg",
]

_WIDTH, _HEIGHT = 640, 380
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 176, 66, 52  # from the edges to the box of the lines
_ROW, _LETTERS = 20, 20  # of the legend: height of a row, letters that fit into one
_N_TICKS = 5

Series = Mapping[str, Sequence[tuple[float, float]]]
Points = dict[str, list[tuple[float, float]]]

# Many rows are scored, so that chance does not set two samples of one concept apart; few are
# trained on, so that an epoch is a small step.
N_SCORED, N_TRAINED = 10_000, 500


def accuracy_curves(results: Sequence[Result], dataset: str) -> Points:
    """Accuracy on each segment in turn, averaged over seeds: Quilt and its bounds."""
    hidden = set(METHODS).difference(EXPERIMENTS["selection"].methods, ["quilt_default"])
    return _curves(results, dataset, lambda r: r.accuracy, hidden)


def cost_curves(results: Sequence[Result], dataset: str) -> Points:
    """CPU seconds of the training that made the model, by number of segments."""
    curves = _curves(results, dataset, lambda r: r.training_cpu_seconds)
    return {name: [(x + 1, y) for x, y in points] for name, points in curves.items()}


def case_study_curves(curves: Mapping[str, Scores]) -> dict[str, Points]:
    """Both scores by epoch, for each of the two past segments."""
    return {
        score: {
            name: list(enumerate(getattr(scores, score).tolist(), start=1))
            for name, scores in curves.items()
        }
        for score in ("disparity", "gain")
    }


def case_study(seed: int = 0, *, n_epochs: int = 60) -> dict[str, Scores]:
    """The scores of both past segments, each of shape (epochs,)."""
    rng = np.random.default_rng(seed)
    past = [
        _segment(rng, "same concept", 1, N_SCORED),
        _segment(rng, "other concept", 0, N_SCORED),
    ]
    task = Task(
        past,
        current=_segment(rng, "today", 1, N_TRAINED),
        validation=_segment(rng, "today", 1, N_SCORED),
        rule=Rule(use_gain=False),
        max_epochs=n_epochs,
        patience=n_epochs,
        seed=seed,
    )
    with one_blas_thread():
        model = MLP().start(task.current.X, n_classes=2, seed=seed)
        epochs = list(train(Run(task, model), disparity_max=-math.inf))
    return {
        str(segment.name): Scores(
            np.array([epoch.scores.disparity[s] for epoch in epochs]),
            np.array([epoch.scores.gain[s] for epoch in epochs]),
        )
        for s, segment in enumerate(past)
    }


def _curves(
    results: Sequence[Result],
    dataset: str,
    metric: Callable[[Result], float],
    hidden: Container[str] = (),
) -> Points:
    values: dict[str, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for result in results:
        if result.dataset == dataset and result.method not in hidden:
            values[result.method][result.segment].append(metric(result))
    order = [m for m in METHODS if m in values] + [m for m in values if m not in METHODS]
    return {
        method: [(float(s), float(np.mean(values[method][s]))) for s in sorted(values[method])]
        for method in order
    }


def lines_svg(
    series: Series, *, title: str, x_label: str, y_label: str, log_y: bool = False
) -> str:
    """Return the picture as SVG text; points that have no place in it are left out."""
    shown = [
        (name, {x: y for x, y in points if math.isfinite(x + y) and (y > 0 or not log_y)})
        for name, points in series.items()
    ]
    xs = sorted({x for _, points in shown for x in points}) or [0.0]
    ys = [y for _, points in shown for y in points.values()] or [1.0]
    lines = tuple(
        Line(name, tuple(points.get(x, math.nan) for x in xs), k)
        for k, (name, points) in enumerate(shown)
    )
    y_ticks = _decades(min(ys), max(ys)) if log_y else ()
    y_range = (y_ticks[0], y_ticks[-1]) if log_y else _with_margin(min(ys), max(ys))
    chart = Chart(
        title,
        x_label,
        (View(tuple(xs), lines),),
        (xs[0], max(xs[-1], xs[0] + 1)),
        y_range,
        y_ticks or round_ticks(*y_range, _N_TICKS),
        log_y=log_y,
    )
    width, height = _WIDTH - _LEFT - _RIGHT, _HEIGHT - _TOP - _BOTTOM
    parts = [
        f'<text class="small faint" x="20" y="50">{content(y_label)}</text>',
        f'<svg x="{_LEFT}" y="{_TOP}" width="{width}" height="{height}" overflow="visible">',
        *chart_parts(chart, width, height),
        "</svg>",
        *_legend(lines),
    ]
    return picture(parts, _WIDTH, max(_HEIGHT, _TOP + _ROW * (len(lines) + 1)), title)


def _legend(lines: Sequence[Line]) -> Iterator[str]:
    x = _WIDTH - _RIGHT + 14
    for k, line in enumerate(lines):
        y = _TOP + 6 + _ROW * k
        yield f'<line class="line {line.style}" x1="{x}" x2="{x + 16}" y1="{y}" y2="{y}"/>'
        name = content(shorten(line.name, _LETTERS))
        full = content(line.name)
        yield f'<text class="small" x="{x + 22}" y="{y + 4}">{name}<title>{full}</title></text>'


def _with_margin(low: float, high: float) -> tuple[float, float]:
    """Return a range around two values, which may be the same."""
    size = max(abs(low), abs(high))
    span = high - low if high - low > 1e-9 * size else size
    margin = 0.06 * (span if span > 1e-300 else 1.0)  # noqa: PLR2004  # below it is as good as none
    return low - margin, high + margin


def _decades(low: float, high: float) -> tuple[float, ...]:
    """Return powers of ten that enclose a range."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    return tuple(10.0**k for k in range(first, max(last, first + 1) + 1))


def _segment(rng: np.random.Generator, name: str, label: int, n_rows: int) -> Segment:
    X = rng.normal(size=(n_rows, 2)).astype(np.float32)
    return Segment(name, X, np.full(n_rows, label), np.ones(n_rows, np.float32))
