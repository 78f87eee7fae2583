"""What a quilt shows, as values, and the places of its parts.

Patches are square, and as large as 2 to 60 columns and 1 to 60 rows allow. On a page they stay
large enough to be pointed at: where they need the room, the scores beside them are left out,
which a page also has in a table, and from some forty columns on the figure scrolls. Where there is
no room for every label, every second or third is written; long names are cut, and the drawing puts
the full name into the title. All lengths are in pixels.

>>> june = QuiltRow(0, "June", scores={"Quilt": 0.91})
>>> layout = lay_out(Quilt((june,)))
>>> layout.cell, layout.score_ticks[0], layout.score_ticks[-1]
(40, 0.9, 1.0)
"""

from __future__ import annotations

import math
import re
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field

from driftquilt.report.lines import accuracy_ticks, round_ticks
from driftquilt.report.svg import shorten

__all__ = [
    "ROW_LETTERS",
    "Layout",
    "Patch",
    "Quilt",
    "QuiltRow",
    "Room",
    "column_labels",
    "lay_out",
]

NAME_LETTERS, ROW_LETTERS = 14, 22  # of names above and beside the patches
_LETTER, _LINE = 6.8, 14  # of small text: width, and height with the space around it
_TITLE, _RIGHT = 30, 26
_TILTED_GAP, _GAP = 64, 40  # from patches to scores, with tilted labels or without
_TILTED_END = 40  # room for the last tilted label where there are no scores
_PLOT, _LARGEST_PLOT, _NOTES = 230, 460, 96
_SCORE_TICKS = 4
_NUMBERED = re.compile(r"segments? (\d+(?: to \d+)?)(?: \(.*\))?")
_HEIGHT = 1_000  # for all patches together


@dataclass(frozen=True)
class Patch:
    """A past segment of a row: `label` in words, `tip` as lines of text or of name and value."""

    column: Hashable
    number: int
    weight: float
    used: bool
    disparity: float
    label: str
    tip: tuple[str | tuple[str, str], ...]


@dataclass(frozen=True)
class QuiltRow:
    """A model: its number, name and patches, and what stands beside them."""

    number: int
    name: str
    label: str = ""
    patches: tuple[Patch, ...] = ()
    scores: dict[str, float] = field(default_factory=dict)
    note: str = ""
    tip: tuple[str | tuple[str, str], ...] = ()
    in_use: bool = False


@dataclass(frozen=True)
class Quilt:
    """Rows of patches under the names of their columns, in order of appearance.

    `row_title` and `note_title` stand above the names of rows and above their notes, `measure`
    above their scores.
    """

    rows: tuple[QuiltRow, ...]
    row_title: str = "model"
    note_title: str = ""
    measure: str = "accuracy"

    @property
    def columns(self) -> dict[Hashable, int]:
        """The number of each column by its name."""
        names = dict.fromkeys(patch.column for row in self.rows for patch in row.patches)
        return {name: k for k, name in enumerate(names)}

    @property
    def methods(self) -> tuple[str, ...]:
        """The methods that rows have scores of."""
        return tuple(dict.fromkeys(name for row in self.rows for name in row.scores))


@dataclass(frozen=True)
class Room:
    """The width that a page has for a quilt, and the size of its smallest patch."""

    width: float = 1_090
    smallest: int = 23
    largest: int = 48


