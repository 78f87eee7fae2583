r"""A table on disk for other tools: there whole, or not at all.

>>> import tempfile
>>> folder = Path(tempfile.mkdtemp())
>>> write_table([pa.record_batch({"age": [31], "label": ["buys"]})], folder / "out.csv")
1
>>> (folder / "out.csv").read_text()
'"age","label"\n31,"buys"\n'
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import csv
from pyarrow import parquet as pq

from driftquilt.errors import InputError
from driftquilt.files import atomic_write, describe_os_error

__all__ = ["write_table"]


def write_table(batches: Iterable[Any], path: str | os.PathLike[str]) -> int:
    """Write record batches as Parquet or CSV, by the suffix; returns how many rows.

    They are written beside `path` under a name of their own, which then takes its place.
    """
    path = Path(path)
    opener = {".parquet": _open_parquet, ".pq": _open_parquet, ".csv": csv.CSVWriter}
    if path.suffix.lower() not in opener:
        raise InputError(f"cannot write {path}: its suffix must be one of {', '.join(opener)}")
    try:
        with atomic_write(path) as file:
            return _fill(opener[path.suffix.lower()], file, batches)
    except (OSError, pa.ArrowException) as error:
        raise InputError(f"cannot write {path}: {describe_os_error(error)}") from error


def _fill(opener: Any, file: Any, batches: Iterable[Any]) -> int:
    batches = iter(batches)
    first = next(batches, None)
    if first is None:
        raise InputError("there is nothing to write; give at least one batch, even without rows")
    n_rows = 0
    with opener(file, first.schema) as writer:
        for batch in itertools.chain([first], batches):
            writer.write_batch(batch)
            n_rows += batch.num_rows
    return n_rows


def _open_parquet(file: Any, schema: Any) -> Any:
    return pq.ParquetWriter(file, schema, compression="zstd")
