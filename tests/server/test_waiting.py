"""Rows that wait for their labels outlive crashes and full disks, and are found by their ids."""

from __future__ import annotations

import tempfile
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from driftquilt.errors import StoreError
from driftquilt.server.waiting import CHUNK, WaitingRows
from driftquilt.server.waiting_file import WaitingFile
from tests.server.failing_disk import full_disk

JSON = "application/json"


def open_rows(folder: Path, state: dict[str, Any] | None = None, most: int = 10_000) -> WaitingRows:
    return WaitingRows(folder / "waiting", most, state or {})


def keep(waiting: WaitingRows, body: bytes, n_rows: int = 1) -> list[str]:
    ids = waiting.add(body, JSON, n_rows)
    waiting.write()
    return ids


def read(waiting: WaitingRows, row_id: str) -> tuple[bytes, int] | str:
    """The body that brought a row, and its place in it; or why it does not wait."""
    found = waiting.find(row_id)
    if isinstance(found, str):
        return found
    spot = waiting.locate(*found)
    body = waiting.read(spot)
    return "gone" if body is None else (body.content, spot.at)


def label(waiting: WaitingRows, state: dict[str, Any], *ids: str) -> None:
    """As a turn does: mark, make durable, say so."""
    for row_id in ids:
        found = waiting.find(row_id)
        assert not isinstance(found, str)
        state.update(waiting.mark(*found))
    waiting.settle()


def n_descriptors() -> int:
    return len([*Path("/proc/self/fd").iterdir()])


def files(folder: Path) -> list[Path]:
    return sorted((folder / "waiting").iterdir())


def test_an_id_finds_its_row_before_and_after_a_restart(tmp_path: Path) -> None:
    waiting = open_rows(tmp_path)
    first, second = keep(waiting, b"one", 2), keep(waiting, b"two")
    for opened in (waiting, open_rows(tmp_path)):
        assert read(opened, first[1]) == (b"one", 1)
        assert read(opened, second[0]) == (b"two", 0)
        assert opened.n_rows == 3
    waiting.close()


def test_ids_are_never_given_twice(tmp_path: Path) -> None:
    state: dict[str, Any] = {}
    seen: list[str] = []
    for _ in range(4):
        waiting = open_rows(tmp_path, state)
        ids = keep(waiting, b"rows", 3)
        label(waiting, state, *ids)
        seen += ids
        waiting.close()
    assert len(set(seen)) == 12


def test_a_record_that_a_crash_cut_short_is_not_there_and_the_ones_before_are(
    tmp_path: Path,
) -> None:
    waiting = open_rows(tmp_path)
    first, second = keep(waiting, b"one" * 10), keep(waiting, b"two" * 10)
    waiting.close()
    (path,) = files(tmp_path)
    whole = path.read_bytes()
    for n_bytes in range(len(whole) // 2, len(whole)):
        path.write_bytes(whole[:n_bytes])
        again = open_rows(tmp_path)
        assert read(again, first[0]) == (b"one" * 10, 0)
        assert read(again, second[0]) == "unknown"
        assert read(again, keep(again, b"three")[0]) == (b"three", 0)
        again.close()
        files(tmp_path)[-1].unlink()


def test_a_flipped_bit_is_never_taken_for_a_row(tmp_path: Path) -> None:
    waiting = open_rows(tmp_path)
    (row_id,) = keep(waiting, b"some row")
    (path,) = files(tmp_path)
    whole = path.read_bytes()
    for at in range(len(whole)):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 16]) + whole[at + 1 :])
        assert read(waiting, row_id) == "gone"
        assert read(open_rows(tmp_path), row_id) == "unknown"
    waiting.close()


def test_zeros_at_the_end_of_a_file_are_no_rows(tmp_path: Path) -> None:
    waiting = open_rows(tmp_path)
    keep(waiting, b"row")
    waiting.close()
    with files(tmp_path)[0].open("ab") as opened:
        opened.write(bytes(4096))
    assert open_rows(tmp_path).n_rows == 1


