"""A running stream as it is watched: how fast, how good, and the quilt so far.

A terminal shows all of it, and again and again; a file or a pipe gets a line now and then.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.text import Text

from driftquilt.stream.events import DriftFound, Event, ModelTrained
from driftquilt.text import plural

if TYPE_CHECKING:
    from driftquilt.decision.replay import Progress
    from driftquilt.stream import QuiltStream

__all__ = ["Pace", "quilt_lines", "tell_plainly", "view"]

_SHADES = "·░▒▓█"
_MOST_LINES, _MOST_PATCHES = 12, 60
_EVERY = 10.0  # seconds from one plain line to the next


class Pace:
    """Says when it is time for another plain line."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._last = clock, clock()

    def due(self) -> bool:
        """Whether so many seconds have passed since it last was."""
        now = self._clock()
        is_due = now - self._last >= _EVERY
        self._last = now if is_due else self._last
        return is_due


def tell_plainly(
    steps: Iterable[Progress], stream: QuiltStream, tell: Callable[[str], None], pace: Pace
) -> None:
    """Go through a replay, with a line for each new drift and now and then how far it is."""
    told = stream.n_rows
    for progress in steps:
        for event in stream.events:
            if isinstance(event, DriftFound) and event.row > told:
                tell(str(event))
        told = stream.n_rows
        if pace.due():
            tell(_headline(progress))


def view(progress: Progress, events: Sequence[Event]) -> RenderableType:
    """What to show after some more rows."""
    seen = progress.rows + progress.skipped
    bar = ProgressBar(total=progress.n_rows, completed=seen, width=60)
    quilt = "\n".join(quilt_lines(events))
    return Group(
        Text(_headline(progress)), bar, Text(quilt), Text(progress.last_event, style="dim")
    )


def quilt_lines(events: Sequence[Event]) -> list[str]:
    """The last trainings: a patch per past segment, the fuller the more epochs used it."""
    trained = [event for event in events if isinstance(event, ModelTrained)][-_MOST_LINES:]
    return [
        f"row {event.row:>9,}  {''.join(map(_shade, list(event.shares.values())[-_MOST_PATCHES:]))}"
        for event in trained
    ]


def _headline(progress: Progress) -> str:
    seen = progress.rows + progress.skipped
    return (
        f"{seen:,} of {plural(progress.n_rows, 'row')}, {progress.rows_per_second:,.0f} a second, "
        f"accuracy of late {progress.accuracy:.3f}, {plural(progress.n_drifts, 'drift')}"
    )


def _shade(share: float) -> str:
    return _SHADES[0] if share <= 0 else _SHADES[min(4, 1 + int(4 * share))]
