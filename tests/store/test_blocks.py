"""Batches become bytes and come back the same, packed or not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from driftquilt.errors import InputError
from driftquilt.store import rows as store_rows
from driftquilt.store.rows import BlockLayout, RowBlock, decode

NUMBERS = pa.schema({"x": pa.float32(), "small": pa.int8(), "y": pa.int64()})


def some(n_rows: int, first: int = 0, *, gap: bool = False) -> pa.RecordBatch:
    ids = np.arange(first, first + n_rows)
    small = [None if gap and k == 0 else int(v % 100) for k, v in enumerate(ids)]
    columns = [pa.array(ids.astype(np.float32)), pa.array(small, pa.int8()), pa.array(ids)]
    return pa.RecordBatch.from_arrays(columns, schema=NUMBERS)


@given(st.lists(st.tuples(st.integers(1, 40), st.booleans()), max_size=30))
def test_pieces_of_any_sizes_come_back_as_they_were(sizes: list[tuple[int, bool]]) -> None:
    layout, pieces, given_rows, n = BlockLayout(1, NUMBERS), list[RowBlock](), list[Any](), 5
    for n_rows, gap in sizes:
        batch = some(n_rows, n, gap=gap)
        (piece,) = layout.encode(batch, n)
        assert piece.packed is not gap
        pieces.append(piece)
        given_rows += batch.to_pylist()
        n += n_rows
    assert [row for b in decode(pieces, {1: layout}, 5) for row in b.to_pylist()] == given_rows


def test_thousands_of_single_rows_come_back_as_few_batches() -> None:
    layout = BlockLayout(1, NUMBERS)
    pieces = [layout.encode(some(1, n), n)[0] for n in range(20_000)]
    found = list(decode(pieces, {1: layout}, 0))
    assert len(found) == 2
    assert np.concatenate([batch["y"].to_numpy() for batch in found]).tolist() == list(
        range(20_000)
    )


def test_a_row_of_ten_floats_takes_88_bytes() -> None:
    schema = pa.schema([(f"x{k}", pa.float32()) for k in range(10)] + [("y", pa.int64())])
    row = pa.RecordBatch.from_pylist([dict.fromkeys(schema.names, 1)], schema=schema)
    (piece,) = BlockLayout(1, schema).encode(row, 0)
    assert len(piece.data) == 88


def test_a_batch_without_rows_is_no_piece() -> None:
    assert BlockLayout(1, NUMBERS).encode(some(0), 7) == []


@pytest.mark.parametrize("gap", [False, True])
def test_a_flipped_bit_is_found_before_it_is_read(*, gap: bool) -> None:
    layout = BlockLayout(1, NUMBERS)
    first, second = layout.encode(some(3), 10)[0], layout.encode(some(2, gap=gap), 13)[0]
    data = bytearray(second.data)
    data[-1] ^= 1
    with pytest.raises(ValueError, match="rows 13 to 14"):
        list(decode([first, second._replace(data=bytes(data))], {1: layout}, 10))


@pytest.mark.parametrize("gap", [False, True])
def test_a_missing_batch_is_found(*, gap: bool) -> None:
    layout = BlockLayout(1, NUMBERS)
    second = layout.encode(some(2, gap=gap), 13)[0]
    with pytest.raises(ValueError, match="some open rows are missing"):
        list(decode([second], {1: layout}, 10))
    with pytest.raises(ValueError, match="schema 1 of open rows"):
        list(decode([second], {}, 13))


def test_large_batches_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_rows, "_LARGEST", 2000)
    layout = BlockLayout(1, NUMBERS)
    pieces = layout.encode(some(1000), 0)
    assert len(pieces) == 8
    rows = [row for batch in decode(pieces, {1: layout}, 0) for row in batch.to_pylist()]
    assert rows == some(1000).to_pylist()
    monkeypatch.setattr(store_rows, "_LARGEST", 100)
    with pytest.raises(InputError, match="row 4 takes more than 0 MiB"):
        layout.encode(some(1), 4)