def test_a_labelled_row_stays_so_after_a_restart(tmp_path: Path) -> None:
    waiting, state = open_rows(tmp_path), dict[str, Any]()
    ids = keep(waiting, b"rows", 20)
    label(waiting, state, ids[3], ids[17])
    waiting.close()
    again = open_rows(tmp_path, state)
    assert [n for n, row_id in enumerate(ids) if again.find(row_id) == "labelled"] == [3, 17]
    assert again.n_rows == 18


def test_a_mark_that_the_store_did_not_keep_never_was(tmp_path: Path) -> None:
    waiting = open_rows(tmp_path)
    (row_id,) = keep(waiting, b"row")
    found = waiting.find(row_id)
    assert not isinstance(found, str)
    waiting.mark(*found)
    assert waiting.find(row_id) == "labelled"
    waiting.restore({})
    assert read(waiting, row_id) == (b"row", 0)
    waiting.close()


def test_a_file_goes_when_the_store_has_all_its_labels_and_not_before(tmp_path: Path) -> None:
    waiting, state = open_rows(tmp_path, most=10 * CHUNK), dict[str, Any]()
    ids = keep(waiting, b"rows", CHUNK)
    for row_id in ids:
        found = waiting.find(row_id)
        assert not isinstance(found, str)
        state.update(waiting.mark(*found))
    keep(waiting, b"row")
    assert len(files(tmp_path)) == 2
    waiting.settle()
    keep(waiting, b"rows", CHUNK)
    keep(waiting, b"row")
    assert [path.name for path in files(tmp_path)] == ["00000002.rows", "00000003.rows"]
    assert waiting.find(ids[5]) == "labelled"
    waiting.close()
    assert open_rows(tmp_path, state).find(ids[5]) == "labelled"


def test_the_oldest_rows_are_forgotten_when_too_many_wait(tmp_path: Path) -> None:
    waiting = open_rows(tmp_path, most=80)
    ids = [row_id for _ in range(100) for row_id in keep(waiting, b"row", 2)]
    assert waiting.n_rows <= 80 + 10 + 2
    assert waiting.n_rows + waiting.n_forgotten == 200
    assert waiting.find(ids[0]) == "forgotten"
    assert read(waiting, ids[-1]) == (b"row", 1)
    waiting.close()


def test_marks_of_a_file_are_never_taken_for_those_of_another(tmp_path: Path) -> None:
    waiting, state = open_rows(tmp_path, most=80), dict[str, Any]()
    stays = keep(waiting, b"stays")
    for _ in range(1_100):
        label(waiting, state, *keep(waiting, b"rows", 10))
    assert waiting.find(stays[0]) == "forgotten"
    numbers = [value[0] for name, value in state.items() if name.startswith("labelled.")]
    assert max(numbers) - min(numbers) < 1_024
    waiting.close()


@pytest.mark.parametrize(
    "row_id",
    ["", "-", "1", "1-", "-0", "01-0", "1-00", "0x1-0", "1-0x0", "+1-0", "1_0-0", " 1-0", "1-0-0",
     "1-A", "\u0661-0", "1-1", "2-0", "0-0", "f" * 10_000 + "-0", "-1-0"],
)  # fmt: skip
def test_what_is_no_id_is_unknown(tmp_path: Path, row_id: str) -> None:
    waiting = open_rows(tmp_path)
    assert keep(waiting, b"row") == ["1-0"]
    assert waiting.find(row_id) == "unknown"
    waiting.close()


def test_a_full_disk_takes_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    waiting = open_rows(tmp_path)
    before = keep(waiting, b"before" * 10, 2)
    for n_more in (0, 1, 30, 100):
        size = files(tmp_path)[-1].stat().st_size
        with full_disk(size + n_more), pytest.raises(StoreError, match="cannot be written"):
            keep(waiting, b"lost" * 30, 5)
        after = keep(waiting, b"after", 3)
        for opened in (waiting, open_rows(tmp_path)):
            assert read(opened, before[1]) == (b"before" * 10, 1)
            assert read(opened, after[2]) == (b"after", 2)
        assert waiting.n_rows == 2 + 3
        label(waiting, {}, *after)
    waiting.close()


