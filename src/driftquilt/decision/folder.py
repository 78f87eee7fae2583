"""A decision as a folder: the model, the rows it may be trained on, the reasons, and a report.

    model.safetensors  the classifier, for `QuiltClassifier.load`
    selected.parquet   rows of the kept past segments and of the current one
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
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from driftquilt.data.arrow import has_one_dictionary
from driftquilt.data.column_types import BLOCK, OURS
from driftquilt.data.mapped_memory import note_read
from driftquilt.decision.decision import Decision
from driftquilt.decision.layout import Layout
from driftquilt.errors import InputError
from driftquilt.files import os_errors_name, sync_file, sync_folder
from driftquilt.learners.base import Learner
from driftquilt.quilt.classifier import QuiltClassifier
from driftquilt.quilt.explanation import KEPT_FROM
from driftquilt.text import plural

__all__ = [
    "MODEL",
    "REPORT",
    "ROWS",
    "SELECTION",
    "read_decision",
    "remove_if_empty",
    "unwritable_columns",
    "write_decision",
]

MODEL, ROWS, REPORT = "model.safetensors", "selected.parquet", "report.html"
SELECTION = "selection.json"
_ADDED = pa.schema(
    {f"{OURS}segment": pa.string(), f"{OURS}share": pa.float64(), f"{OURS}held_out": pa.bool_()}
)


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
    return replace(decision, model=QuiltClassifier.load(path.with_name(MODEL), learner))


def remove_if_empty(folder: Path) -> None:
    """Remove a folder that was made for files which were not written in the end."""
    if folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()


def unwritable_columns(table: pa.Table) -> list[str]:
    """Return the columns of types that Parquet lacks, such as intervals; no file has them."""
    names = []
    for field in table.schema:
        try:
            pq.ParquetWriter(pa.BufferOutputStream(), pa.schema([field])).close()
        except pa.ArrowNotImplementedError:
            names.append(field.name)
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
    """Return names and shares of segments; of each row its place and if held out."""
    shares = np.array([*(use.share for use in decision.selection), 1.0])
    place = np.full(n_rows, -1, dtype=np.int32)
    for segment, share in enumerate(shares.tolist()):
        if share >= KEPT_FROM:
            place[layout.of(segment)] = segment
    held_out = np.zeros(n_rows, dtype=bool)
    held_out[layout.held_out] = True
    return pa.array([str(name) for name in layout.names]), place, shares, held_out


def _parts(
    table: pa.Table,
    names: pa.Array,
    place: NDArray[np.int32],
    shares: NDArray[np.float64],
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
            pa.array(shares[segment]),
            pa.array(held_out[first + picked]),
        ]
        for name, values in zip(_ADDED.names, marks, strict=True):
            part = part.append_column(name, values)
        yield part
