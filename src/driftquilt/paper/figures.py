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
>>> svg.count("<polyline")
1
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape, quoteattr

import numpy as np

from driftquilt.core.segment import Segment
from driftquilt.core.selection import Rule, Scores
from driftquilt.core.training import Run, Task, train
from driftquilt.learners.mlp import MLP
from driftquilt.paper.plan import EXPERIMENTS, METHODS
from driftquilt.paper.results import Result
from driftquilt.quilt.executor import one_blas_thread

__all__ = [
    "Series",
    "accuracy_curves",
    "case_study",
    "case_study_curves",
    "cost_curves",
    "lines_svg",
]

_WIDTH, _HEIGHT, _LEFT, _RIGHT, _TOP, _BOTTOM = 640, 372, 64, 170, 60, 48
_ROW, _LETTERS = 20, 20  # of the legend: height of a row, letters that fit into one
_COLOURS = (
    "#0b6e6e", "#c2571a", "#5b5bd6", "#777777", "#b3261e", "#2e7d32", "#8e24aa", "#0277bd",
    "#a1887f", "#f9a825", "#455a64",
)  # fmt: skip
_STYLE = """
svg{background:#fff;font:12px system-ui,sans-serif} text{fill:#222} .grid{stroke:#ddd}
.end{text-anchor:end} .middle{text-anchor:middle} polyline{fill:none;stroke-width:2}
@media (prefers-color-scheme:dark){svg{background:#16191c} text{fill:#e8e8e8}
.grid{stroke:#333} g{filter:brightness(1.6)}}
"""

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


@dataclass(frozen=True)
class _Frame:
    """Where a point of the data stands in the picture."""

    x_ticks: Sequence[float]
    y_ticks: Sequence[float]
    log_y: bool

    def x(self, value: float) -> float:
        low, high = self.x_ticks[0], self.x_ticks[-1]
        return _LEFT + (value - low) / (high - low) * (_WIDTH - _LEFT - _RIGHT)

    def y(self, value: float) -> float:
        low, high = self.y_ticks[0], self.y_ticks[-1]
        if self.log_y:
            low, high, value = math.log(low), math.log(high), math.log(value)
        return _HEIGHT - _BOTTOM - (value - low) / (high - low) * (_HEIGHT - _TOP - _BOTTOM)


def lines_svg(
    series: Series, *, title: str, x_label: str, y_label: str, log_y: bool = False
) -> str:
    """The picture as SVG text; points that have no place in it are left out."""
    shown = {
        name: [(x, y) for x, y in points if math.isfinite(x + y) and (y > 0 or not log_y)]
        for name, points in series.items()
    }
    xs = [x for points in shown.values() for x, _ in points] or [0.0]
    ys = [y for points in shown.values() for _, y in points] or [1.0]
    y_ticks = _decades(min(ys), max(ys)) if log_y else _steps(min(ys), max(ys))
    frame = _Frame(_steps(min(xs), max(xs)), y_ticks, log_y)
    height = max(_HEIGHT, _TOP + _ROW * (len(shown) + 1))
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" '
        f'width="{_WIDTH}" height="{height}" role="img" aria-label={quoteattr(_clean(title))}>',
        f"<style>{_STYLE}</style>",
        f'<text x="16" y="22" font-size="15">{_text(title)}</text>',
        *_axes(frame, x_label, y_label),
    ]
    for number, (name, points) in enumerate(shown.items()):
        parts += _line(frame, number, name, points)
    return "\n".join([*parts, "</svg>"])


def _axes(frame: _Frame, x_label: str, y_label: str) -> list[str]:
    right, bottom = _WIDTH - _RIGHT, _HEIGHT - _BOTTOM
    middle = (_LEFT + right) / 2
    parts = [
        f'<text x="16" y="{_TOP - 16}">{_text(y_label)}</text>',
        f'<text class="middle" x="{middle}" y="{_HEIGHT - 10}">{_text(x_label)}</text>',
    ]
    for tick in frame.y_ticks:
        y = frame.y(tick)
        parts += [
            f'<line class="grid" x1="{_LEFT}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}"/>',
            f'<text class="end" x="{_LEFT - 6}" y="{y + 4:.1f}">{tick:g}</text>',
        ]
    for tick in frame.x_ticks:
        x = frame.x(tick)
        parts.append(f'<text class="middle" x="{x:.1f}" y="{bottom + 18}">{tick:g}</text>')
    return parts


def _line(
    frame: _Frame, number: int, name: str, points: Sequence[tuple[float, float]]
) -> list[str]:
    colour = _COLOURS[number % len(_COLOURS)]
    places = [(f"{frame.x(x):.1f}", f"{frame.y(y):.1f}") for x, y in points]
    path = " ".join(f"{x},{y}" for x, y in places)
    left, top = _WIDTH - _RIGHT + 12, _TOP + 10 + _ROW * number
    short = name if len(name) <= _LETTERS else f"{name[: _LETTERS - 1]}…"
    return [
        f'<g fill="{colour}" stroke="{colour}"><title>{_text(name)}</title>',
        f'<polyline points="{path}"/>',
        *(f'<circle cx="{x}" cy="{y}" r="2"/>' for x, y in places),
        f'<rect x="{left}" y="{top - 7}" width="12" height="4"/></g>',
        f'<text x="{left + 18}" y="{top}">{_text(short)}</text>',
    ]


def _clean(text: str) -> str:
    """Without the letters that XML has no place for."""
    return "".join(letter if letter.isprintable() else " " for letter in text)


def _text(text: str) -> str:
    return escape(_clean(text))


def _steps(low: float, high: float) -> list[float]:
    """Round numbers that enclose a range, about five of them."""
    size = max(abs(low), abs(high))
    span = high - low if high - low > 1e-9 * size else size
    rough = (span if span > 1e-300 else 1.0) / 5  # noqa: PLR2004  # below it is as good as none
    unit = 10.0 ** math.floor(math.log10(rough))
    step = next(unit * factor for factor in (1, 2, 5, 10, 20) if unit * factor >= rough)
    first, last = math.floor(low / step), math.ceil(high / step)
    return [k * step for k in range(first, max(last, first + 1) + 1)]


def _decades(low: float, high: float) -> list[float]:
    """Powers of ten that enclose a range."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    return [10.0**k for k in range(first, max(last, first + 1) + 1)]


def _segment(rng: np.random.Generator, name: str, label: int, n_rows: int) -> Segment:
    X = rng.normal(size=(n_rows, 2)).astype(np.float32)
    return Segment(name, X, np.full(n_rows, label), np.ones(n_rows, np.float32))
