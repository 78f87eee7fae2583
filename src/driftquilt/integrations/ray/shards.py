"""All rows of past segments, encoded and kept where an executor works, and looked at there.

A segment's rows are read in shards of 65,536, four of which make a run, each from its part of
the file, so that they can be made again wherever a worker dies. Runs that follow each other make
a lump, which one work reads and looks at. Of a run there travel its mean head gradient, C·(H+1)
numbers, and the sum of its weights; `core.gradients` puts segments together from them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from driftquilt.core.gradients import Mean, Scorable, put_together, run_mean, runs
from driftquilt.core.segment import Segment
from driftquilt.data.arrow import read_in_place
from driftquilt.data.encoder import Encoder
from driftquilt.errors import InputError
from driftquilt.integrations.ray.segment_file import Look, read_rows
from driftquilt.quilt.executor import Executor, Placed, one_blas_thread

__all__ = ["Reading", "Scorer", "keep_shards"]

# What one work looks at: rows, at the least, to be worth its way; numbers, at the most, so that
# it fits into memory.
LUMP_ROWS, MOST_NUMBERS = 262_144, 2**25
# Works for each worker, so that all end at about the same time; but handing out very many takes
# longer than that brings.
_LUMPS_EACH, _LUMPS_IN_ALL = 8, 1024


class Reading(NamedTuple):
    """How rows of files become segments."""

    encoder: Encoder
    label: str
    classes: NDArray[Any]
    class_weights: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Scorer:
    """Mean head gradients of all past segments, looked at where their shards are kept."""

    placed: Placed
    n_segments: int

    def __call__(self, model: Scorable) -> NDArray[np.float64]:
        means: list[list[Mean]] = [[] for _ in range(self.n_segments)]
        for told in self.placed.map(_look_at, model):
            for segment, mean in told:
                means[segment].append(mean)
        return np.stack([put_together(of) for of in means])


def keep_shards(
    executor: Executor, reading: Reading, paths: Sequence[str], looks: Sequence[Look]
) -> Scorer:
    """Let the executor read all rows of these files, and keep them."""
    enough = _enough(
        sum(look.n_rows for look in looks),
        len(reading.encoder.feature_names_out),
        executor.n_workers,
    )
    lumps = _lumps(_runs(paths, looks), enough)
    return Scorer(executor.place(_load, reading, lumps), len(paths))


def _enough(n_rows: int, width: int, n_workers: int) -> int:
    """Rows of a lump."""
    n_lumps = max(n_workers, min(_LUMPS_EACH * n_workers, _LUMPS_IN_ALL))
    return max(LUMP_ROWS, min(n_rows // n_lumps, MOST_NUMBERS // width))


class _Run(NamedTuple):
    """Some rows of a segment's file, shard by shard."""

    segment: int
    path: str
    blocks: tuple[int, ...]
    shards: list[slice]

    @property
    def start(self) -> int:
        return int(self.shards[0].start)

    @property
    def stop(self) -> int:
        return int(self.shards[-1].stop)


class _Loaded(NamedTuple):
    """The shards of a run, encoded, and the number of its segment."""

    segment: int
    shards: list[Segment]


def _runs(paths: Sequence[str], looks: Sequence[Look]) -> Iterator[_Run]:
    for number, (path, look) in enumerate(zip(paths, looks, strict=True)):
        for run in runs(look.n_rows):
            yield _Run(number, path, look.blocks, run)


def _lumps(parts: Iterator[_Run], enough: int) -> Iterator[list[_Run]]:
    """Runs that follow each other, as many as have enough rows."""
    lump, n_rows = list[_Run](), 0
    for run in parts:
        lump.append(run)
        n_rows += run.stop - run.start
        if n_rows >= enough:
            yield lump
            lump, n_rows = [], 0
    if lump:
        yield lump


def _load(reading: Reading, lump: Sequence[_Run]) -> list[_Loaded]:
    by_file = groupby(lump, attrgetter("path"))
    return [loaded for _, of in by_file for loaded in _load_file(reading, list(of))]


def _load_file(reading: Reading, lump: Sequence[_Run]) -> Iterator[_Loaded]:
    """The runs of one file, which is read once: a block of it may hold the rows of many."""
    start, stop = lump[0].start, lump[-1].stop
    columns = [*reading.encoder.names_in, reading.label]
    table = read_rows(lump[0].path, lump[0].blocks, slice(start, stop), columns)
    for run in lump:
        shards = [
            _encode(reading, run, rows, table.slice(rows.start - start, rows.stop - rows.start))
            for rows in run.shards
        ]
        yield _Loaded(run.segment, shards)


def _encode(reading: Reading, run: _Run, rows: slice, table: pa.Table) -> Segment:
    try:
        X = reading.encoder.transform_in_place(
            read_in_place(table.select(reading.encoder.names_in))
        )
        y = _codes(table[reading.label], reading.classes)
    except InputError as error:
        where = f"{run.path}, rows {rows.start} to {rows.stop - 1}"
        raise InputError(f"{where}: {error}") from error
    return Segment(run.segment, X, y, reading.class_weights[y].astype(np.float32))


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


def _look_at(model: Scorable, lump: Sequence[_Loaded]) -> list[tuple[int, Mean]]:
    with one_blas_thread():
        return [(run.segment, run_mean(model, run.shards)) for run in lump]
