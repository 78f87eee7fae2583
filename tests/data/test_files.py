"""Whatever holds the rows, the table is the same; what cannot be read is refused with a remedy."""

from __future__ import annotations

import gzip
import io
import json
import os
import sys
import tempfile
from collections.abc import Iterator
from datetime import date, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyarrow import csv, ipc
from pyarrow import parquet as pq

from driftquilt.data.files import open_data, write_table
from driftquilt.data.source import check_room
from driftquilt.errors import InputError

KINDS = {
    "whole": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "part": (pa.float64(), st.floats(allow_nan=False, allow_infinity=False)),
    "word": (pa.string(), st.from_regex(r"w[^\0\r]{0,9}", fullmatch=True)),
    "yes": (pa.bool_(), st.booleans()),
    "day": (pa.date32(), st.dates(date(1900, 1, 1), date(2200, 1, 1))),
    "at": (
        pa.timestamp("us"),
        st.datetimes(datetime(1900, 1, 1), datetime(2200, 1, 1)),
    ),
}
FIRST = {
    "whole": 7,
    "part": 0.5,
    "word": "w",
    "yes": True,
    "day": date(2024, 5, 1),
    "at": datetime(2024, 5, 1, 10, 30, 0, 250_000),
}


@st.composite
def tables(draw: st.DrawFn) -> Any:
    """Rows of every kind, some missing; the first is whole, so that kinds can be told."""
    row = st.fixed_dictionaries({name: st.none() | kind for name, (_, kind) in KINDS.items()})
    schema = pa.schema({name: kind for name, (kind, _) in KINDS.items()})
    return pa.Table.from_pylist([FIRST, *draw(st.lists(row, max_size=12))], schema)


def save(table: Any, path: Path) -> Path:
    data, chunk = io.BytesIO(), max(5, table.num_rows // 9)
    suffix = path.name.removesuffix(".gz").rpartition(".")[2]
    if suffix in ("csv", "tsv"):
        csv.write_csv(table, data, csv.WriteOptions(delimiter="\t" if suffix == "tsv" else ","))
    elif suffix == "parquet":
        pq.write_table(table, data, row_group_size=chunk)
    elif suffix == "jsonl":
        lines = [json.dumps(row, default=str, ensure_ascii=False) for row in table.to_pylist()]
        data.write("\n".join(lines).encode())
    else:
        opener = ipc.new_stream if suffix == "arrows" else ipc.new_file
        packing = ipc.IpcWriteOptions(compression="zstd" if suffix == "feather" else None)
        with opener(data, table.schema, options=packing) as writer:
            writer.write_table(table, max_chunksize=chunk)
    packed = path.name.endswith(".gz")
    path.write_bytes(gzip.compress(data.getvalue()) if packed else data.getvalue())
    return path


FORMATS = ("csv", "tsv", "parquet", "jsonl", "arrow", "arrows", "feather")
SUFFIXES = (*FORMATS, *(f"{name}.gz" for name in FORMATS))


@pytest.mark.parametrize("suffix", SUFFIXES)
@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(table=tables())
def test_every_format_gives_the_same_table(suffix: str, tmp_path: Path, table: Any) -> None:
    with open_data([save(table, tmp_path / f"rows.{suffix}")]) as data:
        assert data.table.schema.types == table.schema.types
        assert data.table.to_pylist() == table.to_pylist()
        assert data.notes == ()


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_standard_input_tells_its_format_by_its_first_bytes(
    suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = pa.Table.from_pylist([FIRST] * 3)
    pipe = io.BytesIO(save(table, tmp_path / f"x.{suffix}").read_bytes())
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=pipe))
    with open_data(["-"]) as data:
        assert data.table.to_pylist() == table.to_pylist()


def test_a_named_pipe_is_read_like_a_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "rows.csv")
    if not (child := os.fork()):
        (tmp_path / "rows.csv").write_text("a,b\n1,2\n")
        os._exit(0)
    with open_data([tmp_path / "rows.csv"]) as data:
        assert data.table.to_pydict() == {"a": [1], "b": [2]}
    os.waitpid(child, 0)


