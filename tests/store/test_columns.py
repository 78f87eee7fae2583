"""Columns may come, go and widen; numbers stay numbers and text stays text."""

from __future__ import annotations

import math
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from driftquilt.errors import InputError
from driftquilt.store import Store
from driftquilt.store import rows as store_rows
from driftquilt.store.disk import DiskStore
from driftquilt.store.memory import MemoryStore
from driftquilt.store.rows import fit, gather, plain, unify

NUMBERS = [pa.bool_(), pa.float16(), pa.float32(), pa.float64()]
NUMBERS += [pa.int8(), pa.int16(), pa.int32(), pa.int64()]
NUMBERS += [pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()]


def both(a: Any, b: Any) -> Any:
    return unify(pa.schema({"x": a}), pa.schema({"x": b})).field("x").type


def limits(kind: Any) -> list[float]:
    if kind == pa.bool_():
        return [False, True]
    dtype = np.dtype(kind.to_pandas_dtype())
    info: Any = np.iinfo(dtype) if dtype.kind in "iu" else np.finfo(dtype)
    return [info.min.item() if dtype.kind == "f" else int(info.min), dtype.type(1).item()]


@pytest.mark.parametrize("a", NUMBERS, ids=str)
@pytest.mark.parametrize("b", NUMBERS, ids=str)
def test_two_kinds_of_numbers_have_one_that_holds_both(a: Any, b: Any) -> None:
    wide = both(a, b)
    assert wide == both(b, a)
    for kind in (a, b):
        values = limits(kind)
        array = np.array(values, dtype=bool if kind == pa.bool_() else kind.to_pandas_dtype())
        column = fit(pa.record_batch({"x": pa.array(array)}), pa.schema({"x": wide}))["x"]
        for before, after in zip(values, column.to_pylist(), strict=True):
            assert math.isclose(before, after, rel_tol=1e-15)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (pa.int64(), pa.string()),
        (pa.bool_(), pa.string()),
        (pa.timestamp("s"), pa.timestamp("ns")),
        (pa.date32(), pa.int32()),
        (pa.binary(), pa.string()),
    ],
)
def test_what_cannot_be_both_is_refused(a: Any, b: Any) -> None:
    with pytest.raises(InputError, match=r"column 'x' holds"):
        both(a, b)


def test_columns_that_come_and_go_are_null_elsewhere(store: Store) -> None:
    store.append(pa.record_batch({"a": [1], "b": [10]}))
    store.append(pa.record_batch({"b": [20.5], "c": ["word"]}))
    store.append(pa.record_batch({"c": pa.array([None], pa.null()), "a": [3]}))
    expected = [
        {"a": 1, "b": 10.0, "c": None},
        {"a": None, "b": 20.5, "c": "word"},
        {"a": 3, "b": None, "c": None},
    ]
    assert store.open_rows().to_pylist() == expected
    store.seal()
    assert store.read(1).to_pylist() == expected


def test_a_column_that_turns_to_text_is_refused_and_leaves_the_store_unharmed(
    tmp_path: Path,
) -> None:
    path = tmp_path / "store"
    with DiskStore(path) as store:
        store.append(pa.record_batch({"age": [20]}), {"position": 1})
        with pytest.raises(InputError, match=r"'age' holds text \(string\) now and held numbers"):
            store.append(pa.record_batch({"age": ["old"], "new": [1]}), {"position": 2})
        assert store.append(pa.record_batch({"age": [0.5], "new": ["a word"]})) == 2
        assert store.state == {"position": 1}
    with DiskStore(path) as store:
        assert store.open_rows().to_pylist() == [
            {"age": 20.0, "new": None},
            {"age": 0.5, "new": "a word"},
        ]


def test_a_column_keeps_its_kind_over_seals_and_openings(tmp_path: Path) -> None:
    path = tmp_path / "store"
    with DiskStore(path) as store:
        store.append(pa.record_batch({"age": [20], "city": ["Rome"]}))
        store.seal()
        store.drop(1)
    with DiskStore(path) as store:
        with pytest.raises(InputError, match="'city' holds numbers"):
            store.append(pa.record_batch({"city": [7]}))
        store.append(pa.record_batch({"age": [0.5]}))
        assert store.open_rows().column_names == ["age"]


def test_categories_are_kept_as_their_values() -> None:
    store = MemoryStore()
    for words in (["a", "b", "a"], ["c"], ["a", None]):
        store.append(pa.record_batch({"word": pa.array(words).dictionary_encode()}))
    store.append(pa.record_batch({"word": ["plain"]}))
    assert store.open_rows()["word"].to_pylist() == ["a", "b", "a", "c", "a", None, "plain"]
    inside = pa.array([["a"]], pa.list_(pa.dictionary(pa.int8(), pa.string())))
    with pytest.raises(InputError, match="column 'words'"):
        plain(pa.record_batch({"words": inside}))


def test_all_kinds_of_values_come_back(tmp_path: Path) -> None:
    batch = pa.record_batch(
        {
            "bool": [True, None],
            "bytes": [b"\0\xff", b""],
            "list": [[1, 2], None],
            "struct": [{"a": 1}, {"a": None}],
            "time": pa.array([0, 2**62], pa.timestamp("ns", tz="UTC")),
            "nan": [math.nan, math.inf],
            "half": np.array([0.5, 2], np.float16),
        }
    )
    with DiskStore(tmp_path / "store") as store:
        store.append(batch)
        assert store.open_rows().equals(pa.Table.from_batches([batch])) is False  # NaN
        assert str(store.open_rows().to_pylist()) == str(batch.to_pylist())
        store.seal()
        assert store.read(1).schema == batch.schema
        assert str(store.read(1).to_pylist()) == str(batch.to_pylist())


def words(n_batches: int) -> list[pa.RecordBatch]:
    return [pa.record_batch({"word": ["x" * 100] * 3, "n": [k] * 3}) for k in range(n_batches)]


def test_rows_are_gathered_up_to_a_number_of_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    batches = words(10)
    (together,) = gather(batches, batches[0].schema)
    assert together.num_rows == 30
    monkeypatch.setattr(store_rows, "_MANY_BYTES", 2 * batches[0].nbytes)
    apart = list(gather(batches, batches[0].schema))
    assert [batch.num_rows for batch in apart] == [6] * 5
    assert pa.Table.from_batches(apart).equals(pa.Table.from_batches([together]))


@pytest.mark.parametrize("limit", ["_MANY_ROWS", "_MANY_BYTES"])
def test_a_segment_of_several_pieces_comes_back_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    monkeypatch.setattr(store_rows, limit, 7)
    with DiskStore(tmp_path / "store") as store:
        for batch in words(5):
            store.append(batch)
        assert store.open_rows()["n"].to_pylist() == [k for k in range(5) for _ in range(3)]
        store.seal()
        assert store.read(1)["n"].to_pylist() == [k for k in range(5) for _ in range(3)]


KINDS = st.sampled_from([pa.int8(), pa.int64(), pa.float32(), pa.float64(), pa.string()])


@given(st.lists(st.dictionaries(st.sampled_from("abc"), KINDS, min_size=1), min_size=1))
def test_the_order_of_batches_decides_names_and_never_types(schemas: list[dict[str, Any]]) -> None:
    ways = [list(map(pa.schema, schemas)), list(map(pa.schema, reversed(schemas)))]
    try:
        forward = reduce(unify, ways[0])
    except InputError:
        with pytest.raises(InputError, match="column"):
            reduce(unify, ways[1])
        return
    backward = reduce(unify, ways[1])
    assert {f.name: f.type for f in forward} == {f.name: f.type for f in backward}
