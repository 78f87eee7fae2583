"""river's detectors answer as river's, survive without pickle, and see errors rise."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from types import MethodType
from typing import Any

import pytest
from river import drift

from driftquilt.detectors import RiverDetector, make_detector
from driftquilt.detectors.from_river import RIVER_KINDS
from driftquilt.detectors.river_bytes import pack_window, unpack_window, window
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
    original, ours = ORIGINALS[kind](), make_detector(ORIGINALS[kind]())
    said = []
    for value in STREAM:
        original.update(value)
        said.append(bool(original.drift_detected))
    assert any(said)
    assert answers(ours, STREAM) == said


@each_original
def test_one_in_use_is_taken_over_and_then_left_alone(kind: str) -> None:
    used, twin = ORIGINALS[kind](), ORIGINALS[kind]()
    for value in STREAM[:300]:
        used.update(value)
        twin.update(value)
    ours = make_detector(used)
    expected = []
    for value in STREAM[300:]:
        twin.update(value)
        expected.append(bool(twin.drift_detected))
    assert answers(ours, STREAM[300:]) == expected
    theirs = []
    for value in STREAM[300:]:
        used.update(value)
        theirs.append(bool(used.drift_detected))
    assert theirs == expected


def parts(thing: Any, path: str = "") -> dict[str, Any]:
    """Everything that can be reached in a river object, compiled parts as their bytes."""
    if isinstance(thing, random.Random):
        return {path: thing.getstate()}
    if isinstance(thing, MethodType):
        return {path: thing.__name__}
    if getattr(thing, "__dict__", None):
        found = [parts(value, f"{path}.{name}") for name, value in vars(thing).items()]
        return {name: value for some in found for name, value in some.items()}
    compiled = type(thing).__module__.startswith(("builtins", "collections", "numpy")) is False
    return {path: bytes(thing.__getstate__()) if compiled else thing}


@each_original
def test_nothing_in_a_river_object_is_left_behind(kind: str) -> None:
    detector = make_detector(ORIGINALS[kind]())
    assert isinstance(detector, RiverDetector)
    for row, value in enumerate(STREAM):
        detector.update(value)
        if row % 17 == 0 or detector.drift_detected:
            restored = RiverDetector(kind, **detector._settings)
            restored.restore(json.loads(json.dumps(detector.state())))
            assert parts(restored._river) == parts(detector._river)


def test_one_of_river_without_a_seed_gets_one_and_can_be_made_again() -> None:
    detector = make_detector(KSWIN(alpha=0.05, window_size=40, stat_size=15))
    twin = make_detector(json.loads(json.dumps(detector.settings())))
    assert answers(twin.fresh(), STREAM) == answers(detector.fresh(), STREAM)


@pytest.mark.parametrize("cls", [ADWIN, PageHinkley, KSWIN])
def test_one_that_has_seen_other_values_than_errors_is_refused(cls: type) -> None:
    used: Any = cls()
    for value in [0.5, -3.0, 7.5]:
        used.update(value)
    with pytest.raises(InputError, match=rf"this {cls.__name__} cannot be taken over"):
        make_detector(used)


@pytest.mark.parametrize(
    ("kind", "forged"),
    [
        ("ddm", {"_ps_min": 0.1}),
        ("ddm", {"_p_min": 0.1, "_ps_min": 0.1}),
        ("eddm", {"_last_error": 50}),
        ("eddm", {"_error_distances.mean._mean": 9.0}),
        ("hddm_a", {"_x_min.n": 50}),
    ],
)
def test_a_state_that_contradicts_itself_is_refused(kind: str, forged: dict[str, Any]) -> None:
    detector = RiverDetector(kind)
    with pytest.raises(InputError, match="its numbers contradict each other"):
        detector.restore({**detector.state(), **forged})


def test_only_rivers_own_names_make_one() -> None:
    with pytest.raises(InputError, match="river's detectors are adwin, ddm"):
        RiverDetector("hdddm")
    with pytest.raises(InputError, match="int is none of river's known detectors"):
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


@pytest.mark.parametrize("n_rows", [0, 1, 6, 33, 700, 5000])
def test_the_window_of_adwin_is_known_to_the_last_byte(n_rows: int) -> None:
    detector = ADWIN()
    for value in errors((n_rows, 0.3)):
        detector.update(value)
    names = ("delta", "clock", "max_buckets", "min_window_length", "grace_period")
    data = bytes(detector._helper.__getstate__())
    numbers = unpack_window(data)
    assert pack_window(numbers, {name: getattr(detector, name) for name in names}) == data
    assert numbers["width"] == detector.width == n_rows
    assert sum(sum(totals) for totals, _ in numbers["buckets"]) == detector.total


@pytest.mark.parametrize("change", [b"", b"\x00", b"\xff" * 200])
def test_a_window_laid_out_in_another_way_is_refused_when_it_is_written(change: bytes) -> None:
    class Other:
        def __getstate__(self) -> bytes:
            data = bytes(ADWIN()._helper.__getstate__())
            return data[:100] + change + data[101:] + change

    field = window(make_detector("adwin").settings())
    with pytest.raises(InputError, match=r"lays out ADWIN in an unknown way.*install river 0\.26"):
        field.write(Other())
