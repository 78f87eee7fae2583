"""The worker of a stream, in this process: what it acknowledges is durable, whatever fails."""

from __future__ import annotations

import asyncio
import hashlib
import json
import shutil
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Iterator
from concurrent.futures import Future
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from driftquilt.server import worker as worker_module
from driftquilt.server.bodies import pack_rows, read_labels, read_predict
from driftquilt.server.problems import Problem
from driftquilt.server.registry import StreamRegistry
from driftquilt.server.schemas import JSON, NewStream, Schema
from driftquilt.server.settings import load_settings
from driftquilt.server.worker import StreamWorker
from driftquilt.store.files import model_path
from driftquilt.stream.events import TrainingFailed
from driftquilt.stream.persistence import versions
from driftquilt.stream.training import Outcome, Trainer, Training, on_thread
from driftquilt.stream.workers import Workers
from tests.server.failing_disk import full_disk
from tests.server.running import stored_numbers

pytestmark = pytest.mark.anyio
SMALL = {"n_wait": 20, "segment_rows": 30, "max_segments": 1000}


class Trainings(Workers):
    """Trainings that are run by something else."""

    def __init__(self, trainer: Trainer) -> None:
        super().__init__(1)
        self._trainer = trainer

    def __call__(self, training: Training) -> Future[Outcome]:
        return self._trainer(training)


def never(_: Training) -> Future[Outcome]:
    """A training that does not end."""
    return Future()


def noted_trainings() -> tuple[list[int], Trainer]:
    """Trainings that do not end, and the rows of the current segment when each began."""
    begun: list[int] = []

    def note(training: Training) -> Future[Outcome]:
        begun.append(len(training.tables[-1]))
        return never(training)

    return begun, note


@asynccontextmanager
async def registry(
    folder: Path, trainer: Trainer = never, **settings: Any
) -> AsyncIterator[StreamRegistry]:
    """All streams of a folder."""
    opened = StreamRegistry(load_settings(store=folder / "state", **settings))
    opened._workers = Trainings(trainer)
    opened.open(asyncio.get_running_loop())
    try:
        yield opened
    finally:
        await opened.close()


async def make(opened: StreamRegistry, **settings: Any) -> StreamWorker:
    return await opened.create(NewStream("s", settings={**SMALL, **settings}, random_state=0))


def rows(*numbers: int) -> list[dict[str, float]]:
    return [{"number": float(number), "b": float(number % 7)} for number in numbers]


def labels(*numbers: int) -> list[str]:
    return ["yes" if number % 3 else "no" for number in numbers]


async def post(
    worker: StreamWorker, body: dict[str, Any], key: str | None = None
) -> dict[str, Any]:
    sent = json.dumps(body).encode()
    digest = hashlib.sha256(sent).hexdigest()
    answer, replayed = await worker.learn(read_labels(sent, JSON, 10_000), key, digest)
    told: dict[str, Any] = msgspec.to_builtins(answer)
    return told | ({"replayed": True} if replayed else {})


async def learn(worker: StreamWorker, *numbers: int, key: str | None = None) -> dict[str, Any]:
    return await post(worker, {"rows": rows(*numbers), "labels": labels(*numbers)}, key)


async def keep(worker: StreamWorker, *numbers: int) -> list[str]:
    sent = json.dumps({"rows": rows(*numbers)}).encode()
    return await worker.keep(sent, JSON, len(read_predict(sent, JSON, 10_000).frame))


async def tell(
    worker: StreamWorker, told: dict[str, str], key: str | None = None
) -> dict[str, Any]:
    pairs = [{"id": row_id, "label": label} for row_id, label in told.items()]
    return await post(worker, {"labels": pairs}, key)


def stored(folder: Path) -> Counter[int]:
    """How often each numbered row is in the store of the stream."""
    return Counter(stored_numbers(folder / "state/streams/s"))


async def refused(answer: Awaitable[Any]) -> str:
    with pytest.raises(Problem) as problem:
        await answer
    return problem.value.kind


