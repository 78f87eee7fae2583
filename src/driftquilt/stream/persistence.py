"""What a stream keeps in its store: past segments, models, and where it stands.

A segment is as useful as the trainings of late have found it: the share of epochs that used it,
fading by half with each training. The least used goes first, the older of two alike; the newest
always stays, because no training has seen it yet. A segment is called by the number of its first
row in the stream, counted from 0.

A checkpoint is everything that followed from the rows so far: weights, scales, what the detector
has seen, counts. Rows after it are in the store, and learning them again leads to the same state.
Checkpoints and models are kept in the store side by side, told apart by their record.

Stores of earlier versions are read as well:

- A checkpoint had its counters in two lists, and segments with their use in pairs.
- A checkpoint had the state of the detector. Where that is more than a count, the detector starts
  again with the first row after the checkpoint, and the log says so.
- A row that waited for its label was in the checkpoint of a stream that was closed, or in the
  state under "waiting.<slot>"; now it is in the store's table of pending rows.

>>> past = [SealedSegment(n, 100 * n, 100, 0) for n in range(4)]
>>> used = {0: 0.5, 1: 0.2, 2: 0.9, 3: 1.0}
>>> [segment.number for segment in least_used(past, used, max_segments=3, max_rows=250)]
[1, 0]
"""

from __future__ import annotations

import json
import logging
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load as read_tensors
from safetensors.numpy import save as to_bytes

from driftquilt.data.frame import Label, Row
from driftquilt.errors import DamagedModelError, DamagedSegmentError
from driftquilt.learners.base import Learner
from driftquilt.quilt.estimator import QuiltEstimator
from driftquilt.quilt.model_file import unpack
from driftquilt.store.base import SealedSegment, State, Store
from driftquilt.stream.columns import LABEL
from driftquilt.stream.settings import StreamSettings

__all__ = [
    "SLOT",
    "History",
    "drop_models",
    "first_row",
    "least_used",
    "put_checkpoint",
    "put_model",
    "read_checkpoint",
    "read_model",
    "rows_after",
    "versions",
    "waiting_rows",
]

#: How the state's keys for rows that waited began in stores of earlier versions.
SLOT = "waiting."

_FADE = 0.5
_log = logging.getLogger("driftquilt.stream")

Tensors = dict[str, NDArray[Any]]
C = TypeVar("C", bound=QuiltEstimator)


def first_row(segment: SealedSegment) -> int:
    """Return the number in the stream of a segment's first row."""
    return int(segment.name or 0)


def least_used(
    segments: Sequence[SealedSegment], used: Mapping[int, float], max_segments: int, max_rows: int
) -> list[SealedSegment]:
    """Return what has to go so that the rest is within bounds, in order."""
    kept = list(segments)
    gone = []
    while len(kept) > 1 and (
        len(kept) > max_segments or sum(segment.n_rows for segment in kept) > max_rows
    ):
        gone.append(min(kept[:-1], key=lambda segment: used[segment.number]))
        kept.remove(gone[-1])
    return gone


def rows_after(store: Store, row: int) -> Iterator[tuple[Row, Label]]:
    """Rows of the store from number `row` on, in order."""
    for segment in store.segments:
        if first_row(segment) + segment.n_rows > row:
            table = store.read(segment.number)
            yield from _labelled(table.slice(max(row - first_row(segment), 0)))
    first = store.n_appended - store.n_open
    yield from _labelled(store.open_rows().slice(max(row - first, 0)))


def _labelled(table: pa.Table) -> Iterator[tuple[Row, Label]]:
    for batch in table.to_batches(max_chunksize=1_000):
        for row in batch.to_pylist():
            label = row.pop(LABEL)
            yield row, label