@pytest.mark.parametrize("suffix", ["arrow", "arrows"])
def test_an_arrow_file_is_mapped_where_it_lies(
    suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = pa.table({"a": range(10_000), "b": ["x"] * 10_000})
    paths = [save(table, tmp_path / f"{n}.{suffix}") for n in (1, 2)]
    monkeypatch.setattr(tempfile, "tempdir", "/nowhere")  # nothing is converted
    before = pa.total_allocated_bytes()
    with open_data(paths) as data:
        assert data.table == pa.concat_tables([table, table])
        assert pa.total_allocated_bytes() - before < 10_000
        maps = Path("/proc/self/maps").read_text()
        assert all(str(path) in maps for path in paths)


def test_categories_decimals_and_views_are_converted_to_plain_columns(tmp_path: Path) -> None:
    table = pa.table({
        "code": pa.array(["x", "y", "x"]).dictionary_encode(),
        "price": pa.array([1, 2, None]).cast(pa.decimal128(21, 2)),
        "view": pa.array(["u", None, "v"], pa.string_view()),
    })  # fmt: skip
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=1)
    save(table.drop_columns("code"), tmp_path / "b.arrow")
    with open_data([tmp_path / "a.parquet", tmp_path / "b.arrow"]) as data:
        assert data.table.schema.types == [pa.string(), pa.float64(), pa.string()]
        assert data.table["code"].to_pylist() == ["x", "y", "x", None, None, None]
        assert data.table["price"].to_pylist() == [1.0, 2.0, None] * 2


def test_several_files_make_one_table_by_name(tmp_path: Path) -> None:
    (tmp_path / "day10.csv").write_text("b,a\nx,1\n")
    (tmp_path / "day9.jsonl").write_text('{"a": 0.5, "c": true}\n')
    pq.write_table(pa.table({"a": pa.array([3], pa.int32())}), tmp_path / "day1.parquet")
    with open_data([f"{tmp_path}/day*"]) as data:
        assert data.table.to_pylist() == [
            {"a": 3.0, "c": None, "b": None},
            {"a": 0.5, "c": True, "b": None},
            {"a": 1.0, "c": None, "b": "x"},
        ]
    order, *rest = data.notes
    assert order.startswith("3 files, in this order: ")
    assert order.index("day1.parquet") < order.index("day9.jsonl") < order.index("day10.csv")
    assert [note.split(": ")[0] for note in rest[:2]] == ["column 'a' is read as double"] * 2
    assert [note.split(" in ")[0] for note in rest[2:]] == [
        "column 'c' is missing",
        "column 'b' is missing",
    ]


def test_text_in_one_file_and_numbers_in_another_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x,y\n1,2\n")
    (tmp_path / "b.csv").write_text("x,y\n1,two\n")
    with (
        pytest.raises(InputError, match=r"column 'y' is int64 in .*a.csv and string in .*b.csv"),
        open_data([tmp_path / "a.csv", tmp_path / "b.csv"]),
    ):
        pass


def test_arrow_files_of_different_columns_are_converted(tmp_path: Path) -> None:
    save(pa.table({"x": [1]}), tmp_path / "a.arrow")
    save(pa.table({"x": [1.5], "y": ["z"]}), tmp_path / "b.arrow")
    with open_data([f"{tmp_path}/*.arrow"]) as data:
        assert data.table.to_pydict() == {"x": [1.0, 1.5], "y": [None, "z"]}


