"""Known drifts come at their rows, counted over the whole stream."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from driftquilt.detectors import EveryRows, KnownDrifts, Never
from driftquilt.errors import InputError
from tests.detectors.streams import answers, drifts


@given(points=st.sets(st.integers(0, 99)))
def test_it_fires_at_every_point_and_nowhere_else(points: set[int]) -> None:
    assert drifts(KnownDrifts(points), [0.0] * 100) == sorted(points)


@given(points=st.sets(st.integers(0, 99)))
def test_it_fires_alike_whether_it_is_renewed_or_used_on(points: set[int]) -> None:
    said = answers(KnownDrifts(points), [1.0] * 100)
    assert [row for row, drift in enumerate(said) if drift] == sorted(points)


@given(n_rows=st.integers(1, 120))
def test_every_so_many_rows_it_fires(n_rows: int) -> None:
    expected = list(range(n_rows - 1, 100, n_rows))
    assert drifts(EveryRows(n_rows), [0.0] * 100) == expected
    said = answers(EveryRows(n_rows), [0.0] * 100)
    assert [row for row, drift in enumerate(said) if drift] == expected


def test_never_is_never() -> None:
    assert drifts(Never(), [0.0] * 50 + [1.0] * 50) == []


@pytest.mark.parametrize("points", [[-1], [1.5], ["3"], "12", 7, [None], [True]])
def test_points_that_are_no_row_numbers_are_refused(points: Any) -> None:
    with pytest.raises(InputError, match="points are row numbers"):
        KnownDrifts(points)


@pytest.mark.parametrize("n_rows", [0, -3, 2.5, "10", None, True])
def test_a_number_of_rows_is_a_whole_number(n_rows: Any) -> None:
    with pytest.raises(InputError, match="n_rows of the detector 'every_rows'"):
        EveryRows(n_rows)
