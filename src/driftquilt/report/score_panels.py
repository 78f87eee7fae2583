"""The scores of one drift, epoch by epoch: disparity with its bound, gain with its zero.

There is one line for every past segment, the mean over folds, in a faint band from the lowest
fold to the highest. Segments that were kept stand out, and where they are few their lines end in
their names. Values first: `panels` computes what `panel_parts` draws.

>>> import numpy as np
>>> from driftquilt.core.selection import Rule
>>> from driftquilt.quilt.explanation import FoldCurves
>>> used, scores = np.array([[True], [True]]), np.array([[0.2], [0.1]])
>>> fold = FoldCurves(0.5, 1, np.array([0.7, 0.6]), used, scores, scores)
>>> [panel.name for panel in panels(Selection(("May",), (200,), (fold,), Rule(), "June", 200))]
['disparity', 'gain']
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from driftquilt.quilt.explanation import Selection
from driftquilt.report.fold_range import fold_range
from driftquilt.report.letters import inner, short

__all__ = ["PANEL_HEIGHT", "Line", "Panel", "panel_parts", "panels"]

PANEL_HEIGHT = 210
_TOP, _BOTTOM, _LEFT, _NAMES = 34, 30, 44, 92
_MOST_NAMED, _LETTERS, _APART = 8, 14, 13


@dataclass(frozen=True)
class Line:
    """A past segment: its score at each epoch, not a number where it has none.

    `scores` are means over folds, `low` and `high` the lowest and the highest fold.
    """

    name: str
    kept: bool
    scores: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]


@dataclass(frozen=True)
class Panel:
    """One score of all past segments; `bound` is the value that it is held against."""

    name: str
    lines: tuple[Line, ...]
    bound: float
    low: float
    high: float

    @property
    def limit(self) -> str:
        """What `bound` is."""
        return "the bound" if self.name == "disparity" else "zero"


def panels(selection: Selection) -> list[Panel]:
    """Both scores; nothing if there is no past segment."""
    if not selection.names:
        return []
    bound = selection.disparity_max
    disparity, gain = _lines(selection, "disparity"), _lines(selection, "gain")
    return [
        Panel("disparity", disparity, bound, 0.0, max(_range(disparity)[1], bound, 0.5) * 1.05),
        Panel("gain", gain, 0.0, *_range(gain)),
    ]


def panel_parts(panel: Panel, x: float, y: float, width: float) -> list[str]:
    """The elements of one panel with its upper left corner at a place."""
    named = 0 < len({line.name for line in panel.lines if line.kept}) <= _MOST_NAMED
    frame = _Frame(panel, x + _LEFT, y + _TOP, width - _LEFT - (_NAMES if named else 16))
    words = f"{panel.name} by epoch: mean and range over folds; dashed: {panel.limit}"
    parts = [f'<text class="small faint" x="{x:g}" y="{y + 16:g}">{words}</text>', *_grid(frame)]
    lines = sorted(panel.lines, key=lambda line: line.kept)
    parts += [part for line in lines for part in _band(line, frame)]
    parts += [part for line in lines for part in _polyline(line, frame)]
    return parts + (_names(frame) if named else [])


@dataclass(frozen=True)
class _Frame:
    """Where a score at an epoch stands in the picture."""

    panel: Panel
    left: float
    top: float
    width: float

    @property
    def height(self) -> float:
        return PANEL_HEIGHT - _TOP - _BOTTOM

    @property
    def n_epochs(self) -> int:
        return max(len(line.scores) for line in self.panel.lines)

    def x(self, epoch: int) -> float:
        return self.left + self.width * epoch / max(self.n_epochs - 1, 1)

    def y(self, score: float) -> float:
        low, high = self.panel.low, self.panel.high
        return self.top + self.height * (high - score) / (high - low)


def _lines(selection: Selection, score: str) -> tuple[Line, ...]:
    mean, low, high = fold_range([getattr(fold, score) for fold in selection.folds])
    return tuple(
        Line(str(use.name), use.kept, *(tuple(part[:, s].tolist()) for part in (mean, low, high)))
        for s, use in enumerate(selection)
    )


def _range(lines: Sequence[Line]) -> tuple[float, float]:
    """From the lowest to the highest score, zero among them, with a little air."""
    scores = np.array([score for line in lines for score in (*line.low, *line.high)])
    scores = scores[np.isfinite(scores)]
    low, high = min(scores.min(initial=0.0), 0.0), max(scores.max(initial=0.0), 0.0)
    air = 0.06 * (high - low) or 1.0
    return float(low - air), float(high + air)


def _grid(frame: _Frame) -> list[str]:
    panel, right = frame.panel, frame.left + frame.width
    ends = [panel.low, panel.high] if panel.low < 0 else [0.0]
    ticks = [end for end in ends if abs(frame.y(end) - frame.y(panel.bound)) >= _APART]
    parts = [
        f'<line class="{kind}" x1="{frame.left:g}" x2="{right:g}" y1="{frame.y(value):.1f}" '
        f'y2="{frame.y(value):.1f}"/><text class="small end num {ink}" x="{frame.left - 6:g}" '
        f'y="{frame.y(value) + 4:.1f}">{value:.2g}</text>'
        for kind, ink, values in (("grid", "faint", ticks), ("bound", "", [panel.bound]))
        for value in values
    ]
    for epoch, side in ((0, ""), (frame.n_epochs - 1, " end")):
        place = f'x="{frame.x(epoch):.1f}" y="{frame.top + frame.height + 18:g}"'
        words = f"epoch {epoch + 1}"
        parts.append(f'<text class="small faint num{side}" {place}>{words}</text>')
    return parts if frame.n_epochs > 1 else parts[:-1]


def _band(line: Line, frame: _Frame) -> list[str]:
    """From the lowest fold to the highest; nothing where they are one."""
    known = [e for e, low in enumerate(line.low) if np.isfinite(low) and low < line.high[e]]
    if not known:
        return []
    upper = [f"{frame.x(e):.1f},{frame.y(line.high[e]):.1f}" for e in known]
    lower = [f"{frame.x(e):.1f},{frame.y(line.low[e]):.1f}" for e in reversed(known)]
    kind = "kept" if line.kept else "dropped"
    return [f'<polygon class="range {kind}" points="{" ".join([*upper, *lower])}"/>']


def _polyline(line: Line, frame: _Frame) -> list[str]:
    points = " ".join(
        f"{frame.x(epoch):.1f},{frame.y(score):.1f}"
        for epoch, score in enumerate(line.scores)
        if np.isfinite(score)
    )
    kind = "kept" if line.kept else "dropped"
    return [
        f'<polyline class="{kind}" points="{points}"><title>{inner(line.name)}</title></polyline>'
    ]


def _names(frame: _Frame) -> list[str]:
    """The names of those kept, at the end of their lines, apart where two would touch."""
    ends = {
        line.name: frame.y(line.scores[-1])
        for line in frame.panel.lines
        if line.kept and np.isfinite(line.scores[-1])
    }
    parts, y, left = [], frame.top - _APART, len(ends)
    for name, end in sorted(ends.items(), key=lambda item: item[1]):
        lowest = frame.top + frame.height - _APART * (left - 1)
        y, left = max(min(end, lowest), y + _APART), left - 1
        parts.append(
            f'<text class="small" x="{frame.left + frame.width + 6:.1f}" y="{y + 4:.1f}">'
            f"{inner(short(name, _LETTERS))}<title>{inner(name)}</title></text>"
        )
    return parts