class History:
    """The sealed segments of a store, and how much each was used of late.

    A segment that is not spoken of here any more stays in the store until `drop_unused`, which
    comes after the checkpoint that forgets it.
    """

    def __init__(self, store: Store, settings: StreamSettings) -> None:
        self._store, self._settings = store, settings
        self.used: dict[int, float] = {}  # by number of the segment
        self.tails: dict[int, int] = {}  # its last rows that belong to the next segment
        self.damaged: set[int] = set()  # left out; what is left of their files stays

    def seal(self, row: int, tail: int = 0) -> SealedSegment:
        """Make a segment of the open rows, of which `row` is the first.

        The last ones, as many as the tail, came after the drift and belong to the next segment.
        """
        # If a crash came right after the last time, the segment is there already.
        found = (segment for segment in self._store.segments if segment.name == row)
        sealed = next(found, None) or self._store.seal(row)
        self.used[sealed.number] = 1.0
        if tail:
            self.tails[sealed.number] = tail
        return sealed

    def groups(self, limit: int) -> list[list[SealedSegment]]:
        """Return the segments in order, at most so many groups of neighbours that were used alike.

        A training costs by the number of segments; those that are always used together may count
        as one.
        """
        groups = [[segment] for segment in self._store.segments if segment.number in self.used]
        while len(groups) > limit:
            apart = [self._apart(one, other) for one, other in pairwise(groups[:-1])]
            at = min(range(len(apart)), key=apart.__getitem__)
            groups[at : at + 2] = [groups[at] + groups[at + 1]]
        return groups

    def _apart(self, one: list[SealedSegment], other: list[SealedSegment]) -> tuple[float, int]:
        """How differently two groups were used; of equal ones, the shorter come first."""
        used = [[self.used[segment.number] for segment in group] for group in (one, other)]
        n_rows = sum(segment.n_rows for segment in (*one, *other))
        return round(abs(float(np.mean(used[0]) - np.mean(used[1]))), 1), n_rows

    def use(self, weights: Mapping[int, float]) -> None:
        """Take in a training, in which each segment had a weight."""
        for number, weight in weights.items():
            if number in self.used:
                self.used[number] = _FADE * self.used[number] + (1 - _FADE) * weight

    def forget_least_used(self) -> Iterator[tuple[SealedSegment, float]]:
        """Yield what has to go to stay within bounds, and how much it was used."""
        kept = [segment for segment in self._store.segments if segment.number in self.used]
        most = self._settings.max_segments, self._settings.max_rows
        for segment in least_used(kept, self.used, *most):
            yield segment, self.used.pop(segment.number)

    def check(self) -> Iterator[tuple[SealedSegment, str]]:
        """Leave out the segments that cannot be read any more; yield each, and why."""
        for segment in self._store.segments:
            if segment.number in self.used:
                try:
                    self._store.read(segment.number)
                except DamagedSegmentError as error:
                    del self.used[segment.number]
                    self.tails.pop(segment.number, None)
                    self.damaged.add(segment.number)
                    yield segment, str(error)

    def drop_unused(self, before: int) -> None:
        """Remove forgotten segments from the store, but none that begins at a row after these."""
        kept = self.used.keys() | self.damaged
        for segment in self._store.segments:
            if segment.number not in kept and first_row(segment) < before:
                self._store.drop(segment.number)
                self.tails.pop(segment.number, None)

    def to_json(self) -> dict[str, Any]:
        """Return plain values, for a checkpoint."""
        return {
            "used": {str(number): used for number, used in self.used.items()},
            "tails": {str(number): tail for number, tail in self.tails.items()},
            "damaged": sorted(self.damaged),
        }

    def restore(self, data: Mapping[str, Any]) -> None:
        """Go on from what `to_json` gave; early stores have neither tails nor damaged segments."""
        self.used = {int(number): used for number, used in data["used"].items()}
        self.tails = {int(number): tail for number, tail in data.get("tails", {}).items()}
        self.damaged = set(data.get("damaged", ()))


def put_checkpoint(
    store: Store, tensors: Tensors, record: dict[str, Any], state: State | None = None
) -> None:
    """Keep a checkpoint in place of the one before, and state in the same step."""
    number = store.put_model(_to_bytes(tensors), {"kind": "checkpoint", **record}, state)
    for model in store.models:
        if model.record.get("kind") == "checkpoint" and model.number != number:
            store.drop_model(model.number)