async def test_rows_with_labels_are_learned_in_order(tmp_path: Path) -> None:
    async with registry(tmp_path) as opened:
        worker = await make(opened)
        told = await learn(worker, *range(25))
        assert told == {"learned": 25, "repeated": 0, "refused": [], "n_rows": 25}
        assert (await learn(worker, *range(25, 70)))["n_rows"] == 70
        assert worker.status().n_rows == 70
        assert worker.status().classes == ["no", "yes"]
    assert stored(tmp_path) == Counter(range(70))


async def test_labels_may_come_late_out_of_order_and_twice(tmp_path: Path) -> None:
    async with registry(tmp_path) as opened:
        worker = await make(opened)
        ids = await keep(worker, *range(10))
        more = await keep(worker, 10)
        assert worker.status().n_waiting == 11
        told = await tell(worker, {more[0]: "yes", ids[9]: "no", ids[0]: "no"})
        assert (told["learned"], told["repeated"], told["n_rows"]) == (3, 0, 3)
        told = await tell(worker, {ids[0]: "no", ids[1]: "yes", "ffff-0": "yes"})
        assert (told["learned"], told["repeated"], told["n_rows"]) == (1, 1, 4)
        assert told["refused"] == [{"id": "ffff-0", "reason": "unknown"}]
        assert await refused(tell(worker, {"ffff-0": "yes"})) == "ids-unknown"
        delay = worker.status().label_delay
        assert delay is not None
        assert delay.n == 4
    assert stored(tmp_path) == Counter([10, 9, 0, 1])


async def test_an_id_twice_in_one_request_is_learned_once(tmp_path: Path) -> None:
    async with registry(tmp_path) as opened:
        worker = await make(opened)
        (row_id,) = await keep(worker, 5)
        pair = {"id": row_id, "label": "yes"}
        told = await post(worker, {"labels": [pair, pair, {"id": f"0{row_id}", "label": "yes"}]})
        assert (told["learned"], told["repeated"]) == (1, 1)
        assert told["refused"] == [{"id": f"0{row_id}", "reason": "unknown"}]
    assert stored(tmp_path) == Counter([5])


async def test_a_request_under_a_key_is_done_once_also_after_a_restart(tmp_path: Path) -> None:
    async with registry(tmp_path) as opened:
        worker = await make(opened)
        (row_id,) = await keep(worker, 100)
        first = await learn(worker, *range(5), key="a")
        second = await tell(worker, {row_id: "yes"}, key="b")
        assert await learn(worker, *range(5), key="a") == first | {"replayed": True}
    async with registry(tmp_path) as opened:
        worker = opened["s"]
        assert await learn(worker, *range(5), key="a") == first | {"replayed": True}
        assert await tell(worker, {row_id: "yes"}, key="b") == second | {"replayed": True}
        assert await refused(learn(worker, 7, key="a")) == "key-reused"
        assert await refused(learn(worker, 7, key="b")) == "key-reused"
    assert stored(tmp_path) == Counter([*range(5), 100])


async def test_the_same_request_twice_at_once_is_done_once(tmp_path: Path) -> None:
    async with registry(tmp_path) as opened:
        worker = await make(opened)
        told = await asyncio.gather(*(learn(worker, *range(40), key="a") for _ in range(5)))
        assert sorted("replayed" in answer for answer in told) == [False] + [True] * 4
    assert stored(tmp_path) == Counter(range(40))


async def test_a_stream_made_under_a_key_knows_it_from_the_first_moment(tmp_path: Path) -> None:
    async with registry(tmp_path) as opened:
        await opened.create(NewStream("s"), "key", "digest")
    async with registry(tmp_path) as opened:
        assert opened["s"].ingestion.keys.find("key", "digest") is not None


def crash_copies(folder: Path) -> list[Path]:
    return sorted(folder.glob("crash*"))


def copy_at_seals(folder: Path, worker: StreamWorker) -> None:
    """Keep what a crash right after each seal would find on the disk."""
    store = worker.stream.store
    seal = store.seal

    def seal_and_copy(*given: Any, **named: Any) -> Any:
        sealed = seal(*given, **named)
        copy(folder)
        return sealed

    store.seal = seal_and_copy  # type: ignore[method-assign]


