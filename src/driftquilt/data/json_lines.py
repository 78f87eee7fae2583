r"""Rows of JSON lines: one object per line, one column per key.

Keys may come late or be missing in some lines. Strings that are all ISO dates, or all timestamps,
become dates or timestamps, as in a CSV file; other strings are text, "NA" too. A column that mixes
numbers and strings, or holds lists or objects, is refused by name and line.

>>> import io
>>> from driftquilt.data.source import spool
>>> rows = JsonRows(spool("a.jsonl", io.BytesIO(b'{"age": 31}\n{"age": null}\n')))
>>> [batch.to_pydict() for batch in rows.batches()]
[{'age': [31, None]}]
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyarrow import json as arrow_json

from driftquilt.data.column_types import common_type, fit_columns
from driftquilt.data.csv_files import TypesChanged, refuse_bad_byte
from driftquilt.data.source import BLOCK, ByteSource
from driftquilt.errors import InputError
from driftquilt.text import one_line

_DATES = (pa.date32(), pa.timestamp("us"), pa.timestamp("us", "UTC"))
_WORDS = {bool: "a boolean", str: "text", int: "a number", float: "a number"}


class JsonRows:
    """The rows of one file; the types of its columns are detected while reading."""

    def __init__(self, source: ByteSource) -> None:
        self.source = source
        self.notes: list[str] = []
        self._types: dict[str, Any] = {}
        _refuse_array(source)
        for first_line, block in self._blocks():
            self._update_types(self._parse(first_line, block))
            break

    @property
    def schema(self) -> Any:
        return pa.schema(self._types)

    def batches(self) -> Iterator[Any]:
        """Yield all rows, in order; raise `TypesChanged` after a type was widened or a key new."""
        for first_line, block in self._blocks():
            table = self._parse(first_line, block)
            if self._update_types(table):
                raise TypesChanged
            columns = fit_columns(table, self.schema)
            yield from pa.table(columns, schema=self.schema).to_batches()

    def _blocks(self) -> Iterator[tuple[int, bytes]]:
        """Yield whole lines, some at a time, and the number of the first."""
        line, rest = 1, b""
        with self.source.text() as file:
            while data := file.read(BLOCK):
                head, newline, tail = data.rpartition(b"\n")
                if not newline:
                    rest += tail
                    continue
                block, rest = rest + head + newline, tail
                if block.strip():
                    yield line, block
                line += block.count(b"\n")
            if rest.strip():
                yield line, rest

    def _parse(self, first_line: int, block: bytes) -> Any:
        """Return the block as a table, its strings still strings."""
        texts = [name for name, kind in self._types.items() if kind in (*_DATES, pa.string())]
        try:
            block.decode()
            table = _read_json(block, texts)
            stamps = [f.name for f in table.schema if pa.types.is_timestamp(f.type)]
            if stamps:
                table = _read_json(block, [*texts, *stamps]).select(table.column_names)
        except UnicodeDecodeError:
            refuse_bad_byte(self.source)
            raise
        except pa.ArrowInvalid as error:
            self._explain(first_line, block)
            raise InputError(f"{self.source.name}: {one_line(error)}") from error
        if any(map(pa.types.is_nested, table.schema.types)):
            self._explain(first_line, block)
        return table

    def _update_types(self, table: Any) -> bool:
        """Take in the types of a block; return whether that changed any."""
        before = dict(self._types)
        for name in table.column_names:
            known = self._types.get(name, pa.null())
            new = _type_of(table[name], known)
            both = common_type(known, new)
            self._types[name] = pa.string() if both is None else both
            if both is None:
                self._refuse_mixture(name, known, new)
                self.notes.append(
                    f"{self.source.name}: column {name!r} is read as text, not {known}, because "
                    "some of it is not a date"
                )
        return before != self._types

    def _refuse_mixture(self, name: str, known: Any, new: Any) -> None:
        if {known, new} <= {*_DATES, pa.string()}:
            return
        raise InputError(
            f"{self.source.name}: column {name!r} holds {known} first and {new} later; make it "
            "the same in every line"
        )

    def _explain(self, first_line: int, block: bytes) -> None:
        """Raise what is wrong, with its line, if a plain reading of the lines finds it."""
        first: dict[str, tuple[int, str]] = {}
        for number, line in enumerate(block.decode("utf-8-sig").split("\n"), start=first_line):
            if not line.strip():
                continue
            where = f"{self.source.name}, line {number}"
            for name, value in _load(where, line).items():
                if value is None:
                    continue
                word = _describe(where, name, value)
                at, before = first.setdefault(name, (number, word))
                if word != before:
                    raise InputError(
                        f"{where}: column {name!r} is {word}, but {before} in line {at}; make it "
                        "the same in every line"
                    )


def _refuse_array(source: ByteSource) -> None:
    if source.text_head(512).lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"["):
        raise InputError(
            f"{source.name} is a JSON array, not JSON lines; write one object such as {{...}} per "
            "line, as jq -c '.[]' does"
        )


def _read_json(block: bytes, texts: list[str]) -> Any:
    return arrow_json.read_json(
        pa.BufferReader(block),
        arrow_json.ReadOptions(block_size=max(len(block), 1024)),
        arrow_json.ParseOptions(explicit_schema=pa.schema([(name, pa.string()) for name in texts])),
    )


def _type_of(column: Any, known: Any) -> Any:
    """Return the type of a column: of strings, the type of date that all of them are, if any."""
    if not pa.types.is_string(column.type):
        return column.type
    if column.null_count == len(column):
        return pa.null()
    for kind in _DATES if known != pa.string() else ():
        try:
            column.cast(kind)
        except pa.ArrowInvalid:
            continue
        return kind
    return column.type


def _load(where: str, line: str) -> dict[str, Any]:
    try:
        record = json.loads(line)
    except json.JSONDecodeError as error:
        if line.lstrip().startswith("{") and error.pos >= len(line.rstrip()):
            raise InputError(
                f"{where} is not valid JSON: it ends inside an object; write each object on one "
                "line, as jq -c . does"
            ) from error
        raise InputError(f"{where} is not valid JSON: {error.msg}; correct or drop it") from error
    if not isinstance(record, dict):
        raise InputError(f"{where} is not an object; write one object such as {{...}} per line")
    return record


def _describe(where: str, name: str, value: Any) -> str:
    if type(value) not in _WORDS:
        raise InputError(
            f"{where}: column {name!r} is nested ({type(value).__name__}); give each of its values "
            f"a key of its own, or remove it, as jq -c 'del(.[{json.dumps(name)}])' does"
        )
    return _WORDS[type(value)]
