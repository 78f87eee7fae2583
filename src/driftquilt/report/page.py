"""What a report says, as values: `html` draws them and computes nothing.

A page has one `Drift` for each time that a model was trained for a new present: the selection
with its scores, and how well the model did beside others.

>>> page = Page("Churn", ("Two of three months were kept.",), ())
>>> Page.from_json(page.to_json()) == page
True
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

from driftquilt.errors import ModelFileError
from driftquilt.methods.explanation import KEPT_FROM, SegmentUse, Selection
from driftquilt.methods.quilt import TriedBound
from driftquilt.report.record import damaged, take, take_list, take_map

__all__ = ["AccuracyLines", "ColumnNote", "Drift", "Page"]


@dataclass(frozen=True)
class Drift:
    """A model for a new present: what it was trained on, and how well it does.

    `accuracies` are shares of rows that no model had seen, by method, ours first. `row` is the
    row of the stream after which the current segment begins, if there is a stream. `correct` are
    the shares of each past segment's rows that the model predicts right, where they are known.
    """

    selection: Selection
    accuracies: dict[str, float] = field(default_factory=dict)
    bounds: tuple[TriedBound, ...] = ()
    row: int | None = None
    correct: dict[str, float] = field(default_factory=dict)

    @property
    def name(self) -> Hashable:
        """Of the current segment."""
        return self.selection.current

    @cached_property
    def uses(self) -> tuple[SegmentUse, ...]:
        """What became of every past segment; a selection works it out anew each time."""
        return tuple(self.selection)

    @property
    def shares(self) -> dict[Hashable, float]:
        """The share of epochs that used each past segment."""
        return {use.name: use.share for use in self.uses}

    @property
    def kept(self) -> list[Hashable]:
        """The past segments that at least one epoch used."""
        return [name for name, share in self.shares.items() if share >= KEPT_FROM]

    def to_json(self) -> dict[str, Any]:
        return {
            "selection": self.selection.to_json(),
            "accuracies": self.accuracies,
            "bounds": [bound._asdict() for bound in self.bounds],
            "row": self.row,
            "correct": self.correct,
        }

    @classmethod
    def from_json(cls, data: Any, where: str = "the record of a drift") -> Drift:
        return cls(
            _read_selection(take(data, "selection", dict, where), where),
            take_map(data, "accuracies", float, where),
            tuple(_read_bound(bound, where) for bound in take(data, "bounds", list, where)),
            None if data.get("row", "") is None else take(data, "row", int, where),
            take_map(data, "correct", float, where),
        )


@dataclass(frozen=True)
class AccuracyLines:
    """Rolling accuracy by method, each value over the `window` rows before `rows`.

    `drifts` are the rows at which a drift was found, whether or not a model followed.
    """

    rows: tuple[int, ...]
    by_method: dict[str, tuple[float | None, ...]]
    window: int
    drifts: tuple[int, ...] = ()

    @classmethod
    def from_json(cls, data: Any, where: str = "the record of the accuracy") -> AccuracyLines:
        rows, by_method = take_list(data, "rows", int, where), {}
        for name, values in take_map(data, "by_method", list, where).items():
            known = [value for value in values if value is not None]
            take_list({name: known}, name, float, where)
            if len(values) != len(rows):
                raise damaged(where, f"has {len(values)} values of {name!r} for {len(rows)} rows")
            by_method[name] = tuple(values)
        drifts = take_list(data, "drifts", int, where) if "drifts" in data else ()
        return cls(rows, by_method, take(data, "window", int, where), drifts)


@dataclass(frozen=True)
class ColumnNote:
    """A column of the data: what it was read as, how much of it is missing, what to know of it."""

    name: str
    kind: str
    missing: float
    note: str = ""

    @classmethod
    def from_json(cls, data: Any, where: str = "the record of a column") -> ColumnNote:
        name, kind, note = (take(data, key, str, where) for key in ("name", "kind", "note"))
        return cls(name, kind, take(data, "missing", float, where), note)


@dataclass(frozen=True)
class Page:
    """Everything that a report shows; `cut` says what the segments are, if that is known."""

    title: str
    sentences: tuple[str, ...]
    drifts: tuple[Drift, ...]
    accuracy: AccuracyLines | None = None
    columns: tuple[ColumnNote, ...] = ()
    warnings: tuple[str, ...] = ()
    versions: dict[str, str] = field(default_factory=dict)
    command: str = ""
    cut: str = ""

    def to_json(self) -> dict[str, Any]:
        """Plain values; `from_json` is the way back."""
        return {
            "title": self.title,
            "sentences": list(self.sentences),
            "drifts": [drift.to_json() for drift in self.drifts],
            "accuracy": None if self.accuracy is None else _plain_lines(self.accuracy),
            "columns": [asdict(column) for column in self.columns],
            "warnings": list(self.warnings),
            "versions": self.versions,
            "command": self.command,
            "cut": self.cut,
        }

    @classmethod
    def from_json(cls, data: Any) -> Page:
        """The page of a record; a damaged one is an `InputError` that says what is wrong."""
        where = "the record of the report"
        drifts = enumerate(take(data, "drifts", list, where), start=1)
        line = data.get("accuracy", "")
        columns = take(data, "columns", list, where)
        return cls(
            take(data, "title", str, where),
            take_list(data, "sentences", str, where),
            tuple(Drift.from_json(drift, f"{where}, drift {number},") for number, drift in drifts),
            None if line is None else AccuracyLines.from_json(take(data, "accuracy", dict, where)),
            tuple(ColumnNote.from_json(column) for column in columns),
            take_list(data, "warnings", str, where),
            take_map(data, "versions", str, where),
            take(data, "command", str, where),
            take(data, "cut", str, where),
        )


def _plain_lines(lines: AccuracyLines) -> dict[str, Any]:
    by_method = {name: list(values) for name, values in lines.by_method.items()}
    return {
        "rows": list(lines.rows),
        "by_method": by_method,
        "window": lines.window,
        "drifts": list(lines.drifts),
    }


def _read_selection(record: dict[str, Any], where: str) -> Selection:
    """What `Selection.from_json` leaves unchecked would only be missed when it is drawn."""
    try:
        selection = Selection.from_json(record)
    except ModelFileError as error:
        raise damaged(where, f"cannot be read ({error})") from error
    take_list(record, "n_rows", int, where)
    for fold in record["folds"]:
        take(fold, "disparity_max", float, where)
        take(fold, "best", int, where)
    take_list(record, "rule", bool, where)
    take({"current": selection.n_current}, "current", int, where)
    for name in (selection.current, *selection.names):
        if isinstance(name, list | dict):
            raise damaged(where, f"has {name!r} as the name of a segment")
    return selection


def _read_bound(record: Any, where: str) -> TriedBound:
    return TriedBound(
        take(record, "fold", int, where),
        take(record, "disparity_max", float, where),
        take(record, "validation_loss", float, where),
        take(record, "n_epochs", int, where),
        take(record, "won", bool, where),
    )