def copy_at_commits(folder: Path, worker: StreamWorker) -> None:
    """Keep what a crash right before or after each commit would find on the disk."""
    manifest = worker.stream.store._manifest  # type: ignore[attr-defined]
    transaction = manifest.transaction

    @contextmanager
    def copied_transaction() -> Iterator[None]:
        copy(folder)
        with transaction():
            yield
        copy(folder)

    manifest.transaction = copied_transaction


def copy(folder: Path) -> None:
    to = folder / f"crash{len(crash_copies(folder)):03}"
    shutil.copytree(folder / "state", to / "state")


async def test_a_request_that_a_crash_has_cut_goes_on_where_it_stopped(tmp_path: Path) -> None:
    async with registry(tmp_path) as opened:
        worker = await make(opened)
        ids = await keep(worker, *range(100, 140))
        by_id = dict(zip(ids, labels(*range(100, 140)), strict=True))
        copy_at_seals(tmp_path, worker)
        await learn(worker, *range(70), key="rows")
        await tell(worker, by_id, key="ids")
    copies = crash_copies(tmp_path)
    assert len(copies) == 3  # two in the midst of the rows, one in the midst of the ids
    for crashed in copies:
        n_before = sum(stored(crashed).values())
        assert 0 < n_before < 110
        async with registry(crashed) as opened:
            worker = opened["s"]
            told = await learn(worker, *range(70), key="rows")
            assert told["learned"] == 70
            told = await tell(worker, by_id, key="ids")
            assert (told["learned"], told["repeated"], told["n_rows"]) == (40, 0, 110)
        assert stored(crashed) == Counter([*range(70), *range(100, 140)])


async def test_nothing_is_acknowledged_while_the_disk_is_full_and_all_after_it(
    tmp_path: Path,
) -> None:
    async with registry(tmp_path) as opened:
        worker = await make(opened)
        ids = await keep(worker, *range(200, 205))
        await learn(worker, *range(10))
        with full_disk():
            turns = [learn(worker, n) for n in range(10, 15)]
            failed = await asyncio.gather(*turns, return_exceptions=True)
            assert {error.kind for error in failed} == {"stream-failed"}  # type: ignore[union-attr]
            assert await refused(tell(worker, {ids[0]: "no"})) == "stream-failed"
            assert await refused(keep(worker, 300)) == "stream-failed"
            assert worker.status().failure is not None
            assert worker.view.answers.predict(
                read_predict(b'{"rows": [{"b": 1}]}', JSON, 1).frame
            )[0].sum() == pytest.approx(1)
        worker._failed_at -= worker_module._REOPEN_AFTER
        assert (await learn(worker, *range(20, 30)))["n_rows"] == 20
        assert worker.status().failure is None
        more = await keep(worker, 205)
        told = await tell(worker, dict.fromkeys([*ids, *more], "yes"))
        assert (told["learned"], told["repeated"]) == (6, 0)
    assert stored(tmp_path) == Counter([*range(10), *range(20, 30), *range(200, 206)])


async def test_a_turn_in_which_one_request_fails_acknowledges_none_of_it(tmp_path: Path) -> None:
    async with registry(tmp_path) as opened:
        worker = await make(opened)
        await learn(worker, *range(5))

        def fall() -> None:
            raise OSError("the disk is on fire")

        worker._queue.busy = True  # so that all three are of one turn
        works = [learn(worker, 10), worker.turn(fall), learn(worker, 11)]
        tasks = [asyncio.ensure_future(work) for work in works]
        await asyncio.sleep(0)
        worker._loop.run_in_executor(worker._threads, worker._take_turns)
        failed = await asyncio.gather(*tasks, return_exceptions=True)
        assert [error.kind for error in failed] == ["stream-failed"] * 3  # type: ignore[union-attr]
        worker._failed_at -= worker_module._REOPEN_AFTER
        assert (await learn(worker, 12))["learned"] == 1
    assert stored(tmp_path)[12] == 1
    assert max(stored(tmp_path).values()) == 1


