"""A running stream on the terminal: how fast, how good, and the quilt so far."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.text import Text

from driftquilt.stream.events import Event, ModelTrained

if TYPE_CHECKING:
    from driftquilt.decision.replay import Progress

__all__ = ["quilt_lines", "view"]

_SHADES = "·░▒▓█"
_MOST_LINES, _MOST_PATCHES = 12, 60


def view(progress: Progress, events: Sequence[Event]) -> RenderableType:
    """What to show after some more rows."""
    seen = progress.rows + progress.skipped
    head = (
        f"{seen:,} of {progress.n_rows:,} rows, {progress.rows_per_second:,.0f} a second, "
        f"accuracy of late {progress.accuracy:.3f}, {progress.n_drifts} drifts"
    )
    bar = ProgressBar(total=progress.n_rows, completed=seen, width=60)
    quilt = "\n".join(quilt_lines(events))
    return Group(Text(head), bar, Text(quilt), Text(progress.last_event, style="dim"))


def quilt_lines(events: Sequence[Event]) -> list[str]:
    """The last trainings: a patch per past segment, the fuller the more epochs used it."""
    trained = [event for event in events if isinstance(event, ModelTrained)][-_MOST_LINES:]
    return [
        f"row {event.row:>9,}  {''.join(map(_shade, list(event.shares.values())[-_MOST_PATCHES:]))}"
        for event in trained
    ]


def _shade(share: float) -> str:
    return _SHADES[0] if share <= 0 else _SHADES[min(4, 1 + int(4 * share))]
