r"""Data files of any size and format as one Arrow table, which is mapped from a file.

CSV, TSV, Parquet, Arrow files and streams and JSON lines are read, each of them gzipped too, from
a list of paths, globs, or `-` for standard input. The first bytes tell the format, and where they
do not, the name. An Arrow file that is not compressed is mapped where it is, and must not change
meanwhile. Everything else is converted, some rows at a time, into one temporary Arrow file in the
folder of TMPDIR, which has no name and is gone with the last use of the table, however the process
ends.

The rows of several inputs make one table. Columns are matched by name; one that an input lacks is
missing there. Each column gets the narrowest type that holds the values of all inputs (see
`column_types`); text in one input and numbers in another are refused.

>>> import tempfile
>>> folder = Path(tempfile.mkdtemp())
>>> _ = (folder / "may.csv").write_text("age,label\n31,buys\n")
>>> _ = (folder / "june.csv").write_text("age,label\n2.5,leaves\n")
>>> with open_data([folder / "may.csv", folder / "june.csv"]) as data:
...     data.table.to_pydict()
{'age': [31.0, 2.5], 'label': ['buys', 'leaves']}
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeAlias

import pyarrow as pa
from pyarrow import csv, ipc
from pyarrow import parquet as pq

from driftquilt.data.arrow import MappedFile, has_one_dictionary, limit_memory
from driftquilt.data.column_types import (
    common_type,
    fit_columns,
    is_view,
    join_batches,
    plain_type,
)
from driftquilt.data.csv_files import CsvRows, TypesChanged, name_columns, unnamed_notes
from driftquilt.data.json_lines import JsonRows
from driftquilt.data.source import (
    FORMATS,
    ByteSource,
    TextFormat,
    check_room,
    find_files,
    open_file,
    spool,
    storing,
    suffix_of,
)
from driftquilt.errors import InputError
from driftquilt.files import atomic_write, describe_os_error
from driftquilt.text import listing, one_line

Watch: TypeAlias = Callable[[int, int], None]
_Mapped: TypeAlias = tuple[list[MappedFile], Any, list[str]]  # files, their table, notes

_ARROW_FILE = b"ARROW1"
_BY_START = {b"PAR1": "parquet", _ARROW_FILE: "arrow", b"\xff\xff\xff\xff": "arrow"}
_JSON = re.compile(rb"(\xef\xbb\xbf)?\s*(\[\s*)?\{")  # an object, or an array of them
_PARQUET_ROWS = 65_536  # read at a time
_PARQUET_BUFFER = 1 << 20  # bytes of each column's pages at a time
_CHECKED_ROWS = 2**18  # of a mapped file at a time
_BATCH_BYTES = 32 << 20  # fewer and longer batches are faster to find rows in


@dataclass(frozen=True, eq=False)
class Data:
    """A table, the files it was read from (none of a pipe), and notes for the user."""

    table: Any
    notes: tuple[str, ...]
    files: tuple[Path, ...] = ()


class _Rows(Protocol):
    """The rows of one input; `schema` may widen while they are read."""

    source: ByteSource
    notes: list[str]

    @property
    def schema(self) -> Any: ...

    def batches(self) -> Iterator[Any]: ...


@contextlib.contextmanager
def open_data(
    paths: Sequence[str | os.PathLike[str]],
    watch: Watch | None = None,
    form: TextFormat = TextFormat(),  # noqa: B008  it is frozen
) -> Iterator[Data]:
    """Open the rows of all files as one table, of at least one row; else raise `InputError`.

    `form` is how text files are written. `watch(done, total)` is called with bytes while reading;
    the total of a pipe is 0, for unknown. A file whose columns turn out to be wider than they
    seemed is read again from the start. The table stays usable after the block, but its resident
    part is not bounded any more.
    """
    found = () if "-" in paths else tuple(find_files(paths))
    inputs = [_open_rows(open_file(path), path.name, form) for path in found]
    inputs = inputs or [_open_standard_input(paths, watch, form)]
    mapped, table, notes = _map_inputs(inputs) or _convert(inputs, watch)
    names = listing([rows.source.name for rows in inputs])
    if table.num_rows == 0:
        raise InputError(f"{names} has columns but no rows; give a file with rows")
    if len(inputs) > 1:
        notes = [f"{len(inputs)} files, in this order: {names}", *notes]
    with limit_memory(mapped):
        yield Data(table, tuple(notes), found)


def write_table(batches: Iterable[Any], path: str | os.PathLike[str]) -> int:
    r"""Write record batches as Parquet or CSV, by the suffix, completely or not at all.

    Return how many rows they have.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "out.csv"
    >>> write_table([pa.record_batch({"age": [31], "label": ["buys"]})], path)
    1
    >>> path.read_text()
    '"age","label"\n31,"buys"\n'
    """
    path = Path(path)
    writers = {".parquet": _parquet_writer, ".pq": _parquet_writer, ".csv": csv.CSVWriter}
    if path.suffix.lower() not in writers:
        raise InputError(f"cannot write {path}: its suffix must be one of {', '.join(writers)}")
    try:
        with atomic_write(path) as file:
            return _write_batches(writers[path.suffix.lower()], file, batches)
    except (OSError, pa.ArrowException) as error:
        raise InputError(f"cannot write {path}: {describe_os_error(error)}") from error


class _ParquetRows:
    """The rows of one Parquet file."""

    def __init__(self, source: ByteSource) -> None:
        self.source = source
        self.notes: list[str] = []
        with source.raw() as file:
            self.schema = pq.ParquetFile(file).schema_arrow

    def batches(self) -> Iterator[Any]:
        """Yield all rows, in order."""
        with self.source.raw() as file:
            parquet = pq.ParquetFile(file, buffer_size=_PARQUET_BUFFER, pre_buffer=False)
            yield from parquet.iter_batches(_PARQUET_ROWS)


class _ArrowRows:
    """The rows of one Arrow file or stream."""

    def __init__(self, source: ByteSource) -> None:
        self.source = source
        self.notes: list[str] = []
        is_file = source.head(len(_ARROW_FILE)) == _ARROW_FILE
        self._open = ipc.open_file if is_file else ipc.open_stream
        with source.raw() as file:
            self.schema = self._open(file).schema

    def batches(self) -> Iterator[Any]:
        """Yield all rows, in order."""
        with self.source.raw() as file:
            for batch in self._batches(file):
                self._check(batch)
                yield batch

    def map(self) -> tuple[MappedFile, Any] | None:
        """Map the file; return it with its table, or None if the values must be converted."""
        if any(map(is_view, self.schema.types)):
            return None
        with self.source.raw() as file:
            mapped = MappedFile(file)
            batches = []
            for batch in self._batches(mapped.buffer):
                if not mapped.holds(batch):  # it is compressed
                    return None
                for first in range(0, batch.num_rows, _CHECKED_ROWS):
                    self._check(batch.slice(first, _CHECKED_ROWS))
                    mapped.release_pages()
                batches.append(batch)
            return mapped, pa.Table.from_batches(batches, self.schema)

    def _batches(self, file: Any) -> Iterator[Any]:
        reader = self._open(file)
        if isinstance(reader, ipc.RecordBatchFileReader):
            return map(reader.get_batch, range(reader.num_record_batches))
        return iter(reader)

    def _check(self, batch: Any) -> None:
        """Refuse offsets and codes out of range: whoever follows them crashes."""
        try:
            batch.validate(full=True)
        except pa.ArrowInvalid as error:
            raise InputError(
                f"{self.source.name} is damaged: {one_line(error)}; write it again"
            ) from error


def _open_standard_input(
    paths: Sequence[str | os.PathLike[str]], watch: Watch | None, form: TextFormat
) -> _Rows:
    if len(paths) > 1:
        raise InputError(
            "- is standard input and cannot be combined with files; name files, or pipe all in"
        )
    return _open_rows(spool("standard input", sys.stdin.buffer, watch), None, form)


def _open_rows(source: ByteSource, file_name: str | None, form: TextFormat) -> _Rows:
    head = source.head(512)
    if not head:
        raise InputError(f"{source.name} is empty; give a file with rows")
    source.encoding = form.encoding
    kind = next((kind for start, kind in _BY_START.items() if head.startswith(start)), None)
    kind = kind or (_format_by_name(source.name, file_name) if file_name else _guess_format(source))
    if kind == "csv":
        return CsvRows(source, form)
    if kind == "json":
        return JsonRows(source)
    if source.packed:  # these are read here and there, which gzip cannot do
        with source.unpacked() as file:
            source = spool(source.name, file)
    return _ParquetRows(source) if kind == "parquet" else _ArrowRows(source)


def _format_by_name(where: str, file_name: str) -> str:
    kind = FORMATS.get(suffix_of(file_name))
    if kind is None:
        known = ", ".join(FORMATS)
        raise InputError(f"{where} has an unknown format; known are {known}, and each with .gz")
    return kind


def _guess_format(source: ByteSource) -> str:
    head = source.text_head(512)
    if b"\0" in head:
        raise InputError(
            f"{source.name} has an unknown format; pipe in CSV, JSON lines, Parquet or Arrow"
        )
    return "json" if _JSON.match(head) else "csv"


def _map_inputs(inputs: Sequence[_Rows]) -> _Mapped | None:
    """Map Arrow files of one schema where they are; return None if something must be converted."""
    arrow = [rows for rows in inputs if isinstance(rows, _ArrowRows)]
    if len(arrow) < len(inputs) or any(rows.schema != arrow[0].schema for rows in arrow):
        return None
    mapped = [pair for rows in arrow if (pair := rows.map()) is not None]
    if len(mapped) < len(arrow):
        return None
    table = pa.concat_tables([part for _, part in mapped])
    if not all(map(_can_stay, table.columns)):
        return None
    where, names = inputs[0].source.name, table.column_names
    table = table.rename_columns(name_columns(where, names))
    return [file for file, _ in mapped], table, unnamed_notes(where, names)


def _can_stay(column: Any) -> bool:
    """Return whether a code stands for the same text in all chunks, so that they can be joined."""
    if not pa.types.is_dictionary(column.type):
        return True
    return has_one_dictionary(column) and not any(c.dictionary.null_count for c in column.chunks)


def _convert(inputs: Sequence[_Rows], watch: Watch | None) -> _Mapped:
    """Write all rows to one temporary Arrow file, and map it."""
    while True:
        schema, notes = _unify(inputs)
        with storing(), tempfile.TemporaryFile() as file:
            try:
                _write_arrow(file, inputs, schema, watch)
            except TypesChanged:  # some type is wider than before, so this ends
                continue
            mapped = MappedFile(file)
        pa.default_memory_pool().release_unused()
        table = ipc.open_file(mapped.buffer).read_all()
        return [mapped], table, [*(note for rows in inputs for note in rows.notes), *notes]


def _write_arrow(file: Any, inputs: Sequence[_Rows], schema: Any, watch: Watch | None) -> None:
    total = sum(rows.source.size for rows in inputs)
    for rows in inputs:
        rows.source.done = 0

    def batches() -> Iterator[Any]:
        for rows in inputs:
            for batch in _fit(rows, schema):
                if watch is not None:
                    watch(sum(each.source.done for each in inputs), total)
                yield batch

    with ipc.new_file(file, schema) as writer:
        for batch in join_batches(batches(), _BATCH_BYTES):
            writer.write_batch(batch)
            done = sum(rows.source.done for rows in inputs)
            check_room(file.tell(), done / max(total, 1))
    file.flush()


def _unify(inputs: Sequence[_Rows]) -> tuple[Any, list[str]]:
    """Return the schema that holds the rows of all, and what the user should know of it."""
    columns: dict[str, Any] = {}
    first: dict[str, str] = {}
    notes, names_of = [], dict[str, list[str]]()
    for rows in inputs:
        where = rows.source.name
        names_of[where] = name_columns(where, rows.schema.names)
        notes += unnamed_notes(where, rows.schema.names)
        for name, kind in zip(names_of[where], map(plain_type, rows.schema.types), strict=True):
            before = columns.get(name, pa.null())
            both = common_type(before, kind)
            if both is None:
                raise InputError(
                    f"column {name!r} is {before} in {first[name]} and {kind} in {where}; make it "
                    "the same in both, or read them apart"
                )
            if kind not in (pa.null(), both) or before not in (pa.null(), both):
                notes.append(f"column {name!r} is read as {both}: {where} has {kind}")
            columns[name] = both
            if not pa.types.is_null(kind):
                first.setdefault(name, where)
    for name in columns:
        lacking = [where for where, names in names_of.items() if name not in names]
        if lacking:
            notes.append(f"column {name!r} is missing in {listing(lacking)}")
    return pa.schema(columns), notes


def _fit(rows: _Rows, schema: Any) -> Iterator[Any]:
    """Yield the batches of one input, with the columns and types of all."""
    names = name_columns(rows.source.name, rows.schema.names)
    for batch in rows.batches():
        try:
            columns = fit_columns(batch.rename_columns(names), schema)
        except InputError as error:
            raise InputError(f"{rows.source.name}: {error}") from error
        yield pa.RecordBatch.from_arrays(columns, schema=schema)


def _write_batches(make_writer: Any, file: Any, batches: Iterable[Any]) -> int:
    batches = iter(batches)
    first = next(batches, None)
    if first is None:
        raise InputError("there is nothing to write; give at least one batch, even without rows")
    n_rows = 0
    with make_writer(file, first.schema) as writer:
        for batch in itertools.chain([first], batches):
            writer.write_batch(batch)
            n_rows += batch.num_rows
    return n_rows


def _parquet_writer(file: Any, schema: Any) -> Any:
    return pq.ParquetWriter(file, schema, compression="zstd")
