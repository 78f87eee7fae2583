"""Every detector obeys the laws of `detectors/base.py`, because it can be made by name.

A detector is found through `DETECTORS`; one that needs arguments, or is too slow or too patient
for a stream of six hundred rows, has a line in `ARGUMENTS`.
"""

from __future__ import annotations

import copy
import importlib
import inspect
import json
import pkgutil
import random
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import driftquilt.detectors
from driftquilt.detectors import Detector, Foreign, RiverDetector, make_detector
from driftquilt.detectors.named import DETECTORS
from driftquilt.errors import InputError
from tests.detectors.streams import answers, errors, normal_rows

ARGUMENTS: dict[str, dict[str, Any]] = {
    "dawidd": {
        "max_rows": 60,
        "min_rows": 40,
        "check_every": 10,
        "p_max": 0.01,
        "n_permutations": 99,
        "seed": 3,
    },
    "every_rows": {"n_rows": 70},
    "hdddm": {"batch_rows": 20, "gamma": 2.0, "min_differences": 3, "max_batches": 4},
    "known": {"points": [0, 200, 401]},
    "kswin": {"alpha": 0.05, "window_size": 40, "stat_size": 15, "seed": 3},
    "page_hinkley": {"threshold": 10.0},
}
SILENT = {"never"}

each_kind = pytest.mark.parametrize("kind", sorted(DETECTORS))

ERRORS = errors((200, 0.1), (200, 0.8), (100, 0.05), (100, 0.6))
ROWS = normal_rows(600, 3)
ROWS[200:400] += 3
ROWS[500:, 1] -= 3
N_ROWS = 600

JUNK: list[Any] = [
    None, True, -1, 0, 3, 3.0, 10**400, 0.5, -1e308, float("nan"), float("inf"), "", "inf", "01",
    "AAAA", [], [[]], [1.0], [0] * 625, [-1] * 625, {}, {"shape": [10**9, 10**9], "float32": ""},
    {"shape": [1, 1], "float32": "AADAfw=="}, {"shape": [2, 3], "float32": "A" * 32},
]  # fmt: skip


def make(kind: str) -> Detector:
    return make_detector({"kind": kind, **ARGUMENTS.get(kind, {})})


def values_for(detector: Detector) -> list[Any]:
    return list(ROWS) if detector.watches == "row" else list(ERRORS)


def through_json(plain: Any) -> Any:
    return json.loads(json.dumps(plain, allow_nan=False))


def after(kind: str, n_rows: int) -> Detector:
    detector = make(kind)
    answers(detector, values_for(detector)[:n_rows])
    return detector


def test_every_exported_detector_can_be_made_by_name() -> None:
    made = {type(make(kind)) for kind in DETECTORS}
    package = driftquilt.detectors
    for found in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
        module = importlib.import_module(found.name)
        for name in module.__all__:
            thing = getattr(module, name)
            if inspect.isclass(thing) and hasattr(thing, "update") and thing is not Detector:
                assert thing in made | {Foreign}, f"{thing} has no line in DETECTORS"
    assert RiverDetector in made
    assert set(ARGUMENTS) <= set(DETECTORS)


@each_kind
def test_it_obeys_the_contract_and_has_found_nothing_yet(kind: str) -> None:
    detector = make(kind)
    assert isinstance(detector, Detector)
    assert detector.watches in ("error", "row")
    assert detector.drift_detected is False


@each_kind
def test_it_finds_a_change_in_the_stream_of_these_laws(kind: str) -> None:
    detector = make(kind)
    said = answers(detector, values_for(detector))
    assert set(map(type, said)) == {bool}
    assert any(said) == (kind not in SILENT)


@each_kind
def test_its_settings_make_it_again(kind: str) -> None:
    detector = make(kind)
    twin = make_detector(through_json(detector.settings()))
    assert detector.settings()["kind"] == kind
    assert type(twin) is type(detector)
    assert twin.settings() == detector.settings()
    assert answers(twin, values_for(twin)) == answers(detector, values_for(detector))


@each_kind
def test_restored_at_every_row_it_says_the_same(kind: str) -> None:
    detector, restored = make(kind), make(kind)
    for value in values_for(detector):
        state = through_json(restored.state())
        restored = make_detector(detector.settings())
        restored.restore(state)
        restored.update(value)
        detector.update(value)
        assert restored.drift_detected == detector.drift_detected
        assert restored.state() == detector.state()


@each_kind
@settings(max_examples=5, suppress_health_check=[HealthCheck.too_slow])
@given(cut=st.integers(0, N_ROWS), used_before=st.integers(0, 300))
def test_restored_at_any_row_it_goes_on_to_the_end_alike(
    kind: str, cut: int, used_before: int
) -> None:
    detector, restored = make(kind), after(kind, used_before)
    values = values_for(detector)
    answers(detector, values[:cut])
    restored.restore(through_json(detector.state()))
    assert restored.drift_detected == detector.drift_detected
    assert answers(restored, values[cut:]) == answers(detector, values[cut:])