def read_checkpoint(store: Store) -> tuple[Tensors, dict[str, Any]] | None:
    """Read the last checkpoint, if there is one."""
    numbers = [model.number for model in store.models if model.record.get("kind") == "checkpoint"]
    if not numbers:
        return None
    tensors, record = _read(store, numbers[-1])
    return tensors, record if "counters" in record else _read_early_record(record)


def put_model(store: Store, version: int, tensors: Tensors, record: dict[str, Any]) -> None:
    """Keep a trained model under its version."""
    store.put_model(_to_bytes(tensors), {"kind": "model", "version": version, "clf": record})


def versions(store: Store) -> dict[int, int]:
    """Where in the store each version stands."""
    return {
        model.record["version"]: model.number
        for model in store.models
        if model.record.get("kind") == "model"
    }


def read_model(store: Store, version: int, kind: type[C], learner: Learner | None) -> C:
    """Read the model of a version, of this kind."""
    tensors, record = _read(store, versions(store)[version])
    where = f"version {version} in the store"
    return unpack(kind, tensors, record["clf"], learner, where)


def drop_models(store: Store, kept: Collection[int]) -> None:
    """Forget all versions but these."""
    for version, number in versions(store).items():
        if version not in kept:
            store.drop_model(number)


def _to_bytes(tensors: Tensors) -> bytes:
    content: bytes = to_bytes({n: np.ascontiguousarray(t) for n, t in tensors.items()})
    return content


def _read(store: Store, number: int) -> tuple[Tensors, dict[str, Any]]:
    content, record = store.model(number)
    try:
        return read_tensors(content), record
    except (SafetensorError, ValueError, json.JSONDecodeError) as error:
        raise DamagedModelError(
            f"model {number} of the store is not one of a stream: {error}"
        ) from error


def _read_early_record(record: dict[str, Any]) -> dict[str, Any]:
    """Return the record of an early checkpoint as this version writes it."""
    first_row, last_drift, next_training = record["rows"]
    n_trainings, n_versions = record["counts"][:2]
    # The first stores did not number or count their events.
    events = [{"number": number, **event} for number, event in enumerate(record["events"], 1)]
    counted = [*record["counts"], *[None] * 2][2:4]
    n_drifts = sum(event["event"] == "DriftFound" for event in events)
    counters = {
        "first_row": first_row,
        "last_drift": last_drift,
        "next_training": next_training,
        "n_trainings": n_trainings,
        "n_versions": n_versions,
        "n_events": len(events) if counted[0] is None else counted[0],
        "n_drifts": n_drifts if counted[1] is None else counted[1],
    }
    used = {str(number): share for number, share in record["used"]}
    learning = _read_early_learning(record["learning"])
    return {**record, "learning": learning, "counters": counters, "events": events, "used": used}


def _read_early_learning(record: dict[str, Any]) -> dict[str, Any]:
    n_rows, n_right, width = record["counts"]
    champion, online = record["losses"]
    state = record["detector"] or {}
    if state and state.keys() - {"n_rows", "drift_detected"}:
        _log.warning(
            "the store was written by an earlier version, and its drift detector cannot be "
            "continued; it starts again with row %d",
            n_rows,
        )
    return {
        **record,
        "n_rows": n_rows,
        "n_right": n_right,
        "width": width,
        "n_seen": state["n_rows"] if state.keys() == {"n_rows"} else 0,  # every so many rows
        "losses": {"champion": champion, "online": online},
    }


def waiting_rows(
    state: State, record: dict[str, Any] | None
) -> tuple[list[tuple[str | int, Row]], dict[str, None]]:
    """Return rows that waited, by key and in order, and the state that lets go of them."""
    slots = {n: v for n, v in state.items() if n.startswith(SLOT) and v is not None}
    rows = [(key, row) for key, row in (record or {}).get("waiting") or []]
    rows += [(key, row) for _, key, row in sorted(slots.values(), key=lambda slot: slot[0])]
    return rows, dict.fromkeys(slots)
