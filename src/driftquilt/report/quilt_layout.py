"""Where everything of a quilt stands: rows are drifts, columns past segments.

Patches are as large as 2 to 60 columns and 1 to 60 rows allow, and square. On a page they stay
large enough to be pointed at: where they need the room, the accuracies beside them go, which a
page has in a table too, and from some forty columns on the figure scrolls. Where there is no room
for every label, every second or third is written; long names are cut, and whoever draws puts the
full name into the title. All lengths are in pixels.

>>> from driftquilt.core.selection import Rule
>>> from driftquilt.quilt.explanation import Selection
>>> layout = lay_out([Drift(Selection((), (), (), Rule(), "June", 200), {"Quilt": 0.91})])
>>> layout.cell, layout.accuracy_ticks[0], layout.accuracy_ticks[-1]
(40, 0.9, 1.0)
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from driftquilt.report.letters import short
from driftquilt.report.page import Drift

__all__ = ["Layout", "lay_out"]

MOST_LETTERS, MOST_ROW_LETTERS = 14, 22  # of names above and beside the patches
_LARGEST, _LARGEST_ON_PAGE, _SMALLEST, _SMALLEST_ON_PAGE = 40, 48, 10, 23  # patches
_PLOT, _LARGEST_PLOT = 230, 460
_WIDE, _HIGH = 620, 1_000  # for all patches together
_LETTER, _LINE = 6.8, 14  # of small text: width, and height with the space around it
_HEAD, _RIGHT = 30, 26
_PAGE = 1_090  # the width that a page has for a picture
_TILT, _APART = 64, 40  # from the patches to the accuracies, with tilted labels or without
_OVER = 40  # that the last tilted label takes where there are no accuracies


@dataclass(frozen=True)
class Layout:
    """Sizes and places; `columns` are the past segments of all drifts, in order of appearance."""

    columns: dict[Hashable, int]
    methods: tuple[str, ...]
    n_rows: int
    cell: int
    left: float  # where patches begin
    top: float
    heads: float  # the line of the captions
    tilted: bool  # labels of columns
    accuracy_ticks: tuple[float, ...]
    on_page: bool

    @property
    def bottom(self) -> float:
        return self.top + self.cell * self.n_rows

    @property
    def patches_right(self) -> float:
        return self.left + self.cell * len(self.columns)

    @property
    def plot_left(self) -> float:
        return self.patches_right + (_TILT if self.tilted else _APART)

    @property
    def plot_width(self) -> float:
        if not self.on_page:
            return _PLOT
        return min(max(_PAGE - _RIGHT - self.plot_left, _PLOT), _LARGEST_PLOT)

    @property
    def width(self) -> float:
        right = self.plot_left + self.plot_width if self.methods else self.patches_right
        return max(right + _RIGHT + (_OVER if self.tilted and not self.methods else 0), 420)

    @property
    def gap(self) -> float:
        """Between two patches."""
        return 5 if self.cell >= 24 else 1.5 if self.cell < 16 else 3  # noqa: PLR2004

    @property
    def column_step(self) -> int:
        """Every so many columns have their label."""
        room = self.cell / math.sqrt(2) if self.tilted else self.cell
        return math.ceil(_LINE / room) if self.tilted else 1

    @property
    def row_step(self) -> int:
        return math.ceil(_LINE / self.cell)

    def accuracy_x(self, value: float) -> float:
        low, high = self.accuracy_ticks[0], self.accuracy_ticks[-1]
        return self.plot_left + self.plot_width * (min(max(value, low), high) - low) / (high - low)


def lay_out(drifts: Sequence[Drift], *, on_page: bool = False) -> Layout:
    """The layout of these drifts; a page has more room, and its own title."""
    columns = list(dict.fromkeys(name for drift in drifts for name in drift.selection.names))
    methods = tuple(dict.fromkeys(name for drift in drifts for name in drift.accuracies))
    rows = max((len(short(drift.name, MOST_ROW_LETTERS)) for drift in drifts), default=0)
    left = 28 + max(rows * 7.4, 46)
    if on_page and left + _SMALLEST_ON_PAGE * len(columns) + _TILT + _PLOT + _RIGHT > _PAGE:
        methods = ()
    cell = (
        _cell_on_page(left, len(columns), len(drifts), beside=bool(methods))
        if on_page
        else _cell(_WIDE, len(columns), len(drifts), _SMALLEST, _LARGEST)
    )
    letters = max((len(short(name, MOST_LETTERS)) for name in columns), default=0)
    tilted = letters * _LETTER > cell - 4
    heads = 22 + (0 if on_page else _HEAD)
    return Layout(
        {name: k for k, name in enumerate(columns)},
        methods,
        len(drifts),
        cell,
        left=left,
        top=heads + (22 + letters * _LETTER * 0.75 if tilted else 28),
        heads=heads,
        tilted=tilted,
        accuracy_ticks=_ticks([value for drift in drifts for value in drift.accuracies.values()]),
        on_page=on_page,
    )


def _cell_on_page(left: float, n_columns: int, n_rows: int, *, beside: bool) -> int:
    wide = _PAGE - _RIGHT - left - (_TILT + _PLOT if beside else _OVER)
    return _cell(wide, n_columns, n_rows, _SMALLEST_ON_PAGE, _LARGEST_ON_PAGE)


def _cell(wide: float, n_columns: int, n_rows: int, smallest: int, largest: int) -> int:
    fits = min(wide / max(n_columns, 1), _HIGH / max(n_rows, 1))
    return int(min(max(fits, smallest), largest))


def _ticks(values: Sequence[float]) -> tuple[float, ...]:
    """Round accuracies up to 1 that enclose all that can be drawn."""
    worst = min((value for value in values if value == value), default=0.0)  # noqa: PLR0124
    worst = min(max(worst, 0.0), 0.95)
    step = next(s for s, low in ((0.02, 0.9), (0.05, 0.75), (0.1, 0.5), (0.2, 0.0)) if worst >= low)
    n_steps = math.ceil(round((1 - worst) / step, 9))
    return tuple(round(1 - step * k, 2) for k in range(n_steps, -1, -1))
