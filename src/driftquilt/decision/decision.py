r"""A decision: which past segments are used, what that gains, where it comes from, and its folder.

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

In a folder, a decision is four files:

    model.safetensors  the model, for `load_model`
    selected.parquet   rows of the used past segments and of the current one, with their weights
    report.html        the report, if it can be drawn
    selection.json     the decision

All files are complete under other names before any gets its own, so a crash leaves the old files
or none. `selection.json` comes last and has the checksums of model and rows: if it does not agree
with them, writing was interrupted, and `read_decision` says so. The report of an earlier decision
is removed. Other files in the folder are not touched.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from driftquilt import __version__
from driftquilt.data.arrow import has_one_dictionary, note_read
from driftquilt.data.column_types import BLOCK, OURS, ColumnFacts
from driftquilt.decision.advice import Advice, advise, sentences
from driftquilt.decision.data_check import Finding
from driftquilt.decision.layout import Layout
from driftquilt.decision.measure import ConstantAnswer, MethodScore
from driftquilt.errors import InputError, ModelFileError
from driftquilt.files import os_errors_name, sync_file, sync_folder
from driftquilt.learners.base import Learner
from driftquilt.quilt.classifier import QuiltClassifier
from driftquilt.quilt.explanation import Selection, TriedSet
from driftquilt.quilt.method import TriedBound
from driftquilt.quilt.model_file import NET
from driftquilt.quilt.models import Model, load_model
from driftquilt.text import json_safe, plural, quote_name

#: Raised when decisions of the previous version can no longer be read.
FORMAT = 1

MODEL, ROWS, REPORT = "model.safetensors", "selected.parquet", "report.html"
SELECTION = "selection.json"
_ADDED = pa.schema(
    {f"{OURS}segment": pa.string(), f"{OURS}weight": pa.float64(), f"{OURS}held_out": pa.bool_()}
)
_NOT_IN_JSON = ("model", "layout")
_NOT_IN_EARLY_FILES = (
    "cut", "constant", "origin", "checks", "metric", "incumbent", "threshold", "kind", "choice",
    "sets", "task", "task_reason", "of_past", "accept_data",
)  # fmt: skip


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
        return cls(str(path), path.stat().st_size, _checksum(path))


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
    those held out. `of_past` is the model's accuracy on a sample of each past segment, or of
    numbers its mean absolute error. `task` is "classes" or "numbers", for a reason. `cut` says what
    the segments are, such as "the values of the column 'month'"; `constant` is how well the most
    common label does as an answer; `origin` names the command and its files; `checks` are what a
    person should look at in the data, None where an early version did not look; with `accept_data`
    none of them blocks the advice. Methods are compared by `metric`; `incumbent` is the column with
    predictions of the model in use. `threshold` is the probability from which on the model answers
    the second of two classes, if it is tuned. `model` and `layout` (the rows by segment) are None
    in a decision read from JSON. `kind` is that of the model, such as "net" or "lightgbm". Where it
    was chosen among two, `choice` has the score of each on held-out rows, of which higher is
    better; `sets` are the training sets that a model other than a net was tried on.
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
    of_past: dict[str, float]
    methods: tuple[MethodScore, ...]  # Quilt first
    columns: tuple[ColumnFacts, ...]
    warnings: tuple[str, ...]
    version: str
    cut: str = ""
    constant: ConstantAnswer | None = None
    origin: Origin | None = None
    checks: tuple[Finding, ...] | None = None
    metric: str = "accuracy"
    incumbent: str | None = None
    threshold: float | None = None
    kind: str = NET
    choice: dict[str, float] = field(default_factory=dict)
    sets: tuple[TriedSet, ...] = ()
    task: str = "classes"
    task_reason: str = ""
    accept_data: bool = False
    model: Model | None = field(default=None, repr=False)
    layout: Layout | None = field(default=None, repr=False)

    def sentences(self) -> tuple[str, str, str]:
        """Return what was used, what it gains, and what to do, as a sentence each."""
        return sentences(self.selection, self.methods, self.constant, self._doubts)

    @property
    def advice(self) -> Advice:
        """What to do, in a word and a sentence."""
        current = quote_name(self.selection.current)
        return advise(current, self.methods, self.constant, self._doubts)

    @property
    def _doubts(self) -> tuple[Finding, ...]:
        return () if self.accept_data else self.checks or ()

    def past(self) -> list[dict[str, Any]]:
        """Return one record per past segment, oldest first; scores are medians over epochs."""
        return [
            {
                "segment": use.name,
                "rows": use.n_rows,
                "used": use.used,
                "word": use.word,
                "weight": use.weight,
                "row_weight": use.row_weight,
                "rank": use.rank,
                "share": use.share,
                "disparity": use.disparity.median,
                "gain": use.gain.median,
                **self._of_segment(str(use.name)),
                "why": use.why,
            }
            for use in self.selection
        ]

    def _of_segment(self, name: str) -> dict[str, float | None]:
        value, is_error = self.of_past.get(name), self.task == "numbers"
        return {"correct": None if is_error else value, "error": value if is_error else None}

    def to_json(self) -> dict[str, Any]:
        """Return everything but model and layout, with what follows from it for readers."""
        values = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in _NOT_IN_JSON}
        checks = None if self.checks is None else [asdict(finding) for finding in self.checks]
        record = {
            "format": FORMAT,
            "advice": asdict(self.advice),
            "sentences": self.sentences(),
            "past": self.past(),
            "blend": self.selection.parts,
            "disparity_max": self.selection.disparity_max,
            **values,
            "selection": self.selection.to_json(),
            "bounds": [bound._asdict() for bound in self.bounds],
            "sets": [{**one._asdict(), "words": self.selection.name_set(one)} for one in self.sets],
            "methods": [method.to_json() for method in self.methods],
            "constant": None if self.constant is None else self.constant._asdict(),
            "origin": None if self.origin is None else self.origin.to_json(),
            "columns": [asdict(column) for column in self.columns],
            "checks": checks,
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
        constant, origin, checks = (data.get(key) for key in ("constant", "origin", "checks"))
        decision = cls(
            **{
                **values,
                "cut": str(data.get("cut", "")),
                "constant": None if constant is None else ConstantAnswer(**constant),
                "origin": None if origin is None else Origin.from_json(origin),
                "classes": tuple(data["classes"]),
                "selection": Selection.from_json(data["selection"]),
                "bounds": tuple(map(read_bound, data["bounds"])),
                "of_past": dict(data["of_past"] if "of_past" in data else data["correct"]),
                "task": str(data.get("task", "classes")),
                "task_reason": str(data.get("task_reason", "")),
                "methods": tuple(map(MethodScore.from_json, data["methods"])),
                "columns": tuple(ColumnFacts(**column) for column in data["columns"]),
                "warnings": tuple(data["warnings"]),
                "checks": None if checks is None else tuple(Finding(**one) for one in checks),
                "metric": str(data.get("metric", "accuracy")),
                "incumbent": data.get("incumbent"),
                "threshold": data.get("threshold"),
                "kind": str(data.get("kind", NET)),
                "choice": dict(data.get("choice", {})),
                "sets": tuple(map(read_set, data.get("sets", ()))),
                "accept_data": bool(data.get("accept_data", False)),
            }
        )
        decision.to_json()  # a value of the wrong type fails here, not later
        return decision


def read_bound(record: dict[str, Any]) -> TriedBound:
    """Read a bound from JSON, where a loss that is not finite is null."""
    loss = record["validation_loss"]
    return TriedBound(**{**record, "validation_loss": float("nan") if loss is None else loss})


def read_set(record: dict[str, Any]) -> TriedSet:
    """Read a training set from JSON, where a score that is not defined is null."""
    return TriedSet.from_json([record[name] for name in TriedSet._fields])


def write_decision(
    decision: Decision, table: pa.Table, out: str | os.PathLike[str], report: str | None = None
) -> Path:
    """Write the folder; `table` is the one that the decision was made from.

    The rows get three columns: their segment, the share of epochs that used it (1 for the
    current one), and whether they were held out. `report` is HTML.
    """
    if decision.model is None or decision.layout is None:
        raise InputError("the decision has no model: it was read from a file; decide again")
    if decision.n_rows != table.num_rows:
        raise InputError(
            f"the table has {plural(table.num_rows, 'row')}, but the decision was made from "
            f"{decision.n_rows:,}; give that table"
        )
    is_new = not Path(out).exists()
    folder = _make_folder(Path(out))
    names = (MODEL, ROWS, *([] if report is None else [REPORT]), SELECTION)
    drafts = {name: folder / f".{name}.tmp" for name in names}
    try:
        with os_errors_name(folder):
            decision.model.save(drafts[MODEL])
            _write_rows(decision, decision.layout, table, drafts[ROWS])
            if report is not None:
                drafts[REPORT].write_text(report, encoding="utf-8")
            sums = {name: _checksum(drafts[name]) for name in (MODEL, ROWS)}
            text = json.dumps({**decision.to_json(), "files": sums}, indent=1, allow_nan=False)
            drafts[SELECTION].write_text(text + "\n", encoding="utf-8")
            for draft in drafts.values():
                with draft.open("rb+") as file:
                    sync_file(file.fileno())
            (folder / REPORT).unlink(missing_ok=True)  # of an earlier decision
            for name, draft in drafts.items():
                draft.replace(folder / name)
            sync_folder(folder)
    finally:
        for draft in drafts.values():
            draft.unlink(missing_ok=True)
        if is_new:
            remove_if_empty(folder)
    return folder


def read_decision(out: str | os.PathLike[str], learner: Learner | None = None) -> Decision:
    """Read the decision of a folder, with its model."""
    path = Path(out) / SELECTION
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise InputError(f"there is no decision in {out}: it has no {SELECTION}") from error
    except ValueError as error:
        raise InputError(f"{path} is damaged: {error}; select again") from error
    decision = Decision.from_json(data)
    for name, known in dict(data.get("files", {})).items():
        file = path.with_name(name)
        if not file.is_file() or not _is_same(file, known):
            raise InputError(
                f"{file} does not belong to {SELECTION}: it is missing, was changed, or writing it "
                "was interrupted; select again"
            )
    file = path.with_name(MODEL)
    model = load_model(file) if learner is None else QuiltClassifier.load(file, learner)
    return replace(decision, model=model)


def remove_if_empty(folder: Path) -> None:
    """Remove a folder that was made for files which were not written in the end."""
    if folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()


def unwritable_columns(table: pa.Table) -> list[str]:
    """Return the columns of types that Parquet lacks, such as intervals; no file has them."""
    names = []
    for column in table.schema:
        try:
            pq.ParquetWriter(pa.BufferOutputStream(), pa.schema([column])).close()
        except pa.ArrowNotImplementedError:
            names.append(column.name)
    return names


def _checksum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _is_same(path: Path, known: str | int) -> bool:
    """Return whether a file has its checksum; early folders know only its length."""
    return path.stat().st_size == known if isinstance(known, int) else _checksum(path) == known


def _make_folder(folder: Path) -> Path:
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file; name a folder to write to")
    taken = [name for name in (MODEL, ROWS, REPORT, SELECTION) if (folder / name).is_dir()]
    if taken:
        raise InputError(f"{folder / taken[0]} is a folder; name another folder to write to")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _write_rows(decision: Decision, layout: Layout, table: pa.Table, path: Path) -> None:
    ours = [name for name in table.column_names if name.startswith(OURS)]
    written = _joined(table.drop_columns([*ours, *unwritable_columns(table)]))
    schema = pa.schema([*written.schema, *_ADDED])
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for part in _parts(written, *_mark(decision, layout, table.num_rows)):
            writer.write_table(part.cast(schema))


def _joined(table: pa.Table) -> pa.Table:
    """Return the table, with text for categories whose codes differ from chunk to chunk."""
    for place, column in enumerate(table.columns):
        if pa.types.is_dictionary(column.type) and not has_one_dictionary(column):
            texts = [chunk.dictionary_decode() for chunk in column.chunks]
            plain = pa.chunked_array(texts, column.type.value_type)
            table = table.set_column(place, table.column_names[place], plain)
    return table


def _mark(
    decision: Decision, layout: Layout, n_rows: int
) -> tuple[pa.Array, NDArray[np.int32], NDArray[np.float64], NDArray[np.bool_]]:
    """Return names and weights of segments; of each row its place and if held out."""
    uses = list(decision.selection)
    place = np.full(n_rows, -1, dtype=np.int32)
    for segment, used in enumerate([*(use.used for use in uses), True]):
        if used:
            place[layout.of(segment)] = segment
    weights = np.array([*(use.row_weight for use in uses), 1.0])
    held_out = np.zeros(n_rows, dtype=bool)
    held_out[layout.held_out] = True
    return pa.array([str(name) for name in layout.names]), place, weights, held_out


def _parts(
    table: pa.Table,
    names: pa.Array,
    place: NDArray[np.int32],
    weights: NDArray[np.float64],
    held_out: NDArray[np.bool_],
) -> Iterator[pa.Table]:
    """Yield the rows that have a place, some at a time, with the added columns."""
    for first in range(0, table.num_rows, BLOCK):
        here = place[first : first + BLOCK]
        picked = np.flatnonzero(here >= 0)
        if not len(picked):
            continue
        block, segment = table.slice(first, BLOCK), here[picked]
        part = block.take(pa.array(picked))
        note_read(block.nbytes)
        marks = [
            names.take(pa.array(segment)),
            pa.array(weights[segment]),
            pa.array(held_out[first + picked]),
        ]
        for name, values in zip(_ADDED.names, marks, strict=True):
            part = part.append_column(name, values)
        yield part
