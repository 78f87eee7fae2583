"""What happened in a stream, as values: drifts, segments, trainings, models, columns and classes.

Every event says after how many rows it happened, and has a number; one that a stream tells again
after a crash has the number that it had. Only a forgotten row is told without, because it follows
from predictions, which nobody repeats. `to_json` and `read_event` are each other's way back, so
that events outlive the process.

>>> event = DriftFound(row=2000)
>>> read_event(event.to_json()) == event
True
>>> str(event)
'row 2000: drift found'
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import Any

from driftquilt.quilt.explanation import which_used
from driftquilt.text import plural

__all__ = [
    "ClassAppeared",
    "ColumnAppeared",
    "ColumnVanished",
    "DriftFound",
    "Event",
    "ModelDamaged",
    "ModelKept",
    "ModelPromoted",
    "ModelRolledBack",
    "ModelTrained",
    "RowForgotten",
    "SegmentDamaged",
    "SegmentDropped",
    "SegmentSealed",
    "TrainingFailed",
    "keep",
    "read_event",
]

_MOST = 1_000
_MOST_EXPLAINED = 20  # an explanation has a line for every past segment
_MOST_OF_A_KIND = 200  # of columns and forgotten rows, which may come all the time: drifts stay


@dataclass(frozen=True)
class Event:
    """Something that happened after so many rows; the first with a number has 1, 0 is none."""

    row: int
    number: int = field(default=0, kw_only=True, compare=False, repr=False)

    def to_json(self) -> dict[str, Any]:
        """Plain values, with the kind of event."""
        return {"event": type(self).__name__, **asdict(self)}

    def __str__(self) -> str:
        return f"row {self.row}: {self._words()}"

    def _words(self) -> str:
        raise NotImplementedError


@dataclass(frozen=True)
class DriftFound(Event):
    """The detector fired, and the guard let it.

    The panel's own detector gives its `evidence`, which is how many rows would pass on average
    before so much comes up by chance, and where the drift `began`: so many rows came before it. If
    a model of before has taken over, `resembles` is its version.
    """

    evidence: float | None = None
    began: int | None = None
    resembles: int | None = None

    def _words(self) -> str:
        if self.evidence is None:
            return "drift found"
        like = "" if self.resembles is None else f", it is like model {self.resembles} again"
        return f"drift found that began at row {self.began} (evidence {self.evidence:.0f}){like}"


@dataclass(frozen=True)
class SegmentSealed(Event):
    """The open rows became a past segment: because of a drift, or because they were so many."""

    segment: int
    first_row: int
    n_rows: int
    full: bool = False

    def _words(self) -> str:
        why = " because it was full" if self.full else ""
        return f"segment {self.segment} sealed with {plural(self.n_rows, 'row')}{why}"


@dataclass(frozen=True)
class SegmentDropped(Event):
    """A past segment was forgotten, the least used one, to stay within bounds."""

    segment: int
    n_rows: int
    used: float

    def _words(self) -> str:
        return f"segment {self.segment} ({plural(self.n_rows, 'row')}) dropped as the least used"


@dataclass(frozen=True)
class SegmentDamaged(Event):
    """The file of a past segment is missing or damaged; trainings go on without it.

    What is left of the file stays in the store.
    """

    segment: int
    n_rows: int
    why: str

    def _words(self) -> str:
        return (
            f"segment {self.segment} ({plural(self.n_rows, 'row')}) is left out of trainings: "
            f"{self.why}"
        )


@dataclass(frozen=True)
class ModelTrained(Event):
    """A selection with its explanation; `weights` are those of past segments in the model.

    A weight is how much of the model was trained on the segment; `blend` is what
    the model is made of. Events of earlier versions have the share of epochs that used a segment
    for its weight, which is the same where nothing is blended, and no `blend`. Only the last
    twenty trainings keep their explanation.
    """

    n_current: int
    weights: dict[int, float] = field(hash=False)
    validation_loss: float
    seconds: float = field(compare=False)
    explanation: str = field(repr=False)
    blend: dict[str, float] = field(default_factory=dict, hash=False, kw_only=True)

    @property
    def used(self) -> list[int]:
        """The past segments that the model uses."""
        used = which_used([*self.weights.values()])
        return [number for number, is_used in zip(self.weights, used, strict=True) if is_used]

    def _words(self) -> str:
        return (
            f"trained on {len(self.used)} of {plural(len(self.weights), 'past segment')} and "
            f"{plural(self.n_current, 'current row')} in {self.seconds:.1f} s"
        )


@dataclass(frozen=True)
class TrainingFailed(Event):
    """No model came of a training; the present one stays."""

    why: str

    def _words(self) -> str:
        return f"training failed: {self.why}"


@dataclass(frozen=True)
class ModelPromoted(Event):
    """The new model took over; `previous_loss` is that of the model before, if there was one."""

    model: int
    loss: float
    previous_loss: float | None

    def _words(self) -> str:
        return f"model {self.model} promoted"


@dataclass(frozen=True)
class ModelKept(Event):
    """The guard preferred the present model to the new one."""

    loss: float
    previous_loss: float

    def _words(self) -> str:
        return f"new model rejected (loss {self.loss:.3f}, current {self.previous_loss:.3f})"


@dataclass(frozen=True)
class ModelDamaged(Event):
    """The file of a model is missing or damaged, so it no longer answers; the others go on.

    If it was the newest, another is trained with the next row. What is left of the file stays.
    """

    model: int
    why: str

    def _words(self) -> str:
        return f"model {self.model} cannot answer any more: {self.why}"


@dataclass(frozen=True)
class ModelRolledBack(Event):
    """A model of before took over because the caller said so; it may be newer than the last."""

    model: int

    def _words(self) -> str:
        return f"model {self.model} took over again"


@dataclass(frozen=True)
class ColumnAppeared(Event):
    """The first row that has a column, when there is a model already, which knows nothing of it."""

    column: str

    def _words(self) -> str:
        return f"column {self.column!r} appeared"


@dataclass(frozen=True)
class ColumnVanished(Event):
    """A segment was sealed without a value in a column that the segment before had."""

    column: str

    def _words(self) -> str:
        return f"column {self.column!r} vanished"


@dataclass(frozen=True)
class ClassAppeared(Event):
    """The first row with a label, when there is a model already, which never answers with it."""

    label: int | bool | str

    def _words(self) -> str:
        return f"class {self.label!r} appeared"


@dataclass(frozen=True)
class RowForgotten(Event):
    """A predicted row waited too long for its label, behind too many others."""

    key: str | int

    def _words(self) -> str:
        return f"the row {self.key!r} was forgotten before its label came"


def keep(events: list[Event], event: Event) -> None:
    """Append an event; the last thousand stay, 200 of frequent kinds, and twenty explanations."""
    events.append(event)
    del events[:-_MOST]
    if isinstance(event, ModelTrained):
        explained = [n for n, e in enumerate(events) if isinstance(e, ModelTrained)]
        for at in explained[:-_MOST_EXPLAINED][-1:]:
            events[at] = replace(events[at], explanation="")  # type: ignore[call-arg]
    for kinds in _FREQUENT:
        if isinstance(event, kinds):
            alike = [n for n, e in enumerate(events) if isinstance(e, kinds)]
            for at in reversed(alike[:-_MOST_OF_A_KIND]):
                del events[at]


_FREQUENT = ((ColumnAppeared, ColumnVanished), (RowForgotten,))
_KINDS = {kind.__name__: kind for kind in Event.__subclasses__()}


def read_event(data: dict[str, Any]) -> Event:
    """Return the event that `to_json` described."""
    fields = {name: value for name, value in data.items() if name != "event"}
    if "shares" in fields:  # of earlier versions
        fields["weights"] = fields.pop("shares")
    if "weights" in fields:  # JSON has no whole numbers for keys
        fields["weights"] = {int(number): weight for number, weight in fields["weights"].items()}
    return _KINDS[data["event"]](**fields)