@each_kind
def test_a_state_does_not_change_with_the_detector(kind: str) -> None:
    detector = after(kind, 150)
    state = detector.state()
    kept = copy.deepcopy(state)
    answers(detector, values_for(detector)[150:300])
    assert state == kept


@each_kind
def test_a_fresh_one_has_the_settings_and_has_seen_nothing(kind: str) -> None:
    detector = after(kind, 201)
    before = detector.state()
    fresh = detector.fresh()
    assert type(fresh) is type(detector)
    assert fresh.settings() == detector.settings()
    assert fresh.drift_detected is False
    if kind != "known":  # which numbers the rows of the stream
        assert fresh.state() == make_detector(detector.settings()).state()
    answers(fresh, values_for(fresh)[:100])
    assert detector.state() == before


@each_kind
def test_a_value_that_cannot_be_used_is_refused_and_leaves_no_trace(kind: str) -> None:
    detector = after(kind, 50)
    before = detector.state()
    nan, huge = float("nan"), 1e300
    bad: list[Any] = ["wrong", None, nan, {}, [[1.0]], np.zeros((2, 2)), [nan, 1, 1], ["a", 1, 1]]
    bad += [[1.0, 2.0], [], [huge, 1, 1], [1.0, None, 1], [1.0, [2.0], 1]]
    bad += [0.5, 2, -1.0, float("inf"), ROWS[0]] if detector.watches == "error" else [1.0, 0, True]
    for value in bad:
        with pytest.raises(InputError):
            detector.update(value)
    assert detector.state() == before


@each_kind
def test_a_state_of_something_else_is_refused_and_leaves_no_trace(kind: str) -> None:
    detector = after(kind, 50)
    before = detector.state()
    assert before is not None
    others: list[Any] = [None, [], "state", 3, {"a": 1}, {**before, "more": 1}]
    for bad in others:
        with pytest.raises(InputError, match=f"no state of the detector '{kind}'"):
            detector.restore(bad)
    for name in before:
        with pytest.raises(InputError, match="no state of the detector"):
            detector.restore({key: value for key, value in before.items() if key != name})
    assert detector.state() == before


def places(plain: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Where values stand in a state: keys and positions, at any depth."""
    inner = plain.items() if isinstance(plain, dict) else enumerate(plain[:8])
    found = []
    for key, value in inner:
        found.append((*path, key))
        if isinstance(value, (dict, list)):
            found += places(value, (*path, key))
    return found


def replaced(plain: Any, path: tuple[Any, ...], value: Any) -> Any:
    twin = copy.deepcopy(plain)
    inner = twin
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return twin


@each_kind
@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_a_forged_state_is_refused_or_can_be_used(kind: str, data: st.DataObject) -> None:
    detector = after(kind, data.draw(st.sampled_from([0, 33, 215])))
    before = detector.state()
    assert before is not None
    if not places(before):
        return
    forged = before
    for _ in range(data.draw(st.integers(1, 2))):
        path = data.draw(st.sampled_from(places(forged)))
        forged = replaced(forged, path, data.draw(st.sampled_from(JUNK)))
        if not places(forged):
            break
    try:
        detector.restore(forged)
    except InputError:
        assert detector.state() == before
        return
    values = values_for(detector)[180:260]
    if _fits(detector, values[0]):
        assert set(map(type, answers(detector, values))) == {bool}


def _fits(detector: Detector, value: Any) -> bool:
    """A forged window may be of another width than the rows that follow."""
    try:
        copy.deepcopy(detector).update(value)
    except InputError:
        return False
    return True


@each_kind
def test_memory_does_not_grow_with_the_stream(kind: str) -> None:
    detector = make(kind)
    long, sizes = values_for(detector) * 3, []
    for value in long:
        detector.update(value)
        sizes.append(len(json.dumps(detector.state())))
    assert max(sizes[900:]) <= 1.5 * max(sizes[:900]) + 200


@each_kind
def test_nothing_is_drawn_from_a_global_generator(kind: str) -> None:
    python, numpy = random.getstate(), np.random.get_state()[1].tobytes()  # type: ignore[index]  # noqa: NPY002
    after(kind, 300)
    assert random.getstate() == python
    assert np.random.get_state()[1].tobytes() == numpy  # type: ignore[index]  # noqa: NPY002


@each_kind
def test_it_keeps_no_hold_on_the_rows_it_was_given(kind: str) -> None:
    detector, twin = make(kind), make(kind)
    values = values_for(detector)
    for value in values:
        given_row = np.array(value)
        detector.update(given_row if detector.watches == "row" else value)
        given_row[...] = 0
    answers(twin, values)
    assert detector.state() == twin.state()
