"""Dates in a graph become the numbers that they become outside of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnxruntime
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from driftquilt.data.calendar import Moments, from_datetime64
from driftquilt.integrations.onnx import Graph, clock_parts, date_parts

DAY = 86_400 * 10**6


def in_runtime(make: Callable[[Graph, str], str], width: int) -> Callable[[Any], NDArray[Any]]:
    graph = Graph(["micros"])
    graph.output("parts", make(graph, graph.input("micros", np.int64, width=1)), float, width=width)
    session = onnxruntime.InferenceSession(graph.to_bytes({}), providers=["CPUExecutionProvider"])

    def ask(micros: Any) -> NDArray[Any]:
        (parts,) = session.run(None, {"micros": np.array(micros, dtype=np.int64)[:, None]})
        return np.asarray(parts)

    return ask


DATES, CLOCKS = in_runtime(date_parts, 6), in_runtime(clock_parts, 2)


def outside(moments: Moments) -> NDArray[Any]:
    return np.stack(list(moments.columns("at").values()), axis=1)


def assert_same_dates(micros: Any) -> None:
    expected = outside(from_datetime64(np.array(micros, dtype=np.int64).view("M8[us]")))
    np.testing.assert_allclose(DATES(micros), expected, rtol=0, atol=1e-9)


def test_the_first_and_last_instant_of_every_year_is_in_its_year() -> None:
    years = np.arange("1500", "2900", dtype="M8[Y]").astype("M8[us]").astype(np.int64)
    assert_same_dates([*years, *(years - 1), *(years + 59 * DAY), *(years + 60 * DAY)])


@given(st.lists(st.integers(-(10**17), 10**17), min_size=1))
def test_any_date_becomes_the_same_numbers(micros: list[int]) -> None:
    assert_same_dates(micros)


@given(st.lists(st.integers(0, DAY - 1), min_size=1))
def test_any_time_of_day_becomes_the_same_numbers(micros: list[int]) -> None:
    expected = outside(Moments(None, np.array(micros) / DAY))
    np.testing.assert_allclose(CLOCKS(micros), expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("ask", [DATES, CLOCKS])
def test_what_numpy_calls_not_a_time_is_missing(ask: Callable[[Any], NDArray[Any]]) -> None:
    missing, there = ask([np.datetime64("NaT", "us").astype(np.int64), 0])
    assert np.isnan(missing).all()
    assert not np.isnan(there).any()
