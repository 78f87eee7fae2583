"""Streams on a cluster: one actor each, back from its store when it dies, each row learned once."""

from __future__ import annotations

import os
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from driftquilt import QuiltStream
from driftquilt.errors import InputError, StoreError
from driftquilt.integrations.ray.executor import get, submit
from driftquilt.integrations.ray.streams import Streams
from tests.integrations.ray.histories import COLUMNS, month, quilt
from tests.integrations.ray.processes import MARK
from tests.processes import find_processes
from tests.stream.streams import number_rows, regressor

pytestmark = pytest.mark.usefixtures("cluster")

SETTINGS: dict[str, Any] = {"detector": "hddm_a", "n_wait": 60, "wait": True}


def rows(seed: int, n_rows: int = 500) -> tuple[list[dict[str, Any]], list[str]]:
    """Rows that turn round in the middle."""
    tables = [month(seed, n_rows), month(seed + 1, n_rows, turned=True)]
    X = [row for table in tables for row in table.select(COLUMNS).to_pylist()]
    return X, [label for table in tables for label in table["buys"].to_pylist()]


def test_streams_side_by_side_are_what_each_would_be_alone(tmp_path: Path) -> None:
    names = ["shop-1", "shop-2", "shop-3"]
    with Streams(tmp_path) as streams:
        for seed, name in enumerate(names):
            X, y = rows(10 * seed)
            events = streams.open(name, quilt(), **SETTINGS).learn_many(X, y)
            alone = QuiltStream(quilt(), **SETTINGS)
            expected = alone.learn_many(X, y)
            assert list(map(type, events)) == list(map(type, expected))
            standing = streams.open(name).standing()
            assert (standing.n_rows, standing.accuracy) == (1000, alone.accuracy)
            assert streams.open(name).predict_many(X[:50]) == alone.predict_many(X[:50])
    for name in names:  # each let go of its store
        with QuiltStream.open(tmp_path / name) as stream:
            assert stream.n_rows == 1000


def test_actors_that_are_killed_come_back_and_learn_each_row_once(tmp_path: Path) -> None:
    X, y = rows(3)
    over, draw, killed = threading.Event(), np.random.default_rng(0), list[int]()

    def kill() -> None:
        while len(killed) < 4 and not over.wait(draw.uniform(0.3, 0.9)):
            for pid in find_processes(os.environ[MARK], "ray::_StreamActor"):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                    killed.append(pid)

    thread = threading.Thread(target=kill, daemon=True)
    alone = QuiltStream(quilt(), **SETTINGS)
    with Streams(tmp_path) as streams:
        stream = streams.open("shop", quilt(), **SETTINGS)
        thread.start()
        for first in range(0, len(X), 50):
            stream.learn_many(X[first : first + 50], y[first : first + 50])
            alone.learn_many(X[first : first + 50], y[first : first + 50])
        while len(killed) < 4:
            stream.predict_many(X[:5])
        over.set()
        thread.join()
        assert stream.standing().n_rows == len(X)
        assert stream.predict_many(X[-200:]) == alone.predict_many(X[-200:])


def test_several_teachers_take_turns_and_no_row_is_lost(tmp_path: Path) -> None:
    X, y = rows(5, 50)
    with Streams(tmp_path) as streams:
        stream = streams.open("shop", quilt(), **SETTINGS)
        with ThreadPoolExecutor(3) as pool:
            list(pool.map(lambda k: stream.learn_many(X[k : k + 20], y[k : k + 20]), (0, 20, 40)))
        submit(stream._actor.learn_many, "a call", X[60:70], y[60:70])  # and nobody waits for it
        stream.learn_many(X[70:80], y[70:80])
        assert stream.standing().n_rows == 80
        get(submit(stream._actor.learn_many, "twice", X[80:90], y[80:90]))
        get(submit(stream._actor.learn_many, "twice", X[80:90], y[80:90]))
        assert stream.standing().n_rows == 90
        stream.close()
        with pytest.raises(InputError, match="'shop' was closed"):
            stream.standing()
        assert streams.open("shop", quilt()).standing().n_rows == 90


def test_a_store_in_use_is_told_as_it_is(tmp_path: Path) -> None:
    busy, told = QuiltStream(quilt(), store=tmp_path / "shop"), pytest.raises(StoreError)
    with busy, Streams(tmp_path) as streams, told as caught:
        streams.open("shop", quilt()).standing()
    assert "one process at a time can use it" in str(caught.value)
    with Streams(tmp_path) as streams, pytest.raises(InputError, match="leave `store` out"):
        streams.open("shop", quilt(), store=tmp_path / "other")


@pytest.mark.parametrize("name", ["../shop", "", "a/b", ".hidden", "x" * 64])
def test_a_name_that_could_be_a_path_is_refused(tmp_path: Path, name: str) -> None:
    with (
        pytest.raises(InputError, match="is not a valid stream name"),
        Streams(tmp_path) as streams,
    ):
        streams.open(name)
    assert not list(tmp_path.iterdir())


def test_what_the_stream_refuses_is_told_as_it_is(tmp_path: Path) -> None:
    with Streams(tmp_path) as streams:
        stream = streams.open("shop", quilt(), **SETTINGS)
        with pytest.raises(InputError, match="there are 2 rows but 1 labels"):
            stream.learn_many([{"a": 1.0}, {"a": 2.0}], ["yes"])
        with pytest.raises(InputError, match="n_wait"):
            streams.open("other", quilt(), n_wait=0)


def test_a_stream_of_numbers_goes_on_after_it_was_closed(tmp_path: Path) -> None:
    X, y = map(list, zip(*number_rows(160), strict=True))
    alone = QuiltStream(regressor(), **SETTINGS)
    with Streams(tmp_path) as streams:
        prices = streams.open("prices", regressor(), **SETTINGS)
        for first in (0, 80):
            part = slice(first, first + 80)
            prices.learn_many(X[part], np.array(y[part]))
            alone.learn_many(X[part], y[part])
            prices.close()
            prices = streams.open("prices", regressor())
        assert prices.task == "regression"
        assert prices.predict_many(X[:20]) == alone.predict_many(X[:20])
        standing = prices.standing()
        assert (standing.n_rows, standing.accuracy) == (160, None)
        assert standing.mean_absolute_error == alone.mean_absolute_error
        with pytest.raises(InputError, match="labels of this stream are numbers"):
            prices.learn_many(X[:1], ["dear"])
        assert prices.standing().n_rows == 160
