"""All rows of past segments, encoded and kept where an executor works, and looked at there.

A segment's rows are read in shards of 65,536, each from its part of the file, so that a shard
can be made again wherever a worker dies. Shards that follow each other make a lump, which one
work reads and looks at. Of a shard there travel its mean head gradient, C·(H+1) numbers, and the
sum of its weights; `core.sharded.merge` puts segments together from them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from driftquilt.core.segment import Segment, shards
from driftquilt.core.sharded import Scorable, merge
from driftquilt.errors import InputError
from driftquilt.executor import Executor, Kept, one_blas_thread
from driftquilt.inputs.arrow import read_in_place
from driftquilt.inputs.encoder import Encoder
from driftquilt.scale.segment_file import Look, read_rows

__all__ = ["Reading", "Scorer", "keep_shards"]

# Rows that one work looks at, at the least, to be worth its way; and works for each worker.
LUMP_ROWS, LUMPS_EACH = 262_144, 8


class Reading(NamedTuple):
    """How rows of files become segments."""

    encoder: Encoder
    label: str
    classes: NDArray[Any]
    class_weights: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Scorer:
    """Mean head gradients of all past segments, looked at where their shards are kept."""

    kept: Kept
    n_segments: int

    def __call__(self, model: Scorable) -> NDArray[np.float64]:
        means: list[list[NDArray[np.float64]]] = [[] for _ in range(self.n_segments)]
        weights: list[list[float]] = [[] for _ in range(self.n_segments)]
        for told in self.kept.ask(_look_at, model):
            for segment, mean, weight in told:
                means[segment].append(mean)
                weights[segment].append(weight)
        pairs = zip(means, weights, strict=True)
        return np.stack([merge(np.stack(of), np.array(weight)) for of, weight in pairs])


def keep_shards(
    executor: Executor, reading: Reading, paths: Sequence[str], looks: Sequence[Look]
) -> Scorer:
    """Let the executor read all rows of these files, and keep them."""
    n_rows = sum(look.n_rows for look in looks)
    enough = max(LUMP_ROWS, n_rows // (LUMPS_EACH * executor.n_workers))
    lumps = _lumps(_shards(paths, looks), enough)
    return Scorer(executor.keep(_load, reading, lumps), len(paths))


class _Shard(NamedTuple):
    """Some rows of a segment's file."""

    segment: int
    path: str
    blocks: tuple[int, ...]
    rows: slice


class _Told(NamedTuple):
    """What travels of a shard: its segment, its mean head gradient, the sum of its weights."""

    segment: int
    mean: NDArray[np.float64]
    weight: float


def _shards(paths: Sequence[str], looks: Sequence[Look]) -> Iterator[_Shard]:
    for number, (path, look) in enumerate(zip(paths, looks, strict=True)):
        for rows in shards(look.n_rows):
            yield _Shard(number, path, look.blocks, rows)


def _lumps(parts: Iterator[_Shard], enough: int) -> Iterator[list[_Shard]]:
    """Shards that follow each other, as many as have enough rows."""
    lump, n_rows = list[_Shard](), 0
    for shard in parts:
        lump.append(shard)
        n_rows += shard.rows.stop - shard.rows.start
        if n_rows >= enough:
            yield lump
            lump, n_rows = [], 0
    if lump:
        yield lump


def _load(reading: Reading, lump: Sequence[_Shard]) -> list[Segment]:
    """The shards, encoded, each under the number of its segment."""
    return [_load_one(reading, shard) for shard in lump]


def _load_one(reading: Reading, shard: _Shard) -> Segment:
    columns = [*reading.encoder.names_in, reading.label]
    table = read_rows(shard.path, shard.blocks, shard.rows, columns)
    try:
        X = reading.encoder.transform_in_place(read_in_place(table.select(columns[:-1])))
        y = _codes(table[reading.label], reading.classes)
    except InputError as error:
        where = f"{shard.path}, rows {shard.rows.start} to {shard.rows.stop - 1}"
        raise InputError(f"{where}: {error}") from error
    return Segment(shard.segment, X, y, reading.class_weights[y].astype(np.float32))


def _codes(labels: pa.ChunkedArray, classes: NDArray[Any]) -> NDArray[np.int64]:
    kind = labels.type.value_type if pa.types.is_dictionary(labels.type) else labels.type
    coded = labels.cast(kind).combine_chunks().dictionary_encode()
    place = {label: code for code, label in enumerate(classes.tolist())}
    found = coded.dictionary.to_pylist()
    if coded.null_count or not place.keys() >= set(found):
        raise InputError("there are labels that were not there before; leave files as they are")
    codes = np.array([place[label] for label in found], dtype=np.int64)
    y: NDArray[np.int64] = codes[coded.indices.to_numpy()]
    return y


def _look_at(model: Scorable, lump: Sequence[Segment]) -> list[_Told]:
    with one_blas_thread():
        means, _ = model.head_gradients(lump)
    return [
        _Told(int(str(shard.name)), mean, float(shard.weight.sum(dtype=np.float64)))
        for shard, mean in zip(lump, means, strict=True)
    ]
