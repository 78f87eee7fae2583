"""All rows of a store as one Parquet file, for other tools.

Beside the rows' own columns there is `segment`, the number of each row's segment (the open one
has the next number), and `segment_name`, its name as JSON. Columns that only some segments
have are null in the others.

>>> import pyarrow as pa, pyarrow.parquet as pq, tempfile
>>> from driftquilt.store.memory import MemoryStore
>>> store = MemoryStore()
>>> n_rows = store.append(pa.record_batch({"x": [1, 2]}))
>>> may, n_rows = store.seal("may"), store.append(pa.record_batch({"x": [0.5]}))
>>> path = Path(tempfile.mkdtemp()) / "all.parquet"
>>> export(store, path)
3
>>> pq.read_table(path).to_pylist()[1:]
[{'segment': 1, 'segment_name': '"may"', 'x': 2.0}, {'segment': 2, 'segment_name': None, 'x': 0.5}]
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from driftquilt.errors import InputError
from driftquilt.store.base import Store, name_to_json
from driftquilt.store.columns import fit, unify
from driftquilt.store.files import DISK, write_file

__all__ = ["export"]

_OURS = pa.schema({"segment": pa.int64(), "segment_name": pa.string()})


def export(store: Store, path: str | os.PathLike[str]) -> int:
    """Write the file, replacing what stands at `path`, segment by segment; returns its rows."""
    schema = _OURS
    for _, _, table in _parts(store):
        taken = sorted(set(_OURS.names) & set(table.column_names))
        if taken:
            raise InputError(f"the rows have a column {taken[0]!r}, which an export adds by itself")
        schema = unify(schema, table.schema)
    n_rows = 0

    def fill(sink: object) -> None:
        nonlocal n_rows
        with pq.ParquetWriter(sink, schema) as writer:
            for number, name, table in _parts(store):
                n_rows += table.num_rows
                for batch in table.to_batches():
                    writer.write_batch(fit(_marked(batch, number, name), schema))

    write_file(DISK, Path(path), fill)
    return n_rows


def _parts(store: Store) -> Iterator[tuple[int, str | None, pa.Table]]:
    number = 0
    for segment in store.segments:
        number = segment.number
        yield number, name_to_json(segment.name), store.read(number)
    if store.n_open:
        yield number + 1, None, store.open_rows()


def _marked(batch: pa.RecordBatch, number: int, name: str | None) -> pa.RecordBatch:
    n_rows = batch.num_rows
    marks = [pa.repeat(number, n_rows), pa.repeat(pa.scalar(name, pa.string()), n_rows)]
    return pa.RecordBatch.from_arrays(
        [*marks, *batch.columns], names=[*_OURS.names, *batch.schema.names]
    )
