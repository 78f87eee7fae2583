"""What a replay has written, read back as values.

A drift here is a segment of the stream that a model was promoted for: its last one counts.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from driftquilt.decision.journal import read_lines
from driftquilt.decision.replay import EVENTS
from driftquilt.decision.replay_header import FORMAT, Line
from driftquilt.errors import InputError, ModelFileError
from driftquilt.quilt.explanation import Selection
from driftquilt.quilt.method import TriedBound
from driftquilt.stream.events import DriftFound, Event, ModelTrained, SegmentSealed, read_event

__all__ = ["Accuracy", "PromotedModel", "Replayed", "TrainedAt", "read_replay"]


@dataclass(frozen=True, eq=False)
class PromotedModel:
    """The last model that took over in a segment, after `row` rows; the first did after `since`."""

    row: int
    since: int
    model: int
    selection: Selection
    bounds: tuple[TriedBound, ...]


@dataclass(frozen=True)
class Accuracy:
    """Share of the `n_rows` rows before `row` that were predicted right."""

    row: int
    n_rows: int
    value: float


@dataclass(frozen=True)
class TrainedAt:
    """A training: it ended after `row` rows, and its `n_current` current rows begin at `first`."""

    row: int
    first: int
    n_current: int


@dataclass(frozen=True, eq=False)
class Replayed:
    """A replay as far as it has come; `n_right` of `n_rows` were predicted right."""

    label: str
    n_rows: int
    n_right: int
    n_skipped: int
    drifts: tuple[PromotedModel, ...]
    accuracy: tuple[Accuracy, ...]
    events: tuple[Event, ...]

    @property
    def drift_rows(self) -> tuple[int, ...]:
        """After how many rows a drift was found, each time."""
        return tuple(event.row for event in self.events if isinstance(event, DriftFound))

    @property
    def n_drifts(self) -> int:
        """Drifts that were found."""
        return len(self.drift_rows)

    @property
    def seals(self) -> tuple[int, ...]:
        """After how many rows a segment was sealed, each time."""
        return tuple(event.row for event in self.events if isinstance(event, SegmentSealed))

    def begin_of(self, drift: PromotedModel) -> int:
        """The row at which the segment of a model begins."""
        return max((row for row in self.seals if row <= drift.since), default=0)

    @property
    def trainings(self) -> tuple[TrainedAt, ...]:
        """Every training that a model came of, for `baselines`."""
        begins = [0, *self.seals]
        return tuple(
            TrainedAt(event.row, max(b for b in begins if b <= started), event.n_current)
            for event in self.events
            if isinstance(event, ModelTrained)
            for started in [event.row - event.n_current]
        )


def read_replay(out: str | os.PathLike[str]) -> Replayed:
    """What `events.jsonl` in a folder tells; a line that a kill tore off is left out."""
    path = Path(out) / EVENTS
    if not path.exists():
        raise InputError(f"there is no replay in {out}: it has no {EVENTS}")
    lines = [line for line, _, _ in read_lines(path)]
    if not lines or lines[0].get("record") != "replay" or lines[0].get("format") != FORMAT:
        raise InputError(f"{path} is no replay that this version of driftquilt reads")
    try:
        return _read(lines[0], lines)
    except (LookupError, TypeError, ValueError, ModelFileError) as error:
        raise InputError(f"{path} is damaged: {error!r}; replay anew") from error


def _read(header: Line, lines: Iterable[Line]) -> Replayed:
    events, counts = [], []
    drifts: list[PromotedModel] = []
    segment_is_new = True
    for line in lines:
        if "event" in line:
            events.append(read_event(line))
            segment_is_new |= isinstance(events[-1], SegmentSealed)
        elif line["record"] == "accuracy":
            counts.append(line)
        elif line["record"] == "selection" and line["selection"] is not None:
            before = [] if segment_is_new else [drifts.pop()]
            drifts.append(_promoted(line, before[0].since if before else line["row"]))
            segment_is_new = False
    last = counts[-1] if counts else {"row": 0, "n_right": 0, "skipped": 0}
    accuracy = tuple(Accuracy(c["row"], c["n_rows"], c["accuracy"]) for c in counts)
    return Replayed(
        header["label"],
        last["row"],
        last["n_right"],
        last["skipped"],
        tuple(drifts),
        accuracy,
        tuple(events),
    )


def _promoted(line: Line, since: int) -> PromotedModel:
    bounds = tuple(TriedBound(**_with_loss(bound)) for bound in line["bounds"])
    selection = Selection.from_json(line["selection"])
    return PromotedModel(line["row"], since, line["model"], selection, bounds)


def _with_loss(bound: dict[str, Any]) -> dict[str, Any]:
    """A bound whose loss was no finite number comes back with one that is none."""
    loss = bound["validation_loss"]
    return {**bound, "validation_loss": float("nan") if loss is None else loss}
