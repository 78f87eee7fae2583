"""Past segments in files: read a part at a time, placed where an executor works, scored there.

A file is Parquet or Arrow (the format with a footer, as in the store of a stream), on this machine,
in a folder that every machine sees, or in a bucket: paths with a scheme, such as s3:// and gs://,
go through Arrow's file systems, which find keys where the tools of those clouds do. It consists of
blocks, row groups or record batches; `scan_file` returns how long they are, and with that
`read_rows` opens only the blocks that it needs.

A segment's rows are read in shards of 65,536, four of which make a run, each from its part of the
file, so that they can be made again wherever a worker dies. Runs that follow each other make a
chunk, which one task reads and scores. Of a run there travel its mean head gradient, C·(H+1)
numbers, and the sum of its weights; `core.gradients` computes the means of segments from them.

>>> import tempfile
>>> path = f"{tempfile.mkdtemp()}/may.parquet"
>>> pq.write_table(pa.table({"age": [31, 5, 44, 8], "buys": [1, 0, 1, 0]}), path, row_group_size=3)
>>> scan_file("buys", path)
FileSummary(blocks=(3, 1), columns=('age', 'buys'), labels=(1, 0))
>>> read_rows(path, (3, 1), slice(2, 4)).column("age").to_pylist()
[44, 8]
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import accumulate, groupby, pairwise
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray
from pyarrow import fs

from driftquilt.core.gradients import Mean, Scorable, put_together, run_mean, runs
from driftquilt.core.segment import Segment
from driftquilt.data.arrow import read_in_place
from driftquilt.data.column_types import is_text
from driftquilt.data.encoder import Encoder
from driftquilt.errors import InputError
from driftquilt.quilt.executor import Executor, Placed, one_blas_thread

__all__ = ["FileSummary", "Reading", "Scorer", "place_shards", "read_rows", "scan_file"]

_PARQUET, _ARROW = b"PAR1", b"ARROW1"
# What one task reads: at least so many rows, to be worth sending; at most so many numbers, so that
# it fits into memory.
CHUNK_ROWS, MAX_NUMBERS = 262_144, 2**25
# Tasks for each worker, so that all end at about the same time; but handing out very many takes
# longer than that brings.
_CHUNKS_EACH, _MAX_CHUNKS = 8, 1024


class FileSummary(NamedTuple):
    """A file without its rows: how long its blocks are, its columns and its classes."""

    blocks: tuple[int, ...]
    columns: tuple[str, ...]
    labels: tuple[Hashable, ...]

    @property
    def n_rows(self) -> int:
        return sum(self.blocks)


class _Blocks(NamedTuple):
    """An open file: how many blocks it has, their columns, and what reads one."""

    n_blocks: int
    columns: list[str]
    read: Callable[[int, list[str] | None], pa.Table]


def scan_file(label: str, path: str) -> FileSummary:
    """Read the column of labels; InputError if a row has none, or if there is no row."""
    with _open(path) as file:
        if len(set(file.columns)) < len(file.columns):
            raise InputError(f"{path} has two columns of one name; rename one")
        if label not in file.columns:
            raise InputError(f"{path} has no column {label!r}; it has {', '.join(file.columns)}")
        blocks, labels = list[int](), dict[Hashable, None]()
        for number in range(file.n_blocks):
            column = file.read(number, [label]).column(label)
            if column.null_count:
                row = sum(blocks) + pc.index(pc.is_null(column), value=True).as_py()
                raise InputError(f"{path}, row {row} has no label; give labelled rows only")
            labels |= dict.fromkeys(_distinct(path, label, column))
            blocks.append(len(column))
    if not sum(blocks):
        raise InputError(f"{path} has no rows; leave it out")
    return FileSummary(tuple(blocks), tuple(file.columns), tuple(labels))


def _distinct(path: str, label: str, column: pa.ChunkedArray) -> list[Hashable]:
    if pa.types.is_nested(column.type):
        raise InputError(f"{path}: the labels in {label!r} are {column.type}; give one value each")
    values: list[Hashable] = pc.unique(column).to_pylist()
    return values


def read_rows(
    path: str, blocks: Sequence[int], rows: slice | NDArray[np.intp], columns: Any = None
) -> pa.Table:
    """Read some rows, by rising number, from a file of blocks so long; None is all columns.

    A column that the file does not have is null.
    """
    wanted = np.arange(*rows.indices(sum(blocks))) if isinstance(rows, slice) else rows
    starts = list(accumulate(blocks, initial=0))
    ends = np.searchsorted(wanted, starts)
    with _open(path) as file:
        names = None if columns is None else [name for name in columns if name in file.columns]
        parts = [
            _take(file.read(number, names), wanted[a:b] - starts[number])
            for number, (a, b) in enumerate(pairwise(ends.tolist()))
            if a < b
        ]
        if sum(map(len, parts)) != len(wanted):
            raise InputError(f"{path} has other rows than before; leave files as they are")
        table = _without_codes(pa.concat_tables(parts, promote_options="permissive"))
    for name in columns or ():
        if name not in table.column_names:
            table = table.append_column(name, pa.nulls(len(table)))
    return table if columns is None else table.select(columns)


def _without_codes(table: pa.Table) -> pa.Table:
    """With numbers in place of codes for them; categories, which are text, stay coded."""
    fields = [
        field.with_type(field.type.value_type)
        if pa.types.is_dictionary(field.type) and not is_text(field.type.value_type)
        else field
        for field in table.schema
    ]
    return table.cast(pa.schema(fields))


def _take(block: pa.Table, rows: NDArray[np.intp]) -> pa.Table:
    if rows[-1] - rows[0] == len(rows) - 1:
        return block.slice(rows[0], len(rows))
    return block.take(rows)


@contextmanager
def _open(path: str) -> Iterator[_Blocks]:
    try:
        with _source(path) as source:
            head = source.read_at(len(_ARROW), 0)
            if head.startswith(_PARQUET):
                parquet = pq.ParquetFile(source)
                yield _Blocks(
                    parquet.num_row_groups, parquet.schema_arrow.names, parquet.read_row_group
                )
            elif head == _ARROW:
                reader = pa.ipc.open_file(source)
                yield _Blocks(
                    reader.num_record_batches,
                    reader.schema.names,
                    lambda number, names: _batch(reader, number, names),
                )
            else:
                raise InputError(f"{path} is neither a Parquet nor an Arrow file; give one")
    except (OSError, pa.ArrowException) as error:
        raise InputError(f"{path} cannot be read: {error}") from error


def _batch(reader: Any, number: int, names: list[str] | None) -> pa.Table:
    table = pa.Table.from_batches([reader.get_batch(number)])
    return table if names is None else table.select(names)


def _source(path: str) -> Any:
    if "://" not in path:
        return pa.memory_map(path)
    system, name = fs.FileSystem.from_uri(path)
    return system.open_input_file(name)


class Reading(NamedTuple):
    """How rows of files become segments."""

    encoder: Encoder
    label: str
    classes: NDArray[Any]
    class_weights: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Scorer:
    """Mean head gradients of all past segments, computed where their shards are placed."""

    placed: Placed
    n_segments: int

    def __call__(self, model: Scorable) -> NDArray[np.float64]:
        means: list[list[Mean]] = [[] for _ in range(self.n_segments)]
        for results in self.placed.map(_score, model):
            for segment, mean in results:
                means[segment].append(mean)
        return np.stack([put_together(of) for of in means])


def place_shards(
    executor: Executor, reading: Reading, paths: Sequence[str], summaries: Sequence[FileSummary]
) -> Scorer:
    """Let the executor read all rows of these files, and keep them in place."""
    n_rows = _chunk_size(
        sum(summary.n_rows for summary in summaries),
        reading.encoder.width,
        executor.n_workers,
    )
    chunks = _chunks(_runs(paths, summaries), n_rows)
    return Scorer(executor.place(_load, reading, chunks), len(paths))


def _chunk_size(n_rows: int, width: int, n_workers: int) -> int:
    """Rows of a chunk."""
    n_chunks = max(n_workers, min(_CHUNKS_EACH * n_workers, _MAX_CHUNKS))
    return max(CHUNK_ROWS, min(n_rows // n_chunks, MAX_NUMBERS // width))


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


def _runs(paths: Sequence[str], summaries: Sequence[FileSummary]) -> Iterator[_Run]:
    for number, (path, summary) in enumerate(zip(paths, summaries, strict=True)):
        for run in runs(summary.n_rows):
            yield _Run(number, path, summary.blocks, run)


def _chunks(parts: Iterator[_Run], enough: int) -> Iterator[list[_Run]]:
    """Yield runs that follow each other, as many as have enough rows."""
    chunk, n_rows = list[_Run](), 0
    for run in parts:
        chunk.append(run)
        n_rows += run.stop - run.start
        if n_rows >= enough:
            yield chunk
            chunk, n_rows = [], 0
    if chunk:
        yield chunk


def _load(reading: Reading, chunk: Sequence[_Run]) -> list[_Loaded]:
    by_file = groupby(chunk, attrgetter("path"))
    return [loaded for _, of in by_file for loaded in _load_file(reading, list(of))]


def _load_file(reading: Reading, chunk: Sequence[_Run]) -> Iterator[_Loaded]:
    """Yield the runs of one file, which is read once: a block of it may hold the rows of many."""
    start, stop = chunk[0].start, chunk[-1].stop
    columns = [*reading.encoder.names_in, reading.label]
    table = read_rows(chunk[0].path, chunk[0].blocks, slice(start, stop), columns)
    for run in chunk:
        shards = [
            _encode(reading, run, rows, table.slice(rows.start - start, rows.stop - rows.start))
            for rows in run.shards
        ]
        yield _Loaded(run.segment, shards)


def _encode(reading: Reading, run: _Run, rows: slice, table: pa.Table) -> Segment:
    try:
        X = reading.encoder.transform(read_in_place(table.select(reading.encoder.names_in)))
        y = _codes(table[reading.label], reading.classes)
    except InputError as error:
        where = f"{run.path}, rows {rows.start} to {rows.stop - 1}"
        raise InputError(f"{where}: {error}") from error
    return Segment(run.segment, X, y, reading.class_weights[y].astype(np.float32))


def _codes(labels: pa.ChunkedArray, classes: NDArray[Any]) -> NDArray[np.int64]:
    kind = labels.type.value_type if pa.types.is_dictionary(labels.type) else labels.type
    coded = labels.cast(kind).combine_chunks().dictionary_encode()
    place = {label: code for code, label in enumerate(classes.tolist())}
    labels_here = coded.dictionary.to_pylist()
    if coded.null_count or not place.keys() >= set(labels_here):
        raise InputError("there are labels that were not there before; leave files as they are")
    codes = np.array([place[label] for label in labels_here], dtype=np.int64)
    y: NDArray[np.int64] = codes[coded.indices.to_numpy()]
    return y


def _score(model: Scorable, chunk: Sequence[_Loaded]) -> list[tuple[int, Mean]]:
    with one_blas_thread():
        return [(run.segment, run_mean(model, run.shards)) for run in chunk]