async def test_what_was_not_acknowledged_is_not_learned_after_a_failure(tmp_path: Path) -> None:
    async with registry(tmp_path) as opened:
        worker = await make(opened)
        await learn(worker, *range(5))

        def learn_and_fall() -> None:
            worker.stream.learn_many(rows(10), labels(10), notes=[{}])
            raise OSError("the disk is on fire")

        assert await refused(worker.turn(learn_and_fall)) == "stream-failed"
        worker._failed_at -= worker_module._REOPEN_AFTER
        assert (await learn(worker, 11))["n_rows"] == 6
    assert stored(tmp_path) == Counter([*range(5), 11])


async def test_a_row_without_a_value_waits_and_is_refused_with_its_label(tmp_path: Path) -> None:
    async with registry(tmp_path) as opened:
        worker = await make(opened)
        body = json.dumps({"rows": [{"number": None}, {"number": 1, "b": 1}]}).encode()
        read = read_predict(body, JSON, 10)
        nothing, something = await worker.keep(*pack_rows(read.frame, body, JSON), 2)
        (empty,) = await worker.keep(
            *pack_rows(read_predict(b'{"rows": [{"number": null}]}', JSON, 1).frame, b"", JSON), 1
        )
        await learn(worker, *range(5))
        told = await tell(worker, {nothing: "yes", something: "yes", empty: "no"}, key="k")
        assert told["learned"] + len(told["refused"]) == 3
        assert {one["reason"] for one in told["refused"]} <= {"unfit"}
        again = await tell(worker, {nothing: "yes", something: "yes", empty: "no"}, key="k")
        assert again == told | {"replayed": True}
        assert (await learn(worker, 7))["learned"] == 1


async def test_rows_that_do_not_go_with_the_stream_leave_the_others_their_labels(
    tmp_path: Path,
) -> None:
    async with registry(tmp_path) as opened:
        worker = await make(opened)
        ids = []
        for row in ({"a": 1.0}, {"b": 1.0}, {"a": 2.0}, {"a": "text"}):
            body = json.dumps({"rows": [row]}).encode()
            ids += await worker.keep(body, JSON, 1)
        told = await tell(worker, dict.fromkeys(ids, "yes"), key="k")
        refusals = [{"id": ids[1], "reason": "unfit"}, {"id": ids[3], "reason": "unfit"}]
        assert (told["learned"], told["refused"]) == (2, refusals)
        assert await tell(worker, dict.fromkeys(ids, "yes"), key="k") == told | {"replayed": True}
        last = await tell(worker, {ids[1]: "yes"})
        assert (last["learned"], last["refused"]) == (0, refusals[:1])


async def test_ids_do_not_make_a_stream_wider_than_it_may_be(tmp_path: Path) -> None:
    async with registry(tmp_path) as opened:
        worker, ids = await make(opened), []
        for first in range(0, 6_000, 1_500):
            row = {"a": 1.0} | {f"c{n}": 1.0 for n in range(first, first + 1_500)}
            ids += await worker.keep(json.dumps({"rows": [row]}).encode(), JSON, 1)
        told = await tell(worker, dict.fromkeys(ids, "yes"))
        assert (told["learned"], [one["id"] for one in told["refused"]]) == (2, ids[2:])
        assert len(worker.stream.columns) == 3_001


async def test_a_key_stands_for_its_request_though_nothing_was_to_be_learned(
    tmp_path: Path,
) -> None:
    async with registry(tmp_path) as opened:
        worker = await make(opened)
        ids = await keep(worker, 1, 2)
        await tell(worker, dict.fromkeys(ids, "yes"))
        assert (await tell(worker, {ids[0]: "yes"}, key="k"))["repeated"] == 1
        assert await refused(tell(worker, {ids[1]: "yes"}, key="k")) == "key-reused"


async def test_true_is_not_the_label_1_of_a_schema(tmp_path: Path) -> None:
    async with registry(tmp_path) as opened:
        schema = Schema({"number": "number", "b": "number"}, labels=[0, 1])
        worker = await opened.create(NewStream("s", schema=schema))
        body = {"rows": rows(1), "labels": [True]}
        assert await refused(post(worker, body)) == "rows-invalid"
        assert (await post(worker, body | {"labels": [1]}))["learned"] == 1


