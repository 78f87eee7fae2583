"""river's detectors answer as river's, and see errors rise."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from river import drift

from driftquilt.detectors import RiverDetector, make_detector
from driftquilt.detectors.foreign import RIVER_KINDS
from driftquilt.errors import InputError
from tests.detectors.streams import answers, drifts, errors

RIVER: Any = drift  # which has no types
ADWIN, KSWIN, PageHinkley = RIVER.ADWIN, RIVER.KSWIN, RIVER.PageHinkley

ORIGINALS: dict[str, Callable[[], Any]] = {
    "adwin": lambda: ADWIN(delta=0.01, clock=8, max_buckets=3),
    "ddm": lambda: RIVER.binary.DDM(warm_start=20),
    "eddm": lambda: RIVER.binary.EDDM(alpha=0.9, beta=0.85),
    "hddm_a": lambda: RIVER.binary.HDDMA(two_sided_test=True),
    "hddm_w": lambda: RIVER.binary.HDDMW(two_sided_test=True, lambda_val=0.1),
    "kswin": lambda: KSWIN(alpha=0.05, window_size=40, stat_size=15, seed=1),
    "page_hinkley": lambda: PageHinkley(threshold=8),
}
STREAM = errors((250, 0.1), (250, 0.7), (250, 0.1), seed=4)
each_original = pytest.mark.parametrize("kind", sorted(ORIGINALS))


def test_all_names_are_tested() -> None:
    assert set(ORIGINALS) == set(RIVER_KINDS)


@each_original
def test_it_answers_as_river_does(kind: str) -> None:
    said = answers(ORIGINALS[kind](), STREAM)
    assert any(said)
    assert answers(make_detector(ORIGINALS[kind]()), STREAM) == said


@each_original
def test_one_in_use_is_taken_over_and_then_left_alone(kind: str) -> None:
    used = ORIGINALS[kind]()
    answers(used, STREAM[:300])
    ours = make_detector(used)
    expected = answers(ORIGINALS[kind](), STREAM)[300:]
    assert answers(ours, STREAM[300:]) == expected
    assert answers(used, STREAM[300:]) == expected


def test_one_of_river_without_a_seed_gets_one_and_can_be_made_again() -> None:
    detector = make_detector(KSWIN(alpha=0.05, window_size=40, stat_size=15))
    twin = make_detector(json.loads(json.dumps(detector.settings())))
    assert answers(twin.fresh(), STREAM) == answers(detector.fresh(), STREAM)


def test_only_rivers_own_names_make_one() -> None:
    with pytest.raises(InputError, match="river's detectors are adwin, ddm"):
        RiverDetector("hdddm")
    with pytest.raises(InputError, match="int is not"):
        RiverDetector.wrap(3)


@pytest.mark.parametrize("rate", [0.05, 0.2, 0.4])
@pytest.mark.parametrize("kind", ["adwin", "ddm", "hddm_a", "hddm_w", "page_hinkley"])
def test_it_sees_errors_rise_by_a_third_in_time(kind: str, rate: float) -> None:
    late = 0
    for seed in range(6):
        found = drifts(make_detector(kind), errors((600, rate), (400, rate + 0.33), seed=seed))
        late += not any(600 <= row < 900 for row in found)
    assert late <= 1


@pytest.mark.parametrize(("kind", "n_most"), [("adwin", 1), ("hddm_a", 2), ("page_hinkley", 6)])
@pytest.mark.parametrize("rate", [0.05, 0.2, 0.4])
def test_steady_errors_raise_few_alarms(kind: str, n_most: int, rate: float) -> None:
    found = [drifts(make_detector(kind), errors((10_000, rate), seed=seed)) for seed in range(3)]
    assert sum(map(len, found)) <= n_most  # in 30,000 rows


def test_page_hinkley_looks_for_rises_alone() -> None:
    falling = errors((1000, 0.3), (1000, 0.05))
    assert drifts(make_detector("page_hinkley"), falling) == []
    assert drifts(make_detector("adwin"), falling) != []
