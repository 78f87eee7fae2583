"""A decision as a folder: the model, the rows that it may be trained on, why, and a page of it.

    model.safetensors  the classifier, for `QuiltClassifier.load`
    selected.parquet   rows of the kept past segments and of the current one
    report.html        the page, where one can be made
    selection.json     the decision

All are complete under other names before any gets its own, so a crash leaves the old files, or
none. `selection.json` comes last and has the checksums of model and rows: a folder in which it
does not agree with them was left half way, and `read_decision` says so. A page of an earlier
decision does not stay beside a new one. Other files in the folder are not touched.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from driftquilt.data.arrow import has_one_dictionary
from driftquilt.data.mapped_memory import note_read
from driftquilt.decision.columns import BLOCK, OURS
from driftquilt.decision.labels import read_labels
from driftquilt.decision.layout import Layout, lay_out
from driftquilt.decision.tidy import remove_if_empty
from driftquilt.decision.values import Decision
from driftquilt.errors import InputError
from driftquilt.files import os_errors_name, sync_file, sync_folder
from driftquilt.learners.base import Learner
from driftquilt.quilt.classifier import QuiltClassifier
from driftquilt.quilt.explanation import KEPT_FROM

__all__ = ["MODEL", "PAGE", "ROWS", "WHY", "read_decision", "unwritten", "write_decision"]

MODEL, ROWS, PAGE = "model.safetensors", "selected.parquet", "report.html"
WHY = "selection.json"
_ADDED = pa.schema(
    {f"{OURS}segment": pa.string(), f"{OURS}share": pa.float64(), f"{OURS}held_out": pa.bool_()}
)


def write_decision(
    decision: Decision,
    table: pa.Table,
    segments: Any,
    out: str | os.PathLike[str],
    page: str | None = None,
) -> Path:
    """Write the folder; `table` and `segments` are those that the decision was made from.

    The rows get three columns: their segment, the share of epochs that used it (1 for the
    current one), and whether they were held out. `page` is the report as HTML, if there is one.
    """
    if decision.model is None:
        raise InputError("the decision has no model: it was read from a file; decide again")
    is_new = not Path(out).exists()
    folder = _make_folder(Path(out))
    names = (MODEL, ROWS, *([] if page is None else [PAGE]), WHY)
    drafts = {name: folder / f".{name}.tmp" for name in names}
    try:
        with os_errors_name(folder):
            decision.model.save(drafts[MODEL])
            _write_rows(decision, table, segments, drafts[ROWS])
            if page is not None:
                drafts[PAGE].write_text(page, encoding="utf-8")
            sums = {name: _checksum(drafts[name]) for name in (MODEL, ROWS)}
            text = json.dumps({**decision.to_json(), "files": sums}, indent=1, allow_nan=False)
            drafts[WHY].write_text(text + "\n", encoding="utf-8")
            for draft in drafts.values():
                with draft.open("rb+") as file:
                    sync_file(file.fileno())
            (folder / PAGE).unlink(missing_ok=True)  # of an earlier decision
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
    """The decision of a folder, with its model."""
    path = Path(out) / WHY
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise InputError(f"there is no decision in {out}: it has no {WHY}") from error
    except ValueError as error:
        raise InputError(f"{path} is damaged: {error}; select again") from error
    decision = Decision.from_json(data)
    for name, known in dict(data.get("files", {})).items():
        found = path.with_name(name)
        if not found.is_file() or not _is_same(found, known):
            raise InputError(
                f"{found} is not the one that {WHY} speaks of: it is missing, was changed, or "
                "writing it was cut short; select again"
            )
    return replace(decision, model=QuiltClassifier.load(path.with_name(MODEL), learner))


def _checksum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _is_same(path: Path, known: str | int) -> bool:
    """Whether a file has its checksum; early folders know its length alone."""
    return path.stat().st_size == known if isinstance(known, int) else _checksum(path) == known


def _make_folder(folder: Path) -> Path:
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file; name a folder to write to")
    taken = [name for name in (MODEL, ROWS, PAGE, WHY) if (folder / name).is_dir()]
    if taken:
        raise InputError(f"{folder / taken[0]} is a folder; name another folder to write to")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _write_rows(decision: Decision, table: pa.Table, segments: Any, path: Path) -> None:
    labels = read_labels(table, decision.label)
    layout = lay_out(labels, segments, current=decision.current, holdout=decision.holdout)
    if [str(name) for name in layout.names[:-1]] != [str(n) for n in decision.selection.names]:
        raise InputError("the table and segments are not those that the decision was made from")
    ours = [name for name in table.column_names if name.startswith(OURS)]
    kept = _joined(table.drop_columns([*ours, *unwritten(table)]))
    schema = pa.schema([*kept.schema, *_ADDED])
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for part in _parts(kept, *_mark(decision, layout, table.num_rows)):
            writer.write_table(part.cast(schema))


def unwritten(table: pa.Table) -> list[str]:
    """Columns of kinds that Parquet lacks, such as intervals: no file of rows has them."""
    found = []
    for field in table.schema:
        try:
            pq.ParquetWriter(pa.BufferOutputStream(), pa.schema([field])).close()
        except pa.ArrowNotImplementedError:
            found.append(field.name)
    return found


def _joined(table: pa.Table) -> pa.Table:
    """The table, with texts for categories whose codes mean something else in each chunk."""
    for place, column in enumerate(table.columns):
        if pa.types.is_dictionary(column.type) and not has_one_dictionary(column):
            texts = [chunk.dictionary_decode() for chunk in column.chunks]
            plain = pa.chunked_array(texts, column.type.value_type)
            table = table.set_column(place, table.column_names[place], plain)
    return table


def _mark(
    decision: Decision, layout: Layout, n_rows: int
) -> tuple[pa.Array, NDArray[np.int32], NDArray[np.float64], NDArray[np.bool_]]:
    """Names of segments; for each row its place among them, -1 if none, and if it is held out."""
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
    """The rows that have a place, some at a time, with the columns that are added."""
    for first in range(0, table.num_rows, BLOCK):
        here = place[first : first + BLOCK]
        picked = np.flatnonzero(here >= 0)
        if not len(picked):
            continue
        block, of = table.slice(first, BLOCK), here[picked]
        part = block.take(pa.array(picked))
        note_read(block.nbytes)
        marks = [names.take(pa.array(of)), pa.array(shares[of]), pa.array(held_out[first + picked])]
        for name, values in zip(_ADDED.names, marks, strict=True):
            part = part.append_column(name, values)
        yield part
