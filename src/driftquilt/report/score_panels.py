"""The scores of one model by epoch: disparity with its bound, gain with its zero.

There is a line for every past segment. The first view shows means over folds, in a band from the
lowest fold to the highest; where there are several folds, each has a view of its own. Segments
that were used have colours.

    scores  (E, S) for each fold -> mean, low and high, each (E, S) of the longest fold

>>> import numpy as np
>>> from driftquilt.core.training import Rule
>>> from driftquilt.quilt.explanation import FoldCurves
>>> used, scores = np.array([[True], [True]]), np.array([[0.2], [0.1]])
>>> fold = FoldCurves(0.5, 1, np.array([0.7, 0.6]), used, scores, scores)
>>> may = Selection(("May",), (200,), (fold,), Rule(), "June", 200)
>>> [panel.name for panel in score_panels(may)]
['disparity', 'gain']
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from driftquilt.quilt.explanation import Selection
from driftquilt.report.lines import Chart, Line, View, chart_parts, round_ticks
from driftquilt.report.svg import content, shorten

__all__ = ["PANEL_HEIGHT", "FoldRange", "ScorePanel", "fold_range", "panel_parts", "score_panels"]

PANEL_HEIGHT = 210
_TOP, _BOTTOM, _LEFT, _NAMES = 34, 40, 44, 92
_MAX_NAMES, _LETTERS, _APART, _N_TICKS = 8, 14, 13, 4


class FoldRange(NamedTuple):
    """Scores at each epoch; not a number where no fold has one."""

    mean: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]


@dataclass(frozen=True)
class ScorePanel:
    """The chart of one score, and the words above it."""

    name: str
    caption: str
    chart: Chart


def fold_range(scores: Sequence[NDArray[np.float64]]) -> FoldRange:
    """Return mean and range over folds; at each epoch those count that came so far.

    >>> short, long = np.array([[1.0], [2.0]]), np.array([[3.0], [4.0], [5.0]])
    >>> [part[:, 0].tolist() for part in fold_range([short, long])]
    [[2.0, 3.0, 5.0], [1.0, 2.0, 5.0], [3.0, 4.0, 5.0]]
    """
    n_epochs = max(len(curve) for curve in scores)
    padded = np.full((len(scores), n_epochs, scores[0].shape[1]), np.nan)
    for fold, curve in enumerate(scores):
        padded[fold, : len(curve)] = np.where(np.isfinite(curve), curve, np.nan)
    known = ~np.isnan(padded)
    n_known = known.sum(axis=0)
    total = np.where(known, padded, 0.0).sum(axis=0)
    return FoldRange(
        np.where(n_known > 0, total / np.maximum(n_known, 1), np.nan),
        np.fmin.reduce(padded, axis=0),
        np.fmax.reduce(padded, axis=0),
    )


def score_panels(selection: Selection, n_points: int = 1_000) -> list[ScorePanel]:
    """Return both scores, at most `n_points` epochs of each; nothing without a past segment."""
    if not selection.names:
        return []
    several = len(selection.folds) > 1
    shown = "mean and range over folds" if several else "a line for each past segment"
    bounds = [selection.disparity_max, *(fold.disparity_max for fold in selection.folds)]
    names = ["mean bound" if several else "bound"]
    names += [f"bound of fold {k + 1}" for k in range(len(selection.folds))]
    disparity = _views(selection, "disparity", bounds, names, n_points)
    gain = _views(selection, "gain", [0.0] * len(bounds), [""] * len(bounds), n_points)
    high = max(_range(disparity)[1], *bounds, 0.5) * 1.05
    return [
        ScorePanel(
            "disparity",
            f"disparity by epoch: {shown}; dashed: the bound",
            _chart(f"Disparity by epoch, for {selection.current}", disparity, (0.0, high)),
        ),
        ScorePanel(
            "gain",
            f"gain by epoch: {shown}; dashed: zero",
            _chart(f"Gain by epoch, for {selection.current}", gain, _range(gain)),
        ),
    ]


def panel_parts(panel: ScorePanel, x: float, y: float, width: float) -> Iterator[str]:
    """Yield the elements of a panel's first view, its upper left corner at a place in a picture."""
    chart = replace(panel.chart, views=panel.chart.views[:1])
    lines = chart.views[0].lines
    named = 0 < sum(line.color is not None for line in lines) <= _MAX_NAMES
    wide = width - _LEFT - (_NAMES if named else 16)
    high = PANEL_HEIGHT - _TOP - _BOTTOM
    yield f'<text class="small faint" x="{x:g}" y="{y + 16:g}">{content(panel.caption)}</text>'
    yield (
        f'<svg x="{x + _LEFT:g}" y="{y + _TOP:g}" width="{wide:g}" height="{high:g}" '
        'overflow="visible">'
    )
    yield from chart_parts(chart, wide, high)
    yield from _names(chart, high) if named else ()
    yield "</svg>"


