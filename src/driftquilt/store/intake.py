"""Batches come in: each is checked against the columns so far and becomes bytes.

Both stores hold their open rows this way, so they take and refuse the same batches. Bytes are a
copy: what a caller does to its arrays afterwards changes nothing here.

>>> import pyarrow as pa
>>> intake = Intake({})
>>> pieces, new = intake.take(pa.record_batch({"age": [20, 40]}), n_before=0)
>>> new.number, intake.schema.names
(1, ['age'])
>>> more, new = intake.take(pa.record_batch({"age": [0.5]}), n_before=2)
>>> intake.table(pieces + more, n_before=0)["age"].to_pylist()
[20.0, 40.0, 0.5]
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from driftquilt.errors import InputError
from driftquilt.store.batches import Layout, Piece, decode
from driftquilt.store.columns import gather, plain, unify

__all__ = ["Intake"]


class Intake:
    """The columns so far; `layouts` are those of the open segment, and 0 for all before it."""

    def __init__(self, layouts: dict[int, Layout]) -> None:
        self._layouts = dict(layouts)
        self._by_schema = {_key(found.schema): found for n, found in layouts.items() if n}
        self._given: pa.Schema | None = None  # of the last batch that could be taken as it was
        self._latest: Layout | None = None
        self.columns = pa.schema([])
        for layout in self._layouts.values():
            self.columns = unify(self.columns, layout.schema)

    @property
    def schema(self) -> pa.Schema:
        """Of the open rows."""
        schema = pa.schema([])
        for number, layout in self._layouts.items():
            schema = unify(schema, layout.schema) if number else schema
        return schema

    def take(self, batch: pa.RecordBatch, n_before: int) -> tuple[list[Piece], Layout | None]:
        """The batch as bytes, and its layout if that is new; `InputError` changes nothing."""
        if not isinstance(batch, pa.RecordBatch):
            raise InputError(
                f"a store takes a pyarrow.RecordBatch, not {type(batch).__name__}; make one with "
                "pyarrow.record_batch"
            )
        if self._latest is not None and batch.schema.equals(self._given):
            return self._latest.encode(batch, n_before), None
        fitting = plain(batch)
        known = self._by_schema.get(_key(fitting.schema))
        layout = known or Layout(1 + max(self._layouts, default=0), fitting.schema)
        columns = self.columns if known else unify(self.columns, layout.schema)
        pieces = layout.encode(fitting, n_before)
        self._remember(layout, columns)
        self._latest, self._given = layout, batch.schema
        if batch.schema.types != fitting.schema.types:  # categories: to be decoded every time
            self._latest = None
        return pieces, None if known else layout

    def rows(self, pieces: Iterable[Piece], n_before: int) -> Iterator[pa.RecordBatch]:
        """The rows of the pieces under one schema, in large batches."""
        return gather(decode(pieces, self._layouts, n_before), self.schema)

    def table(self, pieces: Iterable[Piece], n_before: int) -> pa.Table:
        return pa.Table.from_batches(self.rows(pieces, n_before), self.schema)

    def after_seal(self) -> Intake:
        """For the next segment, which has to get on with the columns so far."""
        return Intake({0: Layout(0, self.columns)})

    def _remember(self, layout: Layout, columns: pa.Schema) -> None:
        self._layouts[layout.number] = layout
        self._by_schema[_key(layout.schema)] = layout
        self.columns = columns


def _key(schema: pa.Schema) -> bytes:
    key: bytes = schema.serialize().to_pybytes()
    return key