async def test_a_promotion_that_failed_is_not_told_as_done_under_its_key(tmp_path: Path) -> None:
    async with registry(tmp_path, on_thread) as opened:
        worker = await with_models(opened, 2)
        first, *_, last = worker.stream.models
        path = model_path(worker.stream.store.path, versions(worker.stream.store)[first])  # type: ignore[attr-defined]
        path.write_bytes(path.read_bytes()[:-1] + b"?")

        for _ in range(2):
            assert await refused(roll_back(worker, first)) == "stream-failed"
            worker._failed_at -= worker_module._REOPEN_AFTER
        await learn(worker, 100)
        assert worker.stream.model == last


async def test_more_rows_than_may_wait_are_refused_until_there_is_room(tmp_path: Path) -> None:
    async with registry(tmp_path, max_backlog=50) as opened:
        worker = await make(opened)
        turns = [learn(worker, *range(at, at + 20)) for at in range(0, 100, 20)]
        told = await asyncio.gather(*turns, return_exceptions=True)
        kinds = [answer.kind if isinstance(answer, Problem) else "" for answer in told]
        assert kinds == ["", "", "backlog-full", "backlog-full", "backlog-full"]
        assert worker._queue.n_rows == 0
        assert (await learn(worker, *range(200, 260)))["learned"] == 60
    assert stored(tmp_path) == Counter([*range(40), *range(200, 260)])


async def test_closing_learns_and_keeps_all_that_was_taken(tmp_path: Path) -> None:
    async with registry(tmp_path) as opened:
        worker = await make(opened)
        turns = [asyncio.ensure_future(learn(worker, at)) for at in range(50)]
        kept = [asyncio.ensure_future(keep(worker, at)) for at in range(100, 150)]
        await asyncio.sleep(0)
        await worker.close()
        told = await asyncio.gather(*turns)
        assert sum(answer["learned"] for answer in told) == 50
        ids = [row_id for ids in await asyncio.gather(*kept) for row_id in ids]
        assert await refused(learn(worker, 1)) == "stopping"
        assert await refused(keep(worker, 1)) == "stopping"
    async with registry(tmp_path) as opened:
        assert (await tell(opened["s"], dict.fromkeys(ids, "yes")))["learned"] == 50
    assert stored(tmp_path) == Counter([*range(50), *range(100, 150)])


async def test_what_was_deleted_stays_so_and_its_name_is_free(tmp_path: Path) -> None:
    async with registry(tmp_path) as opened:
        worker = await make(opened)
        await learn(worker, *range(40))
        await opened.delete("s")
        assert await refused(keep(worker, 1)) == "stopping"
        again = await make(opened)
        assert again.status().n_rows == 0
        assert [path.name for path in (tmp_path / "state/streams").iterdir()] == ["s"]


async def trained(worker: StreamWorker) -> None:
    """Until a training that is under way has taken effect."""
    await worker.turn(worker.stream.finish_training)
    await worker._collect()


async def with_models(opened: StreamRegistry, n_models: int) -> StreamWorker:
    """A stream with a model for every thirty rows."""
    worker = await make(opened, segment_rows=1000)
    for at in range(0, 30 * n_models, 30):
        await learn(worker, *range(at, at + 30))
        await worker.turn(worker.adapt)
        await trained(worker)
    return worker


async def roll_back(worker: StreamWorker, version: int) -> None:
    """Use a model, under a key."""
    stream = worker.stream
    await worker.turn(
        lambda: worker.ingestion.do_once(
            "key",
            "digest",
            lambda: {"model": version},
            lambda answer, note: stream.roll_back(answer["model"], note=note),
        )
    )


async def test_a_training_that_fails_leaves_the_model_that_answers(tmp_path: Path) -> None:
    fails = False

    def trainer(training: Training) -> Future[Outcome]:
        if not fails:
            return on_thread(training)
        future: Future[Outcome] = Future()
        future.set_result(Outcome(len(training.tables[-1]), failure="the process was killed"))
        return future

    async with registry(tmp_path, trainer) as opened:
        worker = await make(opened, segment_rows=1000)
        await learn(worker, *range(40))
        await trained(worker)
        before = worker.status().model
        assert before is not None
        fails = True
        await worker.turn(worker.adapt)
        await learn(worker, 40)
        assert worker.status().model == before
        assert any(isinstance(event, TrainingFailed) for event in worker.view.events)


