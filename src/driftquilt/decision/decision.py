r"""A decision as values: which past segments are used, what that gains, and where it comes from.

Everything but the model and the layout goes to JSON and back. The origin names the command and
the data files with their checksums, so that an auditor can check the files and run it again.

>>> import tempfile
>>> path = Path(tempfile.mkdtemp(), "may.csv")
>>> _ = path.write_text("a,b\n1,2\n")
>>> origin = Origin.of("driftquilt select may.csv", [path])
>>> [(file.n_bytes, file.sha256[:8]) for file in origin.data]
[(8, '492d5ea4')]
>>> Origin.from_json(origin.to_json()) == origin
True
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from driftquilt import __version__
from driftquilt.data.column_types import ColumnFacts
from driftquilt.decision.layout import Layout
from driftquilt.decision.measure import ConstantAnswer, MethodScore
from driftquilt.decision.sentences import sentences
from driftquilt.errors import InputError, ModelFileError
from driftquilt.quilt.classifier import QuiltClassifier
from driftquilt.quilt.explanation import Selection
from driftquilt.quilt.method import TriedBound
from driftquilt.text import json_safe

__all__ = ["FORMAT", "DataFile", "Decision", "Origin", "read_bound"]

#: Raised when decisions of the previous version can no longer be read.
FORMAT = 1

_NOT_IN_JSON = ("model", "layout")
_NOT_IN_EARLY_FILES = ("cut", "constant", "origin")


@dataclass(frozen=True)
class DataFile:
    """A data file; the size and checksum of a pipe are not known."""

    name: str
    n_bytes: int | None = None
    sha256: str | None = None

    @classmethod
    def of(cls, path: Path) -> DataFile:
        """Describe a file; one that is gone, such as a pipe that was read, by its name only."""
        if not path.is_file():
            return cls(str(path))
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        return cls(str(path), path.stat().st_size, digest)


@dataclass(frozen=True)
class Origin:
    """Which command made an outcome, from which files, when (in UTC), and with which version."""

    command: str = ""
    data: tuple[DataFile, ...] = ()
    made: str = ""
    version: str = __version__

    @classmethod
    def of(cls, command: str, paths: Sequence[Path]) -> Origin:
        """Describe what is made now of these data files; none stands for standard input."""
        files = tuple(map(DataFile.of, paths)) or (DataFile("standard input"),)
        return cls(command, files, datetime.now(UTC).isoformat(timespec="seconds"))

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Origin:
        return cls(**{**data, "data": tuple(DataFile(**file) for file in data["data"])})


@dataclass(frozen=True, eq=False)
class Decision:
    """Which past segments a model for the current one is trained on, and what that gains.

    `n_rows` counts the rows of the table, `n_current` the current rows trained on, `n_held_out`
    those held out. `correct` is the model's accuracy on a sample of each past segment. `cut` says
    what the segments are, such as "the values of the column 'month'"; `constant` is how well the
    most common label does as an answer; `origin` names the command and its files. `model` and
    `layout` (the rows by segment) are None in a decision read from JSON.
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
    methods: tuple[MethodScore, ...]  # Quilt first
    columns: tuple[ColumnFacts, ...]
    warnings: tuple[str, ...]
    version: str
    cut: str = ""
    constant: ConstantAnswer | None = None
    origin: Origin | None = None
    model: QuiltClassifier | None = field(default=None, repr=False)
    layout: Layout | None = field(default=None, repr=False)

    def sentences(self) -> tuple[str, str, str]:
        """Return what was kept, what it gains, and what to do, as a sentence each."""
        return sentences(self.selection, self.methods, self.constant)

    def past(self) -> list[dict[str, Any]]:
        """Return one record per past segment, oldest first; scores are medians over epochs."""
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
        """Return everything but model and layout, with what follows from it for readers."""
        values = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in _NOT_IN_JSON}
        record = {
            "format": FORMAT,
            "sentences": self.sentences(),
            "past": self.past(),
            "disparity_max": self.selection.disparity_max,
            **values,
            "selection": self.selection.to_json(),
            "bounds": [bound._asdict() for bound in self.bounds],
            "methods": [method.to_json() for method in self.methods],
            "constant": None if self.constant is None else self.constant._asdict(),
            "origin": None if self.origin is None else self.origin.to_json(),
            "columns": [asdict(column) for column in self.columns],
        }
        safe: dict[str, Any] = json_safe(record)
        return safe

    @classmethod
    def from_json(cls, data: Any) -> Decision:
        """Read what `to_json` returned, without model and layout."""
        if isinstance(data, dict) and data.get("format", FORMAT) != FORMAT:
            raise InputError(
                f"the decision has format {data['format']}, this version reads {FORMAT}; install "
                "the driftquilt that wrote it, or a newer one"
            )
        try:
            return cls._read(data)
        except (LookupError, TypeError, ValueError, AttributeError, ModelFileError) as error:
            raise InputError(
                f"not a decision written by driftquilt, or damaged: {error!r}; select again"
            ) from error

    @classmethod
    def _read(cls, data: dict[str, Any]) -> Decision:
        missing = {*_NOT_IN_JSON, *_NOT_IN_EARLY_FILES}
        values = {f.name: data[f.name] for f in fields(cls) if f.name not in missing}
        constant, origin = data.get("constant"), data.get("origin")
        names = [f.name for f in fields(MethodScore)]
        decision = cls(
            **{
                **values,
                "cut": str(data.get("cut", "")),
                "constant": None if constant is None else ConstantAnswer(**constant),
                "origin": None if origin is None else Origin.from_json(origin),
                "classes": tuple(data["classes"]),
                "selection": Selection.from_json(data["selection"]),
                "bounds": tuple(map(read_bound, data["bounds"])),
                "correct": dict(data["correct"]),
                "methods": tuple(MethodScore(**{n: m[n] for n in names}) for m in data["methods"]),
                "columns": tuple(ColumnFacts(**column) for column in data["columns"]),
                "warnings": tuple(data["warnings"]),
            }
        )
        decision.to_json()  # a value of the wrong type fails here, not later
        return decision


def read_bound(record: dict[str, Any]) -> TriedBound:
    """Read a bound from JSON, where a loss that is not finite is null."""
    loss = record["validation_loss"]
    return TriedBound(**{**record, "validation_loss": float("nan") if loss is None else loss})
