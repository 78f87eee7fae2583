"""All rows of a store as one Parquet file, for other tools.

Beside the rows' own columns there is `segment`, the number of each row's segment (that of the open
rows is the one they will be sealed under), and `segment_name`, its name as JSON. Columns that only
some segments have are null in the others. Rows that come while it is written are not in it.

>>> import pyarrow as pa, pyarrow.parquet as pq, tempfile
>>> from driftquilt.store.memory import MemoryStore
>>> store = MemoryStore()
>>> n_rows = store.append(pa.record_batch({"x": [1, 2]}))
>>> may, n_rows = store.seal("may"), store.append(pa.record_batch({"x": [0.5]}))
>>> path = f"{tempfile.mkdtemp()}/all.parquet"
>>> export(store, path)
3
>>> pq.read_table(path).to_pylist()[1:]
[{'segment': 1, 'segment_name': '"may"', 'x': 2.0}, {'segment': 2, 'segment_name': None, 'x': 0.5}]
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

import pyarrow as pa
import pyarrow.parquet as pq

from driftquilt.errors import InputError, StoreError
from driftquilt.files import atomic_write, describe_os_error
from driftquilt.store.base import SealedSegment, Store, name_to_json
from driftquilt.store.rows import fit, unify

__all__ = ["export"]

_OURS = pa.schema({"segment": pa.int64(), "segment_name": pa.string()})


def export(store: Store, path: str | os.PathLike[str]) -> int:
    """Write the file, replacing what stands at `path`, segment by segment; returns its rows."""
    number, rows = _open_rows(store)
    sealed = [segment for segment in store.segments if segment.number < number]
    schema, n_rows = _schema(table for _, _, table in _parts(store, sealed, number, rows)), 0
    try:
        with atomic_write(path) as file, pq.ParquetWriter(file, schema) as writer:
            for of, name, table in _parts(store, sealed, number, rows):
                n_rows += table.num_rows
                for batch in table.to_batches():
                    writer.write_batch(fit(_marked(batch, of, name), schema))
    except StoreError:
        raise
    except OSError as error:
        raise StoreError(
            f"the rows cannot be written to {path}: {describe_os_error(error)}"
        ) from error
    return n_rows


def _open_rows(store: Store) -> tuple[int, pa.Table]:
    """Return the open rows and their number; once more if they were sealed in between."""
    number, rows = store.next_segment, store.open_rows()
    return (number, rows) if store.next_segment == number else _open_rows(store)


def _parts(
    store: Store, sealed: Iterable[SealedSegment], number: int, rows: pa.Table
) -> Iterator[tuple[int, str | None, pa.Table]]:
    for segment in sealed:
        yield segment.number, name_to_json(segment.name), store.read(segment.number)
    yield number, None, rows


def _schema(tables: Iterable[pa.Table]) -> pa.Schema:
    schema = _OURS
    for table in tables:
        taken = sorted(set(_OURS.names) & set(table.column_names))
        if taken:
            raise InputError(f"the rows have a column {taken[0]!r}, which an export adds by itself")
        schema = unify(schema, table.schema)
    return schema


def _marked(batch: pa.RecordBatch, number: int, name: str | None) -> pa.RecordBatch:
    n_rows = batch.num_rows
    marks = [pa.repeat(number, n_rows), pa.repeat(pa.scalar(name, pa.string()), n_rows)]
    return pa.RecordBatch.from_arrays(
        [*marks, *batch.columns], names=[*_OURS.names, *batch.schema.names]
    )
