"""A segment in a file, on this machine or in a bucket, read a part at a time.

A file is Parquet or Arrow (the format with a footer, as in the store of a stream). It lies in
blocks, row groups or record batches; `look` tells how long they are, and with that `read_rows`
opens only the blocks that it needs. Paths with a scheme, such as s3:// and gs://, go through
Arrow's file systems, which find keys where the tools of those clouds do; others are local, or of
a folder that every machine sees.

>>> import tempfile
>>> path = f"{tempfile.mkdtemp()}/may.parquet"
>>> pq.write_table(pa.table({"age": [31, 5, 44, 8], "buys": [1, 0, 1, 0]}), path, row_group_size=3)
>>> look("buys", path)
Look(blocks=(3, 1), columns=('age', 'buys'), labels=(1, 0))
>>> read_rows(path, (3, 1), slice(2, 4)).column("age").to_pylist()
[44, 8]
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray
from pyarrow import fs

from driftquilt.errors import InputError

__all__ = ["Look", "look", "read_rows"]

_PARQUET, _ARROW = b"PAR1", b"ARROW1"


class Look(NamedTuple):
    """What is known of a file without its rows: how long its blocks are, columns, classes."""

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


def look(label: str, path: str) -> Look:
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
    return Look(tuple(blocks), tuple(file.columns), tuple(labels))


def _distinct(path: str, label: str, column: pa.ChunkedArray) -> list[Hashable]:
    if pa.types.is_nested(column.type):
        raise InputError(f"{path}: the labels in {label!r} are {column.type}; give one value each")
    values: list[Hashable] = pc.unique(column).to_pylist()
    return values


def read_rows(
    path: str, blocks: Sequence[int], rows: slice | NDArray[np.intp], columns: Any = None
) -> pa.Table:
    """Some rows, by rising number, from a file whose blocks are so long; None is all columns.

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
        if pa.types.is_dictionary(field.type) and not _is_text(field.type.value_type)
        else field
        for field in table.schema
    ]
    return table.cast(pa.schema(fields))


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


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
