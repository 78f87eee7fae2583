r"""Data files of any size and format, as one Arrow table that is mapped from a file.

CSV, TSV, Parquet, Arrow files and streams and JSON lines are known, each of them gzipped too; a
list of paths, globs, or `-` for standard input. An Arrow file that is not compressed is mapped
where it lies, and must not change meanwhile. Everything else is converted, some rows at a time,
into one temporary Arrow file, which has no name and is gone with the last use of the table,
however the process ends. The folder is that of TMPDIR.

What the columns of text files become is in `csv_rows` and `json_rows`; how several files make
one table in `together`; in which order they are taken in `paths`.

>>> from pathlib import Path
>>> folder = Path(tempfile.mkdtemp())
>>> _ = (folder / "may.csv").write_text("age,label\n31,buys\n")
>>> _ = (folder / "june.csv").write_text("age,label\n2.5,leaves\n")
>>> with open_data([folder / "may.csv", folder / "june.csv"]) as data:
...     data.table.to_pydict()
{'age': [31.0, 2.5], 'label': ['buys', 'leaves']}
"""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyarrow import ipc

from driftquilt.data.arrow_rows import ArrowRows
from driftquilt.data.csv_rows import BeginAnew
from driftquilt.data.formats import open_rows
from driftquilt.data.mapped_memory import MappedFile, limit_memory
from driftquilt.data.names import check_names, unnamed
from driftquilt.data.paths import find_files
from driftquilt.data.raw import check_room, open_file, spool, storing
from driftquilt.data.text_form import USUAL, TextForm
from driftquilt.data.together import Reader, fitted, pieces, unite
from driftquilt.errors import InputError
from driftquilt.text import listing

__all__ = ["Data", "Watch", "open_data"]

Watch = Callable[[int, int], None]


@dataclass(frozen=True, eq=False)
class Data:
    """A table, and what the reader should know about how it was read."""

    table: Any
    notes: tuple[str, ...]


@contextlib.contextmanager
def open_data(
    paths: Sequence[str | os.PathLike[str]], watch: Watch | None = None, form: TextForm = USUAL
) -> Iterator[Data]:
    """The rows of all files as one table, of at least one row; `InputError` if they are not one.

    `form` is how text files are written.

    `watch(done, total)` is called with bytes as reading goes on; of a pipe the total is 0, for
    not known. A file whose columns turn out to be wider than they seemed is begun anew. The
    table stays usable afterwards, but then its resident part is not bounded any more.
    """
    watch = watch or _ignore
    readers = _open_all(paths, watch, form)
    mappings, table, notes = _map_all(readers) or _convert_all(readers, watch)
    if table.num_rows == 0:
        names = listing([reader.source.name for reader in readers])
        raise InputError(f"{names} holds columns but no rows; give a file with rows")
    if len(readers) > 1:
        order = listing([reader.source.name for reader in readers])
        notes = [f"{len(readers)} files, in this order: {order}", *notes]
    with limit_memory(mappings):
        yield Data(table, tuple(notes))


def _open_all(
    paths: Sequence[str | os.PathLike[str]], watch: Watch, form: TextForm
) -> list[Reader]:
    if "-" not in paths:
        return [open_rows(open_file(path), path.name, form) for path in find_files(paths)]
    if len(paths) > 1:
        raise InputError("- is standard input and stands alone; name files, or pipe all of them in")
    return [open_rows(spool("standard input", sys.stdin.buffer, watch), form=form)]


def _map_all(readers: Sequence[Reader]) -> tuple[list[MappedFile], Any, list[str]] | None:
    """The tables where they lie, one below the other; None if that cannot be."""
    if not all(isinstance(reader, ArrowRows) for reader in readers):
        return None
    if any(reader.schema != readers[0].schema for reader in readers):
        return None
    found = [reader.map() for reader in readers if isinstance(reader, ArrowRows)]
    mapped = [pair for pair in found if pair is not None]
    if len(mapped) < len(found):
        return None
    table = pa.concat_tables([part for _, part in mapped])
    if not all(map(_can_be_joined, table.columns)):
        return None
    where, given = readers[0].source.name, table.column_names
    table = table.rename_columns(check_names(where, given))
    return [mapping for mapping, _ in mapped], table, unnamed(where, given)


def _can_be_joined(column: Any) -> bool:
    """Whether chunks can be put together: they cannot if the same code is another text in each."""
    if not pa.types.is_dictionary(column.type):
        return True
    found = [chunk.dictionary for chunk in column.chunks]
    return all(not each.null_count and each.equals(found[0]) for each in found)


def _convert_all(
    readers: Sequence[Reader], watch: Watch
) -> tuple[list[MappedFile], Any, list[str]]:
    """One temporary Arrow file of all rows, mapped."""
    while True:
        schema, notes = unite(readers)
        with storing(), tempfile.TemporaryFile() as file:
            try:
                _write(file, readers, schema, watch)
            except BeginAnew:  # some kind is wider than before, so this comes to an end
                continue
            mapping = MappedFile(file)
        pa.default_memory_pool().release_unused()
        table = ipc.open_file(mapping.buffer).read_all()
        own = [note for reader in readers for note in reader.notes]
        return [mapping], table, [*own, *notes]


def _write(file: Any, readers: Sequence[Reader], schema: Any, watch: Watch) -> None:
    total = max(sum(reader.source.size for reader in readers), 1)
    for reader in readers:
        reader.source.done = 0
    batches = (batch for reader in readers for batch in _watched(readers, reader, schema, watch))
    with ipc.new_file(file, schema) as writer:
        for piece in pieces(batches):
            writer.write_batch(piece)
            done = sum(reader.source.done for reader in readers)
            check_room(file.tell(), done / total)
    file.flush()


def _watched(readers: Sequence[Reader], reader: Reader, schema: Any, watch: Watch) -> Iterator[Any]:
    total = sum(reader.source.size for reader in readers)
    for batch in fitted(reader, schema):
        watch(sum(reader.source.done for reader in readers), total)
        yield batch


def _ignore(done: int, total: int) -> None:
    """Nobody watches."""