async def test_a_training_that_was_asked_for_begins_again_after_a_restart(tmp_path: Path) -> None:
    begun, note = noted_trainings()
    async with registry(tmp_path, note) as opened:
        worker = await make(opened, n_wait=1000, segment_rows=5000)
        await learn(worker, *range(40))
        assert begun == []
        await worker.turn(worker.adapt)
    async with registry(tmp_path, note) as opened:
        assert begun == [40, 40]
    async with registry(tmp_path, on_thread) as opened:
        await trained(opened["s"])
        await learn(opened["s"], 40)
        assert opened["s"].status().model == 1
    async with registry(tmp_path, note) as opened:
        assert begun == [40, 40]


async def test_a_training_that_was_due_begins_again_after_a_restart(tmp_path: Path) -> None:
    begun, note = noted_trainings()
    async with registry(tmp_path, note) as opened:
        worker = await make(opened, segment_rows=5000)
        await learn(worker, *range(25))
        assert begun == [20]
    async with registry(tmp_path, note) as opened:
        assert begun == [20, 25]


async def test_a_roll_back_and_its_key_become_durable_in_the_same_step(tmp_path: Path) -> None:
    async with registry(tmp_path, on_thread) as opened:
        worker = await with_models(opened, 3)
        first, last = worker.stream.models[0], worker.stream.models[-1]
        assert worker.stream.model == last > first
        copy_at_commits(tmp_path, worker)
        await roll_back(worker, first)
    found = []
    for crashed in crash_copies(tmp_path):
        async with registry(crashed) as opened:
            known = opened["s"].ingestion.keys.find("key", "digest")
            found.append((opened["s"].stream.model, known is not None))
    assert found[0] == (last, False)
    assert found[-1] == (first, True)
    assert {*found} == {found[0], found[-1]}


async def test_rows_of_a_long_request_wait_until_each_is_learned(tmp_path: Path) -> None:
    async with registry(tmp_path, max_waiting=2400) as opened:
        worker = await make(opened)
        await learn(worker, *range(5))
        ids = await keep(worker, *range(100, 400))
        told = dict(zip(ids, labels(*range(100, 400)), strict=True))

        def fail_after_some() -> None:
            worker.stream.flush()
            worker.ingestion.settle()
            worker.ingestion.pending.add(json.dumps({"rows": rows(9)}).encode(), JSON, 1, 0.0)
            worker.ingestion.pending.write()
            raise OSError("the disk is on fire")

        worker.ingestion._on_progress = fail_after_some
        assert await refused(tell(worker, told, key="k")) == "stream-failed"
        assert worker.ingestion.n_labels == 0
        worker._failed_at -= worker_module._REOPEN_AFTER
        worker.ingestion._on_progress = lambda: None
        again = await tell(worker, told, key="k")
        assert (again["learned"], again["refused"]) == (300, [])
        assert 0 < worker.ingestion.n_labels < 300  # those that the store did not have yet
    assert stored(tmp_path) == Counter([*range(5), *range(100, 400)])


async def test_labels_in_any_order_read_each_request_once(tmp_path: Path) -> None:
    async with registry(tmp_path) as opened:
        worker = await make(opened)
        await learn(worker, *range(5))
        ids = [i for at in (100, 200, 300) for i in await keep(worker, *range(at, at + 100))]
        read, n_read = worker.ingestion.pending.read, Counter[int]()

        def counted(number: int) -> Any:
            request = read(number)
            assert request is not None
            n_read[request.number] += 1
            return request

        worker.ingestion.pending.read = counted  # type: ignore[method-assign]
        told = dict(zip(ids, labels(*range(100, 400)), strict=True))
        mixed = {row_id: told[row_id] for at in range(7) for row_id in ids[at::7]}
        assert (await tell(worker, mixed))["learned"] == 300
        assert set(n_read.values()) == {1}
    assert stored(tmp_path) == Counter([*range(5), *range(100, 400)])
