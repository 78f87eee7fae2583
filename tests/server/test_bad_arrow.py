"""Arrow bodies that are wrong, broken, or far larger than they look."""

from __future__ import annotations

import struct
from collections.abc import Callable

import pyarrow as pa
import pytest

from tests.server.attacked import ARROW, LABELS, MARK, PREDICT, Attacked

ROWS = pa.table({"age": [1.0, 2.0], "city": [MARK, "Rome"]})


def stream(table: pa.Table, compression: str | None = None, n_rows: int | None = None) -> bytes:
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write_table(table, max_chunksize=n_rows)
    return bytes(sink.getvalue().to_pybytes())


def replaced(table: pa.Table, old: bytes, new: bytes) -> bytes:
    """The stream with bytes in its buffers changed."""
    made = stream(table)
    assert made.count(old) == 1
    return made.replace(old, new)


def categories(indices: list[int | None], values: pa.Array) -> pa.Table:
    array = pa.DictionaryArray.from_arrays(pa.array(indices, pa.int32()), values)
    return pa.table({"age": pa.array([1.0] * len(indices)), "city": array})


def column(values: pa.Array) -> pa.Table:
    return pa.table({"age": values})


def many_batches() -> bytes:
    long = pa.array([MARK * 100_000])
    return stream(categories([0] * 900, long), n_rows=1)


def early_zstd(n_bytes: int) -> bytes:
    """One column of zeros, compressed in the way of Arrow 0.17."""
    packed = struct.pack("<q", n_bytes) + pa.compress(bytes(n_bytes), "zstd", asbytes=True)
    packed += bytes(-len(packed) % 8)
    values = pa.Array.from_buffers(pa.int8(), len(packed), [None, pa.py_buffer(packed)])
    batch = pa.record_batch([values], names=["age"])
    options = pa.ipc.IpcWriteOptions(metadata_version=pa.ipc.MetadataVersion.V4)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema, options=options) as writer:
        writer.write_batch(batch, custom_metadata={"ARROW:experimental_compression": "ZSTD"})
    return bytes(sink.getvalue().to_pybytes())


def with_metadata() -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, ROWS.schema) as writer:
        writer.write_batch(ROWS.to_batches()[0], custom_metadata={"a": MARK})
    return bytes(sink.getvalue().to_pybytes())


def nothing(n_rows: int) -> bytes:
    """A column that has a length and no values."""
    made = stream(column(pa.nulls(999)))
    return made.replace(struct.pack("<q", 999), struct.pack("<q", n_rows))


