"""A decision as values: what was selected, what it gains, and what to know of the data.

Everything but the model goes into JSON and back. The counts of a `Method` are of rows that no
model was trained on.

>>> method = Method("all data", validation=0.8, n_right=80, n_rows=100, wins=15, losses=2)
>>> method.accuracy, method.verdict
(0.8, 'better')
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from typing import Any

from driftquilt.decision.columns import ColumnFacts
from driftquilt.decision.measure import Verdict, interval, p_value, verdict
from driftquilt.decision.origin import Origin
from driftquilt.decision.words import Constant, sentences
from driftquilt.errors import InputError, ModelFileError
from driftquilt.quilt.classifier import QuiltClassifier
from driftquilt.quilt.explanation import Selection
from driftquilt.quilt.method import TriedBound
from driftquilt.text import json_safe

__all__ = ["FORMAT", "Decision", "Method"]

#: Raised when decisions of the version before can no longer be read.
FORMAT = 1


@dataclass(frozen=True)
class Method:
    """One way to train, and how it did; `wins` and `losses` are Quilt's against it.

    `validation` is the accuracy on current rows that validated, averaged over folds. A win is a
    row that Quilt has right and this method wrong; Quilt has none against itself.
    """

    name: str
    validation: float
    n_right: int = 0
    n_rows: int = 0
    wins: int = 0
    losses: int = 0

    @property
    def accuracy(self) -> float | None:
        """Share of the held-out rows that were right; None if there were none."""
        return self.n_right / self.n_rows if self.n_rows else None

    @property
    def interval(self) -> tuple[float, float]:
        """95 % interval of the accuracy."""
        return interval(self.n_right, self.n_rows)

    @property
    def verdict(self) -> Verdict:
        """What Quilt is beside this method."""
        return verdict(self.wins, self.losses)

    def to_json(self) -> dict[str, Any]:
        """Plain values, with what follows from them for those who read the file."""
        told = {"accuracy": self.accuracy, "interval": self.interval}
        against = {"p_value": p_value(self.wins, self.losses), "quilt_is": self.verdict}
        return {**asdict(self), **told, **against}


@dataclass(frozen=True, eq=False)
class Decision:
    """Which past segments a model for the current one is trained on, and what that gains.

    `n_rows` are those of the table, `n_current` the current ones trained on, `n_held_out` those
    kept back. `correct` is the share of some rows of each past segment that the model has right.
    `cut` says what the segments are, such as "the values of the column 'month'"; `constant` is
    what the plainest answer would have right, `origin` what was typed, and on which files.
    """

    label: str
    classes: tuple[Any, ...]
    current: str
    n_rows: int
    n_current: int
    n_held_out: int
    holdout: float
    seed: int
    selection: Selection
    bounds: tuple[TriedBound, ...]
    correct: dict[str, float]
    methods: tuple[Method, ...]  # Quilt first
    columns: tuple[ColumnFacts, ...]
    warnings: tuple[str, ...]
    version: str
    cut: str = ""
    constant: Constant | None = None
    origin: Origin | None = None
    model: QuiltClassifier | None = field(default=None, repr=False)

    def sentences(self) -> tuple[str, str, str]:
        """What was kept, what it gains, and what to do."""
        return sentences(self.selection, self.methods, self.constant)

    def past(self) -> list[dict[str, Any]]:
        """One record per past segment, oldest first; scores are medians over epochs."""
        return [
            {
                "segment": use.name,
                "rows": use.n_rows,
                "kept": use.kept,
                "word": use.word,
                "share": use.share,
                "disparity": use.disparity.median,
                "gain": use.gain.median,
                "correct": self.correct.get(str(use.name)),
                "why": use.why,
            }
            for use in self.selection
        ]

    def to_json(self) -> dict[str, Any]:
        """Everything but the model; what is not a field of it is for those who read the file."""
        own = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "model"}
        told = {"sentences": self.sentences(), "past": self.past()}
        bound = {"disparity_max": self.selection.disparity_max}
        record = {"format": FORMAT, **told, **bound, **own}
        record["selection"] = self.selection.to_json()
        record["bounds"] = [bound._asdict() for bound in self.bounds]
        record["methods"] = [method.to_json() for method in self.methods]
        record["constant"] = None if self.constant is None else self.constant._asdict()
        record["origin"] = None if self.origin is None else self.origin.to_json()
        record["columns"] = [asdict(column) for column in self.columns]
        made: dict[str, Any] = json_safe(record)
        return made

    @classmethod
    def from_json(cls, data: Any) -> Decision:
        """What `to_json` told of, without the model."""
        if isinstance(data, dict) and data.get("format", FORMAT) != FORMAT:
            raise InputError(
                f"the decision has format {data['format']}, this version reads {FORMAT}; install "
                "the driftquilt that wrote it, or a newer one"
            )
        try:
            return cls._read(data)
        except (LookupError, TypeError, ValueError, AttributeError, ModelFileError) as error:
            raise InputError(
                f"this is no decision that driftquilt wrote, or it is damaged: {error!r}; select "
                "again"
            ) from error

    @classmethod
    def _read(cls, data: dict[str, Any]) -> Decision:
        later = ("model", "cut", "constant", "origin")  # which early files do not have
        own = {f.name: data[f.name] for f in fields(cls) if f.name not in later}
        constant, origin = data.get("constant"), data.get("origin")
        known = [f.name for f in fields(Method)]
        methods = tuple(Method(**{name: m[name] for name in known}) for m in data["methods"])
        decision = cls(
            **{
                **own,
                "cut": str(data.get("cut", "")),
                "constant": None if constant is None else Constant(**constant),
                "origin": None if origin is None else Origin.from_json(origin),
                "classes": tuple(data["classes"]),
                "selection": Selection.from_json(data["selection"]),
                "bounds": tuple(_bound(bound) for bound in data["bounds"]),
                "correct": dict(data["correct"]),
                "methods": methods,
                "columns": tuple(ColumnFacts(**column) for column in data["columns"]),
                "warnings": tuple(data["warnings"]),
            }
        )
        decision.to_json()  # values of a wrong kind show here, not later
        return decision


def _bound(record: dict[str, Any]) -> TriedBound:
    loss = record["validation_loss"]
    return TriedBound(**{**record, "validation_loss": float("nan") if loss is None else loss})