def test_a_file_without_rows_may_stand_among_others(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x,y\n")
    (tmp_path / "b.csv").write_text("x,y\n1,two\n")
    with open_data([tmp_path / "a.csv", tmp_path / "b.csv"]) as data:
        assert data.table.to_pydict() == {"x": [1], "y": ["two"]}


def test_the_watcher_sees_reading_come_to_its_end(tmp_path: Path) -> None:
    table = pa.table({"x": range(9000), "y": [0.25] * 9000})
    for suffix in ("csv", "csv.gz", "parquet", "jsonl", "feather"):
        path = save(table, tmp_path / f"rows.{suffix}")
        seen: list[tuple[int, int]] = []
        with open_data([path], watch=lambda *step, seen=seen: seen.append(step)):
            pass
        done, totals = zip(*seen, strict=True)
        assert set(totals) == {path.stat().st_size}
        assert list(done) == sorted(done)
        assert done[-1] >= 0.9 * totals[0]


@pytest.mark.parametrize("stop", [KeyboardInterrupt, RuntimeError])
@pytest.mark.parametrize("suffix", ["csv", "parquet", "jsonl.gz", "parquet.gz"])
def test_nothing_is_left_when_reading_is_interrupted(
    suffix: str, stop: type[BaseException], tmp_path: Path
) -> None:
    path = save(pa.table({"x": range(100)}), tmp_path / f"rows.{suffix}")

    def watch(*_: int) -> None:
        raise stop

    with pytest.raises(stop), open_data([path], watch=watch):
        pass


def test_nothing_is_left_when_the_work_fails(tmp_path: Path) -> None:
    path = save(pa.table({"x": range(100)}), tmp_path / "rows.csv")
    with pytest.raises(KeyboardInterrupt), open_data([path]):
        raise KeyboardInterrupt


def test_a_table_outlives_its_opening(tmp_path: Path) -> None:
    with open_data([save(pa.table({"x": range(100)}), tmp_path / "rows.csv")]) as data:
        table = data.table
    del data
    assert table["x"].to_pylist() == list(range(100))


def write_batches(path: Path, batches: list[Any]) -> Path:
    with ipc.new_file(path, batches[0].schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
    return path


def test_an_arrow_file_of_categories_without_rows_is_refused(tmp_path: Path) -> None:
    schema = pa.schema({"shop": pa.dictionary(pa.int8(), pa.string())})
    with ipc.new_file(tmp_path / "none.arrow", schema):
        pass
    with pytest.raises(InputError, match="columns but no rows"):
        open_data([tmp_path / "none.arrow"]).__enter__()


def test_categories_that_differ_from_file_to_file_become_plain_text(tmp_path: Path) -> None:
    paths, texts = [], []
    for number in range(3):
        words = [f"{number}-{k}" for k in range(90)]
        shop = pa.array(words).dictionary_encode().cast(pa.dictionary(pa.int8(), pa.string()))
        paths.append(write_batches(tmp_path / f"{number}.arrow", [pa.record_batch({"shop": shop})]))
        texts += words
    with open_data(paths) as data:
        assert data.table["shop"].to_pylist() == texts
        assert data.table["shop"].type == pa.string()


@pytest.mark.parametrize("column", ["word", "code"])
@pytest.mark.parametrize("suffix", ["arrow", "arrows"])
def test_values_that_point_nowhere_are_refused_before_anybody_follows_them(
    column: str, suffix: str, tmp_path: Path
) -> None:
    words = pa.array([f"word {k}" for k in range(50)])
    batch = pa.record_batch({"word": words, "code": words.dictionary_encode()})
    path = tmp_path / f"rows.{suffix}"
    with (ipc.new_file if suffix == "arrow" else ipc.new_stream)(path, batch.schema) as writer:
        writer.write_batch(batch)
    values = batch["code"].indices if column == "code" else batch["word"]
    places = values.buffers()[1].to_pybytes()[: 4 * 40]
    content = path.read_bytes()
    at = content.rindex(places) + 4 * 20
    path.write_bytes(content[:at] + (10**9).to_bytes(4, "little") + content[at + 4 :])
    with pytest.raises(InputError, match=f"rows.{suffix} is damaged: "), open_data([path]):
        pass


TABLE = pa.table({"x": range(1000), "y": [f"w{n}" for n in range(1000)]})


def refusal(*paths: Path | str) -> str:
    with pytest.raises(InputError) as caught, open_data(paths):
        pass
    message = str(caught.value)
    assert message.count("\n") <= 1
    return message


@pytest.mark.parametrize("name", ["a.csv", "a.parquet", "a.arrow", "a.jsonl", "a.csv.gz"])
def test_an_empty_file_is_refused(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(gzip.compress(b"") if name.endswith("gz") else b"")
    assert f"{name} is empty; give a file with rows" in refusal(tmp_path / name)


@pytest.mark.parametrize("suffix", ["csv", "parquet", "arrow", "arrows", "feather"])
def test_columns_without_rows_are_refused(suffix: str, tmp_path: Path) -> None:
    path = save(TABLE.slice(0, 0), tmp_path / f"a.{suffix}")
    assert "columns but no rows" in refusal(path)


def test_an_unknown_suffix_is_refused_with_those_that_are_known(tmp_path: Path) -> None:
    for name in ("a.xlsx", "a", "a.gz"):
        (tmp_path / name).write_text("x,y\n1,2\n")
        assert "unknown format; known are .csv, .tsv, .parquet" in refusal(tmp_path / name)


def test_the_first_bytes_count_more_than_the_suffix(tmp_path: Path) -> None:
    save(TABLE, tmp_path / "a.parquet").rename(tmp_path / "a.csv")
    with open_data([tmp_path / "a.csv"]) as data:
        assert data.table == TABLE


@pytest.mark.parametrize("suffix", ["parquet", "arrow", "arrows", "feather", "csv.gz"])
@pytest.mark.parametrize("share", [0.02, 0.5, 0.9])
def test_a_file_that_was_cut_short_is_refused(suffix: str, share: float, tmp_path: Path) -> None:
    path = save(TABLE, tmp_path / f"a.{suffix}")
    data = path.read_bytes()
    path.write_bytes(data[: int(share * len(data))])
    found = refusal(path)
    assert f"a.{suffix}" in found
    assert "fetch it again" in found


@pytest.mark.parametrize("suffix", ["parquet", "arrow", "feather"])
def test_a_file_that_is_something_else_is_refused(suffix: str, tmp_path: Path) -> None:
    (tmp_path / f"a.{suffix}").write_bytes(b"<html>not found</html>" * 50)
    assert f"a.{suffix} cannot be read: " in refusal(tmp_path / f"a.{suffix}")


def test_a_damaged_column_of_parquet_is_refused(tmp_path: Path) -> None:
    pq.write_table(TABLE, path := tmp_path / "a.parquet", compression="zstd")
    data = bytearray(path.read_bytes())
    data[4:100] = bytes(96)
    path.write_bytes(data)
    assert "a.parquet cannot be read: " in refusal(path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.csv").touch(mode=0)
    assert "cannot be read: permission denied" in refusal(tmp_path / "a.csv")


def test_standard_input_stands_alone_and_is_not_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "- is standard input" in refusal("-", "a.csv")
    for data, said in ((b"", "is empty"), (b"PK\3\4\0\0", "has an unknown format")):
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(data)))
        assert f"standard input {said}" in refusal("-")


def test_a_lack_of_room_is_seen_from_the_first_rows_on() -> None:
    check_room(written=10**9, share=0.5, free=10**9)
    with pytest.raises(InputError, match=r"4.0 GB .* 1.9 GB; set TMPDIR"):
        check_room(written=10**9, share=0.25, free=9 * 10**8)


def test_a_temporary_folder_that_cannot_be_used_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = save(TABLE, tmp_path / "a.csv")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
    assert "the folder for temporary files cannot be used" in refusal(path)


WORDS = pa.table({"x": [1, None, 3], "word": ["a", 'b"\n,', None]})


@pytest.mark.parametrize("name", ["out.csv", "out.parquet", "out.PQ"])
def test_what_is_written_can_be_read_again(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(b"what was there before")
    assert write_table(WORDS.to_batches(max_chunksize=2), path) == 3
    with open_data([path]) as data:
        assert data.table.to_pylist() == WORDS.to_pylist()
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("stop", [KeyboardInterrupt, InputError, OSError])
@pytest.mark.parametrize("name", ["out.csv", "out.parquet"])
def test_nothing_half_written_is_left(name: str, stop: type[BaseException], tmp_path: Path) -> None:
    def batches() -> Iterator[Any]:
        yield from WORDS.to_batches()
        raise stop

    path = tmp_path / name
    path.write_bytes(b"what was there before")
    with pytest.raises(InputError if stop is OSError else stop):
        write_table(batches(), path)
    assert path.read_bytes() == b"what was there before"
    assert list(tmp_path.iterdir()) == [path]


def test_others_may_read_the_file_as_the_user_has_it(tmp_path: Path) -> None:
    (tmp_path / "like.csv").touch()
    write_table(WORDS.to_batches(), tmp_path / "out.csv")
    assert (tmp_path / "out.csv").stat().st_mode == (tmp_path / "like.csv").stat().st_mode


def test_a_refusal_of_the_system_names_the_file_and_no_draft(tmp_path: Path) -> None:
    (tmp_path / "taken").touch()
    for path in (tmp_path / "taken" / "out.csv", tmp_path / "nowhere" / "out.csv"):
        with pytest.raises(InputError) as caught:
            write_table(WORDS.to_batches(), path)
        assert str(caught.value).startswith(f"cannot write {path}: ")
        assert "tmp" not in str(caught.value).removeprefix(f"cannot write {path}")


def test_a_path_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"suffix.*.parquet, .pq, .csv"):
        write_table(WORDS.to_batches(), tmp_path / "out.xlsx")
    with pytest.raises(InputError, match=r"cannot write .*nowhere.*No such file"):
        write_table(WORDS.to_batches(), tmp_path / "nowhere" / "out.csv")
    with pytest.raises(InputError, match="nothing to write"):
        write_table([], tmp_path / "out.csv")
    assert list(tmp_path.iterdir()) == []