def test_rows_that_came_while_the_disk_failed_are_not_acknowledged_either(tmp_path: Path) -> None:
    waiting = open_rows(tmp_path)
    waiting.add(b"lost", JSON, 1)
    append = waiting._append

    def append_late(file: WaitingFile, records: list[bytes]) -> None:
        waiting.add(b"came meanwhile", JSON, 1)
        append(file, records)

    waiting._append = append_late  # type: ignore[method-assign]
    with full_disk(), pytest.raises(StoreError, match="cannot be written"):
        waiting.write()
    waiting._append = append  # type: ignore[method-assign]
    with pytest.raises(StoreError, match="just failed"):
        waiting.write()
    assert waiting.n_rows == 0
    assert read(waiting, keep(waiting, b"row")[0]) == (b"row", 0)
    waiting.close()


def test_files_that_fail_leave_no_descriptor_open(tmp_path: Path) -> None:
    waiting = open_rows(tmp_path)
    n_open = n_descriptors()
    for _ in range(5):
        with full_disk(), pytest.raises(StoreError):
            keep(waiting, b"row")
    (tmp_path / "waiting").rename(tmp_path / "elsewhere")
    for _ in range(5):
        with pytest.raises(StoreError):
            keep(waiting, b"row")
    waiting.close()
    assert n_descriptors() == n_open


def is_written(waiting: WaitingRows, room: int | None) -> bool:
    """Write on a disk that has room for files of so many bytes, or for all; whether it worked."""
    with nullcontext() if room is None else full_disk(room):
        try:
            waiting.write()
        except StoreError:
            return False
    return True


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("keep"), st.integers(1, 6)),
        st.tuples(st.just("queue"), st.integers(1, 6)),
        st.tuples(st.just("label"), st.integers(0, 200)),
        st.tuples(st.just("mark"), st.integers(0, 200)),
        st.tuples(st.just("crash"), st.just(0)),
        st.tuples(st.just("reopen"), st.just(0)),
        st.tuples(st.just("full"), st.integers(0, 200)),
    ),
    max_size=60,
)


@given(STEPS)
def test_whatever_happens_acknowledged_rows_wait_until_they_are_labelled(
    steps: list[tuple[str, int]],
) -> None:
    with tempfile.TemporaryDirectory() as name:
        _follow(Path(name), steps)


def _follow(folder: Path, steps: list[tuple[str, int]]) -> None:
    """Beside a plain dictionary: what was acknowledged by id, None once it is labelled."""
    state: dict[str, Any] = {}
    truth: dict[str, tuple[bytes, int] | None] = {}
    waiting, n_bodies = open_rows(folder, state, most=400), 0
    for step, number in steps:
        waits = [row_id for row_id, row in truth.items() if row is not None]
        if step in ("keep", "full", "queue"):
            n_bodies += 1
            body = b"%d" % n_bodies
            ids = waiting.add(body, JSON, number % 7 + 1)
            if step != "queue" and is_written(waiting, number if step == "full" else None):
                truth |= {row_id: (body, at) for at, row_id in enumerate(ids)}
        elif step == "label" and waits:
            row_id = waits[number % len(waits)]
            label(waiting, state, row_id)
            truth[row_id] = None
        elif step == "mark" and waits:
            found = waiting.find(waits[number % len(waits)])
            assert not isinstance(found, str)
            waiting.mark(*found)
            waiting.restore(state)
        elif step == "crash":
            waiting._let_go()
            waiting = open_rows(folder, state, most=400)
        elif step == "reopen":
            waiting.close()
            waiting = open_rows(folder, state, most=400)
        for row_id, row in truth.items():
            assert read(waiting, row_id) == ("labelled" if row is None else row)
    waiting.close()