@dataclass(frozen=True)
class Layout:
    """Sizes and places; `room` is None for a picture of its own."""

    columns: dict[Hashable, int]
    labels: dict[Hashable, str]  # of columns
    methods: tuple[str, ...]
    has_notes: bool
    n_rows: int
    cell: int
    left: float  # where patches begin
    top: float
    titles: float  # the line of the titles
    tilted: bool  # labels of columns
    score_ticks: tuple[float, ...]
    room: Room | None

    @property
    def bottom(self) -> float:
        return self.top + self.cell * self.n_rows

    @property
    def patches_right(self) -> float:
        return self.left + self.cell * len(self.columns)

    @property
    def beside(self) -> float:
        """Where scores or notes begin."""
        if self.has_notes:
            return self.patches_right + 12
        return self.patches_right + (_TILTED_GAP if self.tilted else _GAP)

    @property
    def plot_width(self) -> float:
        if self.room is None:
            return _PLOT
        return min(max(self.room.width - _RIGHT - self.beside, _PLOT), _LARGEST_PLOT)

    @property
    def width(self) -> float:
        if self.has_notes:
            return self.beside + _NOTES
        if self.methods:
            return max(self.beside + self.plot_width + _RIGHT, 420)
        return max(self.patches_right + _RIGHT + (_TILTED_END if self.tilted else 0), 420)

    @property
    def gap(self) -> float:
        """The space between two patches."""
        return 5 if self.cell >= 24 else 1.5 if self.cell < 16 else 3  # noqa: PLR2004

    @property
    def column_step(self) -> int:
        """Every so many columns have their label."""
        return math.ceil(_LINE * math.sqrt(2) / self.cell) if self.tilted else 1

    @property
    def row_step(self) -> int:
        """Every so many rows have their label."""
        return math.ceil(_LINE / self.cell)

    def score_x(self, value: float) -> float:
        """Return the place of a score beside the patches."""
        low, high = self.score_ticks[0], self.score_ticks[-1]
        return self.beside + self.plot_width * (min(max(value, low), high) - low) / (high - low)


def lay_out(quilt: Quilt, room: Room | None = None) -> Layout:
    """Return the layout of a quilt on a page with some room, or as a picture with a title."""
    columns, methods = quilt.columns, quilt.methods
    row_letters = max((len(shorten(row.name, ROW_LETTERS)) for row in quilt.rows), default=0)
    left = 28 + max(row_letters * 7.4, 46)
    if room is not None:
        needed = left + room.smallest * len(columns) + _TILTED_GAP + _PLOT + _RIGHT
        methods = methods if needed <= room.width else ()
    cell = _cell(quilt, room, left, has_scores=bool(methods))
    labels = column_labels(columns)
    letters = max(map(len, labels.values()), default=0)
    tilted = letters * _LETTER > cell - 4
    titles = 22 + (_TITLE if room is None else 0)
    return Layout(
        columns,
        labels,
        methods,
        bool(quilt.note_title),
        len(quilt.rows),
        cell,
        left=left,
        top=titles + (22 + letters * _LETTER * 0.75 if tilted else 28),
        titles=titles,
        tilted=tilted,
        score_ticks=_score_ticks(quilt),
        room=room,
    )


def column_labels(names: Iterable[Hashable]) -> dict[Hashable, str]:
    """Return short labels: of numbered segments the number, without the rows in brackets.

    >>> column_labels(["segment 1 (rows 0 to 99)", "segments 2 to 4 (rows 100 to 400)"]).values()
    dict_values(['1', '2 to 4'])
    >>> column_labels(["segment 1 (rows 0 to 99)", "May"]).values()
    dict_values(['segment 1 …', 'May'])
    """
    numbered = {name: _NUMBERED.fullmatch(str(name)) for name in names}
    if all(numbered.values()):
        return {name: match[1] for name, match in numbered.items() if match}
    return {name: shorten(name, NAME_LETTERS) for name in numbered}


def _score_ticks(quilt: Quilt) -> tuple[float, ...]:
    """Return round numbers that enclose all scores."""
    values = [v for row in quilt.rows for v in row.scores.values() if math.isfinite(v)]
    if quilt.measure == "accuracy" or not values:
        return accuracy_ticks(values)
    low, high = min(values), max(values)
    if low == high:
        low, high = low - (abs(low) or 1) / 10, high + (abs(high) or 1) / 10
    inner = round_ticks(low, high, _SCORE_TICKS)
    step = (high - low) if len(inner) < 2 else inner[1] - inner[0]  # noqa: PLR2004
    first, last = math.floor(low / step), math.ceil(high / step)
    return tuple(float(f"{step * k:.12g}") for k in range(first, last + 1))


def _cell(quilt: Quilt, room: Room | None, left: float, *, has_scores: bool) -> int:
    """Return the size of a patch with the gap beside it."""
    if room is None:
        width, smallest, largest = 620.0, 10, 40
    else:
        beside = _TILTED_GAP + _PLOT if has_scores else _TILTED_END
        width = room.width - left - (_NOTES + 12 if quilt.note_title else beside + _RIGHT)
        smallest, largest = room.smallest, room.largest
    fits = min(width / max(len(quilt.columns), 1), _HEIGHT / max(len(quilt.rows), 1))
    return int(min(max(fits, smallest), largest))
