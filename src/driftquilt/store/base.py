"""A store keeps the rows of an endless stream, and loses none that it has acknowledged.

Rows arrive in batches and form the open segment. `seal` makes a segment of them that never
changes again. Beside the rows a store keeps models, as bytes, a small JSON state, and pending
rows, which wait for their label (`store.pending`); all of it moves together:

    append(batch, state, pending)  rows, state and pending rows change in one step, or none does
    write_state(state, pending)    the same without rows
    seal(name, state)              the open rows become a segment and the state moves, or neither
    put_model(..., state)          the same for a model

So a position in a source, kept in the state, always belongs to exactly the rows that are there;
and a row whose label has come is either pending or learned, never both and never neither.

Promises of every store:

- Rows come back exactly once and in order, with the values they had.
- A caller's mistake is an `InputError` and leaves the store as it was; trouble with the disk is
  a `StoreError`. Damaged data is an error, never a value.
- Numbers of segments and models are never given twice, even after `drop`.
- A pending request comes back with the bytes it had until it is released. A label that was
  stored is remembered for millions of rows after that, so that one that comes twice is noticed.
- What was given first is durable first: nothing survives a crash without all that came before.
- Every method may be called from any thread.

A store knows nothing of models, detectors or learning.

>>> SealedSegment(number=3, name="may", n_rows=500, n_bytes=24_000)
SealedSegment(number=3, name='may', n_rows=500, n_bytes=24000, sha256='')
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeAlias, TypeVar

import pyarrow as pa

from driftquilt.errors import InputError, StoreError
from driftquilt.store.pending import (
    LabelledRows,
    PendingChange,
    PendingHead,
    PendingRequest,
)

__all__ = [
    "Contents",
    "SealedSegment",
    "SegmentName",
    "State",
    "Store",
    "StoredModel",
    "find",
    "name_to_json",
    "reading",
    "record_to_json",
    "state_to_json",
    "tensors_to_bytes",
]

SegmentName: TypeAlias = str | int | float | None
State: TypeAlias = Mapping[str, Any]
T = TypeVar("T")

_MANY = 20  # numbers are not listed any more


@dataclass(frozen=True)
class SealedSegment:
    """What is known of a segment without reading it."""

    number: int
    name: SegmentName
    n_rows: int
    n_bytes: int
    sha256: str = ""  # of its file; empty in memory


@dataclass(frozen=True)
class StoredModel:
    """What is known of a model without reading it."""

    number: int
    n_bytes: int
    record: dict[str, Any] = field(hash=False)
    sha256: str = ""  # of its file; empty in memory


@dataclass
class Contents:
    """What a store knows without reading rows."""

    segments: dict[int, SealedSegment] = field(default_factory=dict)
    models: dict[int, StoredModel] = field(default_factory=dict)
    state: dict[str, str] = field(default_factory=dict)  # JSON by key
    labelled: LabelledRows = field(default_factory=lambda: LabelledRows({}))
    n_appended: int = 0
    n_sealed: int = 0  # rows
    n_segments: int = 0  # ever made
    n_models: int = 0


class Store(ABC):
    """The contract; the module says what it promises.

    `state` arguments are JSON values by key; the given keys replace those kept, others stay.
    """

    _kept: Contents

    @property
    def n_appended(self) -> int:
        """Rows taken in the life of the store, dropped ones too."""
        return self._kept.n_appended

    @property
    @abstractmethod
    def n_durable(self) -> int:
        """Those of them that are safe now: after `flush`, all."""

    @property
    def n_open(self) -> int:
        """Rows of the open segment."""
        return self.n_appended - self._kept.n_sealed

    @property
    def segments(self) -> tuple[SealedSegment, ...]:
        """The sealed segments, oldest first."""
        with self._working("listing segments"):
            return tuple(self._kept.segments.values())

    @property
    def next_segment(self) -> int:
        """The number that the open rows will have as a segment."""
        return self._kept.n_segments + 1

    @property
    def models(self) -> tuple[StoredModel, ...]:
        """The models, oldest first."""
        with self._working("listing models"):
            return tuple(self._kept.models.values())

    @property
    def state(self) -> dict[str, Any]:
        """A copy of the state, with everything that was given so far."""
        with self._working("reading the state"):
            return {key: json.loads(text) for key, text in self._kept.state.items()}

    @property
    def labelled(self) -> LabelledRows:
        """Which pending rows have had their label; it changes with the store, and is not a copy."""
        return self._kept.labelled

    @abstractmethod
    def append(
        self,
        batch: pa.RecordBatch,
        state: State | None = None,
        pending: PendingChange | None = None,
    ) -> int:
        """Take rows into the open segment; returns `n_appended`.

        Columns may appear, vanish, and go from integers to floats. One that goes from numbers
        to text or back is an `InputError`, whichever segment held it before.
        """

    @abstractmethod
    def flush(self) -> int:
        """Make everything durable now; returns `n_durable`."""

    @abstractmethod
    def seal(self, name: SegmentName = None, state: State | None = None) -> SealedSegment:
        """Make a segment of the open rows; an `InputError` if there are none."""

    @abstractmethod
    def open_rows(self) -> pa.Table:
        """Return the rows of the open segment: all its columns, null where a batch lacks one."""

    @abstractmethod
    def read(self, number: int) -> pa.Table:
        """Return the rows of a sealed segment."""

    @abstractmethod
    def drop(self, number: int) -> None:
        """Forget a sealed segment for good."""

    @abstractmethod
    def put_model(
        self, tensors: bytes, record: Mapping[str, Any], state: State | None = None
    ) -> int:
        """Keep a model, safetensors bytes and a JSON record; returns its number."""

    @abstractmethod
    def model(self, number: int) -> tuple[bytes, dict[str, Any]]:
        """Bytes and record of a model."""

    @abstractmethod
    def drop_model(self, number: int) -> None:
        """Forget a model for good."""

    @abstractmethod
    def write_state(self, state: State, pending: PendingChange | None = None) -> None:
        """Replace some keys of the state, and change what is pending, durably."""

    @abstractmethod
    def hold(self, pending: PendingChange) -> None:
        """Change what is pending; durable as rows that are appended are, at the latest by `flush`.

        A request whose number is there already takes its place.
        """

    @abstractmethod
    def pending(self) -> list[PendingHead]:
        """Return the pending requests, in order of their numbers."""

    @abstractmethod
    def read_pending(self, number: int) -> PendingRequest | None:
        """Return the pending request that has this row; None if there is none."""

    @abstractmethod
    def close(self, *, discard: bool = False) -> None:
        """Make everything durable and let go; closing twice is fine.

        With `discard` a store on disk lets go as a crash would: what is not durable never was.
        """

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _expect_rows(self) -> None:
        if not self.n_open:
            raise InputError("there are no open rows to seal; append some first")

    @abstractmethod
    def _working(self, doing: str = "") -> AbstractContextManager[object]:
        """Refuse if the store is closed, and keep other threads out."""


def state_to_json(state: State | None) -> dict[str, str]:
    """One JSON text per key.

    >>> state_to_json({"position": 7, "detector": {"mean": 0.5}})
    {'position': '7', 'detector': '{"mean": 0.5}'}
    """
    given = {} if state is None else state
    if not isinstance(given, Mapping):
        raise InputError(f"the state is a {type(given).__name__}; give values by key")
    for key in given:
        if not isinstance(key, str) or key != key.encode(errors="replace").decode():
            raise InputError(f"the state has the key {key!r}; keys are strings of whole characters")
    return {key: _to_json(value, f"state[{key!r}]") for key, value in given.items()}


def record_to_json(record: Mapping[str, Any]) -> str:
    """Return the record of a model as one JSON text."""
    if not isinstance(record, Mapping):
        raise InputError(
            f"the record of the model is a {type(record).__name__}; give values by key"
        )
    return _to_json(dict(record), "the record of the model")


def tensors_to_bytes(tensors: Any) -> bytes:
    """Return what is kept of a model, which nobody can change any more."""
    if not isinstance(tensors, bytes | bytearray | memoryview):
        raise InputError(
            f"a model is kept as bytes, not as {type(tensors).__name__}; give those that "
            "safetensors makes of its weights"
        )
    return bytes(tensors)


def name_to_json(name: SegmentName) -> str:
    """Return the name of a segment as JSON."""
    if name is not None and type(name) not in (str, int, float):
        raise InputError(
            f"a segment cannot be called {name!r} ({type(name).__name__}); give a string, an int, "
            "a float or None"
        )
    return json.dumps(name)


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Values that make no sense become a `StoreError`: the file they came from is damaged."""
    try:
        yield
    except (ValueError, TypeError, KeyError) as error:
        raise StoreError(f"{path} is damaged: {error}; restore the store from a copy") from error


def find(kept: Mapping[int, T], number: int, what: str) -> T:
    """Return the segment or model of that number; `InputError` if there is none."""
    try:
        return kept[number]
    except (KeyError, TypeError):  # a list cannot be a key
        numbers = [*kept]
        there = f"there are {numbers}" if len(numbers) < _MANY else f"there are {len(numbers)}"
        raise InputError(f"there is no {what} {number!r} in the store; {there}") from None


def _to_json(value: Any, what: str) -> str:
    try:
        return json.dumps(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"{what} cannot be kept as JSON: {error}; give plain values") from error
