"""The past segments of a stream: which stay when there are too many, and rows read back from them.

A segment is as useful as the trainings of late have found it: the share of epochs that used it,
fading by half with each training. The least used goes first, the older of two alike; the newest
always stays, because no training has seen it yet. A segment is called by the number of its first
row in the stream, counted from 0.

>>> from driftquilt.store.base import SealedSegment
>>> past = [SealedSegment(n, 100 * n, 100, 0) for n in range(4)]
>>> used = {0: 0.5, 1: 0.2, 2: 0.9, 3: 1.0}
>>> [segment.number for segment in least_used(past, used, max_segments=3, max_rows=250)]
[1, 0]
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa

from driftquilt.data.frame import Row
from driftquilt.data.labels import Label
from driftquilt.store.base import SealedSegment, Store
from driftquilt.stream.columns import LABEL
from driftquilt.stream.settings import StreamSettings

__all__ = ["History", "fade", "first_row", "least_used", "rows_after"]

_FADE = 0.5


def first_row(segment: SealedSegment) -> int:
    """Number in the stream of a segment's first row."""
    return int(segment.name or 0)


def fade(used: float, share: float) -> float:
    """How much a segment is used of late, after a training that used it in a share of epochs."""
    return _FADE * used + (1 - _FADE) * share


def least_used(
    segments: Sequence[SealedSegment], used: Mapping[int, float], max_segments: int, max_rows: int
) -> list[SealedSegment]:
    """What has to go so that the rest is within bounds, in order."""
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
        self._used: dict[int, float] = {}

    def __len__(self) -> int:
        return len(self._used)

    @property
    def used(self) -> dict[int, float]:
        """By number of the segment."""
        return dict(self._used)

    def seal(self, row: int) -> SealedSegment:
        """Make a segment of the open rows, of which `row` is the first."""
        # If a crash came right after the last time, the segment is there already.
        found = (segment for segment in self._store.segments if segment.name == row)
        sealed = next(found, None) or self._store.seal(row)
        self._used[sealed.number] = 1.0
        return sealed

    def use(self, shares: Mapping[int, float]) -> None:
        """Take in a training, which used each segment in a share of its epochs."""
        for number, share in shares.items():
            if number in self._used:
                self._used[number] = fade(self._used[number], share)

    def forget_least_used(self) -> Iterator[tuple[SealedSegment, float]]:
        """What has to go to stay within bounds, and how much it was used."""
        kept = [segment for segment in self._store.segments if segment.number in self._used]
        most = self._settings.max_segments, self._settings.max_rows
        for segment in least_used(kept, self._used, *most):
            yield segment, self._used.pop(segment.number)

    def drop_unused(self, before: int) -> None:
        """Remove forgotten segments from the store, but none that begins at a row after these."""
        for segment in self._store.segments:
            if segment.number not in self._used and first_row(segment) < before:
                self._store.drop(segment.number)

    def to_json(self) -> dict[str, float]:
        """Return plain values."""
        return {str(number): used for number, used in self._used.items()}

    def restore(self, data: Mapping[str, float]) -> None:
        """Go on from what `to_json` gave."""
        self._used = {int(number): used for number, used in data.items()}