def _views(
    selection: Selection,
    score: str,
    bounds: Sequence[float],
    bound_names: Sequence[str],
    n_points: int,
) -> tuple[View, ...]:
    """Return the view of all folds, then that of each fold, if there are several."""
    curves = [getattr(fold, score) for fold in selection.folds]
    whole = fold_range(curves)
    views = [_view(selection, *whole, n_points=n_points)]
    if len(curves) > 1:
        views += [_view(selection, fold_range([curve]).mean, n_points=n_points) for curve in curves]
    return tuple(
        View(x, lines, bound, name)
        for (x, lines), bound, name in zip(views, bounds, bound_names, strict=False)
    )


def _view(
    selection: Selection, *scores: NDArray[np.float64], n_points: int
) -> tuple[tuple[float, ...], tuple[Line, ...]]:
    n_epochs = len(scores[0])
    shown = np.unique(np.linspace(0, n_epochs - 1, min(n_points, n_epochs)).round().astype(int))
    values = [part[shown].T.tolist() for part in scores]
    colors = count()
    lines = tuple(
        Line(
            str(use.name),
            tuple(values[0][s]),
            next(colors) if use.used else None,
            *(tuple(part[s]) for part in values[1:]),
        )
        for s, use in enumerate(selection)
    )
    return tuple((shown + 1).tolist()), lines


def _range(views: Sequence[View]) -> tuple[float, float]:
    """Return the lowest and the highest score, zero among them, with a little margin."""
    scores = np.array(
        [
            score
            for view in views
            for line in view.lines
            for score in (*line.values, *line.low, *line.high)
        ]
    )
    scores = scores[np.isfinite(scores)]
    low, high = min(scores.min(initial=0.0), 0.0), max(scores.max(initial=0.0), 0.0)
    margin = 0.06 * (high - low) or 1.0
    return float(low - margin), float(high + margin)


def _chart(label: str, views: tuple[View, ...], y_range: tuple[float, float]) -> Chart:
    last = max(view.x[-1] for view in views)
    label = f"{label}; the table of segments has the numbers"
    ticks = round_ticks(*y_range, _N_TICKS)
    return Chart(label, "epoch", views, (1, max(last, 2)), y_range, y_ticks=ticks)


def _names(chart: Chart, height: float) -> Iterator[str]:
    """Yield the names of lines with a colour at their ends, apart where two would touch."""
    ends = {
        line.name: height * chart.y(line.values[-1])
        for line in chart.views[0].lines
        if line.color is not None and np.isfinite(line.values[-1])
    }
    y, n_left = float(-_APART), len(ends)
    for name, end in sorted(ends.items(), key=lambda item: item[1]):
        y, n_left = max(min(end, height - _APART * (n_left - 1)), y + _APART), n_left - 1
        yield (
            f'<text class="small" x="100%" dx="6" y="{y + 4:.1f}">'
            f"{content(shorten(name, _LETTERS))}<title>{content(name)}</title></text>"
        )