INT_FROM = struct.pack("<3i", 0, 13, 17)  # the offsets of ROWS's text
BAD: dict[str, tuple[int, Callable[[], bytes]]] = {
    "nothing": (400, lambda: b""),
    "JSON": (400, f'{{"rows": [{{"city": "{MARK}"}}]}}'.encode),
    "marks alone": (400, lambda: b"\xff" * 64),
    "zeros": (400, lambda: bytes(64)),
    "a file instead of a stream": (400, lambda: b"ARROW1\0\0" + stream(ROWS)),
    "a schema alone": (422, lambda: stream(ROWS.slice(0, 0))),
    "cut within the schema": (400, lambda: stream(ROWS)[:40]),
    "cut within a batch": (400, lambda: stream(ROWS)[:-40]),
    "without its first bytes": (400, lambda: stream(ROWS)[8:]),
    "a head of two gigabytes": (400, lambda: struct.pack("<Ii", 0xFFFFFFFF, 2**31 - 1) + b"x" * 99),
    "lz4": (422, lambda: stream(column(pa.array([0.0] * 900)), "lz4")),
    "zstd": (422, lambda: stream(column(pa.array([0.0] * 900)), "zstd")),
    "a bomb of lz4": (422, lambda: stream(column(pa.array([MARK * 100_000])), "lz4")),
    "a bomb of zstd": (422, lambda: stream(categories([0], pa.array([MARK * 10**6])), "zstd")),
    "zstd before version 1.0, a bomb": (422, lambda: early_zstd(1 << 28)),
    "a batch with metadata of its own": (422, with_metadata),
    "no columns": (422, lambda: stream(pa.table({}))),
    "infinity": (422, lambda: stream(column(pa.array([1.0, float("inf")])))),
    "a number beyond float32": (422, lambda: stream(column(pa.array([1e300])))),
    "a list": (422, lambda: stream(column(pa.array([[1.0]])))),
    "a struct": (422, lambda: stream(column(pa.array([{"a": MARK}])))),
    "bytes": (422, lambda: stream(column(pa.array([MARK.encode()])))),
    "a time": (422, lambda: stream(column(pa.array([0], pa.timestamp("s"))))),
    "a decimal": (422, lambda: stream(column(pa.array([1], pa.decimal128(5))))),
    "a view of text": (422, lambda: stream(column(pa.array([MARK], pa.string_view())))),
    "runs": (422, lambda: stream(column(pa.RunEndEncodedArray.from_arrays([900], [1.0])))),
    "categories of lists": (422, lambda: stream(categories([0], pa.array([[MARK]])))),
    "categories of nothing": (422, lambda: stream(categories([0], pa.nulls(10**7)))),
    "a category out of range": (
        400, lambda: replaced(
            categories([0x0BCDEF], pa.array(["a"] * 0x0BCDF0)),
            struct.pack("<i", 0x0BCDEF) + bytes(4), struct.pack("<i", 0x7FFFFFFF) + bytes(4),
        )
    ),
    "an offset out of range": (
        400, lambda: replaced(ROWS, INT_FROM, struct.pack("<3i", 0, 13, 2**30))
    ),
    "a negative offset": (400, lambda: replaced(ROWS, INT_FROM, struct.pack("<3i", -9, 13, 17))),
    "offsets that go back": (400, lambda: replaced(ROWS, INT_FROM, struct.pack("<3i", 0, 18, 17))),
    "bad UTF-8 in a name": (400, lambda: stream(column(pa.nulls(1))).replace(b"age", b"a\xffe")),
    "bad UTF-8": (400, lambda: replaced(ROWS, b"Rome", b"R\xff\xfee")),
    "two columns of a name": (
        422, lambda: stream(pa.Table.from_arrays([pa.array([1.0])] * 2, names=["age", "age"]))
    ),
    "too many rows": (413, lambda: stream(column(pa.array([1.0] * 1001)))),
    "rows of nothing without end": (413, lambda: nothing(2**60)),
    "too many columns": (
        422, lambda: stream(pa.table({f"{MARK}{k}": pa.array([True]) for k in range(10_001)}))
    ),
    "too many values of one bit": (
        413, lambda: stream(pa.table({f"{MARK}{k}": pa.array([True] * 1000) for k in range(2001)}))
    ),
    "too many batches": (422, lambda: stream(column(pa.array([1.0] * 101)), n_rows=1)),
    "a long category in a batch for each row": (422, many_batches),
    "a long category in each row": (
        413, lambda: stream(categories([0] * 1000, pa.array([MARK * 100_000])))
    ),
    "another kind of values": (422, lambda: stream(column(pa.array([MARK])))),
}  # fmt: skip

LABELLED: dict[str, tuple[int, Callable[[], bytes]]] = {
    "no label": (422, lambda: stream(ROWS)),
    "a label that is missing": (422, lambda: stream(ROWS.append_column("label", [["yes", None]]))),
    "a label that is a fraction": (422, lambda: stream(ROWS.append_column("label", [[0.5, 1.0]]))),
    "a label of 65 bits": (
        422, lambda: stream(ROWS.append_column("label", pa.array([1, 2**63], pa.uint64())))
    ),
    "a label of another kind": (422, lambda: stream(ROWS.append_column("label", [[1, 2]]))),
    "an id that is missing": (
        422, lambda: stream(pa.table({"id": [MARK, None], "label": ["a", "a"]}))
    ),
    "an id that is unknown": (404, lambda: stream(pa.table({"id": [MARK], "label": ["a"]}))),
    "ids that are numbers": (422, lambda: stream(pa.table({"id": [1.0], "label": [MARK]}))),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_a_bad_table_is_not_predicted(attacked: Attacked, name: str) -> None:
    status, make = BAD[name]
    attacked.expect_refusal(attacked.ask(PREDICT, make(), kind=ARROW), status)


@pytest.mark.parametrize("name", LABELLED)
def test_a_table_with_bad_labels_is_not_learned(attacked: Attacked, name: str) -> None:
    status, make = LABELLED[name]
    attacked.expect_refusal(attacked.ask(LABELS, make(), kind=ARROW), status)


def test_a_sound_table_is_predicted(attacked: Attacked) -> None:
    for table in (ROWS, categories([0, None, 1], pa.array(["Rome", "Oslo"]))):
        answer = attacked.ask(PREDICT, stream(table), f"Accept: {ARROW}", kind=ARROW)
        assert answer.status == 200
        assert pa.ipc.open_stream(answer.body).read_all().num_rows == table.num_rows
