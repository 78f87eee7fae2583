"""Several inputs as one table: columns go by name, and each has one kind in all of them.

A column that some inputs lack is missing there. Whole numbers and fractions become fractions;
text in one input and numbers in another are refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol

import pyarrow as pa

from driftquilt.data.kinds import cast, join, kept
from driftquilt.data.names import check_names, unnamed
from driftquilt.data.raw import Source, one_line
from driftquilt.errors import InputError
from driftquilt.text import listing

__all__ = ["Reader", "fitted", "pieces", "unite"]

_PIECE = 32 << 20  # bytes; fewer and longer pieces are faster to find rows in


class Reader(Protocol):
    """The rows of one input; `schema` may widen while they are read."""

    source: Source
    notes: list[str]

    @property
    def schema(self) -> Any: ...

    def batches(self) -> Iterator[Any]: ...


def unite(readers: Sequence[Reader]) -> tuple[Any, list[str]]:
    """The schema that holds the rows of all, and what the user should know of it."""
    kinds: dict[str, Any] = {}
    first: dict[str, str] = {}
    notes = []
    for reader in readers:
        where = reader.source.name
        names = check_names(where, reader.schema.names)
        notes += unnamed(where, reader.schema.names)
        for name, kind in zip(names, map(kept, reader.schema.types), strict=True):
            before = kinds.get(name, pa.null())
            both = join(before, kind)
            if both is None:
                raise InputError(
                    f"column {name!r} is {before} in {first[name]} and {kind} in {where}; make it "
                    "the same in both, or read them apart"
                )
            if kind not in (pa.null(), both) or before not in (pa.null(), both):
                notes.append(f"column {name!r} is read as {both}: {where} has {kind}")
            kinds[name] = both
            if not pa.types.is_null(kind):
                first.setdefault(name, where)
    return pa.schema(kinds), [*notes, *_lacking(readers, list(kinds))]


def fitted(reader: Reader, schema: Any) -> Iterator[Any]:
    """The batches of one input, with the columns and kinds of all."""
    names = check_names(reader.source.name, reader.schema.names)
    place = {name: number for number, name in enumerate(names)}
    for batch in reader.batches():
        columns = [_fit(reader, batch, place.get(field.name), field) for field in schema]
        yield pa.RecordBatch.from_arrays(columns, schema=schema)


def pieces(batches: Iterable[Any], n_bytes: int = _PIECE) -> Iterator[Any]:
    """The same rows in batches of about `n_bytes`."""
    waiting: list[Any] = []
    for batch in batches:
        waiting.append(batch)
        if sum(part.nbytes for part in waiting) >= n_bytes:
            yield from _one(waiting)
            waiting = []
    yield from _one(waiting)


def _one(batches: list[Any]) -> Iterator[Any]:
    if batches:
        yield from pa.Table.from_batches(batches).combine_chunks().to_batches()


def _fit(reader: Reader, batch: Any, place: int | None, field: Any) -> Any:
    if place is None:
        return pa.nulls(batch.num_rows, field.type)
    try:
        return cast(batch.column(place), field.type)
    except pa.ArrowInvalid as error:
        raise InputError(
            f"{reader.source.name}: column {field.name!r} cannot be read as {field.type}: "
            f"{one_line(error)}"
        ) from error


def _lacking(readers: Sequence[Reader], names: list[str]) -> list[str]:
    owners = [(reader.source.name, set(check_names("", reader.schema.names))) for reader in readers]
    notes = []
    for name in names:
        without = [where for where, own in owners if name not in own]
        if without:
            notes.append(f"column {name!r} is missing in {listing(without)}")
    return notes
