"""Rows of Parquet files, and of Arrow files and streams.

An Arrow file that is not compressed can be used where it lies: `ArrowRows.map` gives its table
over a mapping of the file. Everything else is read batch by batch.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyarrow import ipc
from pyarrow import parquet as pq

from driftquilt.data.kinds import is_view
from driftquilt.data.mapped_memory import MappedFile
from driftquilt.data.raw import Source, one_line
from driftquilt.errors import InputError

__all__ = ["ArrowRows", "ParquetRows"]

_FILE = b"ARROW1"  # how an Arrow file begins; a stream has no such mark
_BATCH = 65_536  # rows of Parquet at a time
_BUFFER = 1 << 20  # bytes of each column's pages at a time
_CHECKED = 2**18  # rows of a mapped file at a time


class ParquetRows:
    """The rows of one Parquet file."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.notes: list[str] = []
        with source.raw() as file:
            self.schema = pq.ParquetFile(file).schema_arrow

    def batches(self) -> Iterator[Any]:
        """All rows, in order."""
        with self.source.raw() as file:
            parquet = pq.ParquetFile(file, buffer_size=_BUFFER, pre_buffer=False)
            yield from parquet.iter_batches(_BATCH)


class ArrowRows:
    """The rows of one Arrow file or stream."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.notes: list[str] = []
        is_file = source.head(len(_FILE)) == _FILE
        self._open = ipc.open_file if is_file else ipc.open_stream
        with source.raw() as file:
            self.schema = self._open(file).schema

    def batches(self) -> Iterator[Any]:
        """All rows, in order."""
        with self.source.raw() as file:
            for batch in _batches(self._open(file)):
                self._expect_sound(batch)
                yield batch

    def map(self) -> tuple[MappedFile, Any] | None:
        """A mapping and the table that stands on it; None if the values do not lie as they are."""
        if any(map(is_view, self.schema.types)):
            return None
        with self.source.raw() as file:
            mapping = MappedFile(file)
            batches = []
            for batch in _batches(self._open(mapping.buffer)):
                if not mapping.holds(batch):
                    return None
                for first in range(0, batch.num_rows, _CHECKED):
                    self._expect_sound(batch.slice(first, _CHECKED))
                    mapping.release_pages()
                batches.append(batch)
            return mapping, pa.Table.from_batches(batches, self.schema)

    def _expect_sound(self, batch: Any) -> None:
        """Refuse values that point to where there are none: whoever follows them crashes."""
        try:
            batch.validate(full=True)
        except pa.ArrowInvalid as error:
            raise InputError(
                f"{self.source.name} is damaged: {one_line(error)}; write it again"
            ) from error


def _batches(reader: Any) -> Iterator[Any]:
    if isinstance(reader, ipc.RecordBatchFileReader):
        return map(reader.get_batch, range(reader.num_record_batches))
    return iter(reader)
