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
from driftquilt.detectors import (
    DAWIDD,
    DETECTORS,
    Detector,
    Foreign,
    RecordedDetector,
    RiverDetector,
    base,
    foreign,
    make_detector,
)
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
                assert thing in made | {Foreign, RecordedDetector}, thing
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
@settings(max_examples=5, suppress_health_check=[HealthCheck.too_slow])
@given(cut=st.integers(0, N_ROWS), n_before=st.integers(0, 300))
def test_replayed_it_goes_on_to_the_end_alike(kind: str, cut: int, n_before: int) -> None:
    detector, replayed = RecordedDetector(make(kind)), RecordedDetector(make(kind))
    detector.replay(np.zeros(0, dtype=np.uint8), 0, n_before)
    values = values_for(make(kind))
    answers(detector, values[:cut])
    replayed.replay(detector.pack(), len(detector), n_before + cut - len(detector))
    assert len(replayed) == len(detector)
    assert answers(replayed, values[cut:]) == answers(detector, values[cut:])


@each_kind
def test_one_that_sees_no_drift_for_long_is_started_again_with_the_newest(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(base, "_REPLAY_LIMIT", 100)
    monkeypatch.setattr(foreign, "_SLOW", 100)
    monkeypatch.setattr(DAWIDD, "replay_limit", 100)
    live = RecordedDetector(make(kind))
    for row, value in enumerate(values_for(make(kind))):
        live.update(value)
        assert len(live) <= 100 or not len(live.pack())  # which only counts
        if live.drift_detected:
            live = live.fresh()
        again = RecordedDetector(make(kind))
        again.replay(live.pack(), len(live), row + 1 - len(live))
        if row % 37 == 0:
            rest = values_for(make(kind))[row + 1 : row + 60]
            assert answers(again, rest) == answers(copy.deepcopy(live), rest)


@each_kind
def test_a_fresh_one_has_the_settings_and_has_seen_nothing(kind: str) -> None:
    detector = after(kind, 201)
    fresh = detector.fresh()
    assert type(fresh) is type(detector)
    assert fresh.settings() == detector.settings()
    assert fresh.drift_detected is False
    if kind != "known":  # which numbers the rows of the stream
        values = values_for(fresh)[:300]
        assert answers(fresh, values) == answers(make_detector(detector.settings()), values)


@each_kind
def test_a_value_that_cannot_be_used_is_refused_and_leaves_no_trace(kind: str) -> None:
    detector, twin = after(kind, 50), after(kind, 50)
    nan, huge = float("nan"), 1e300
    bad: list[Any] = ["wrong", None, nan, {}, [[1.0]], np.zeros((2, 2)), [nan, 1, 1], ["a", 1, 1]]
    bad += [[1.0, 2.0], [], [huge, 1, 1], [1.0, None, 1], [1.0, [2.0], 1]]
    bad += [0.5, 2, -1.0, float("inf"), ROWS[0]] if detector.watches == "error" else [1.0, 0, True]
    for value in bad:
        with pytest.raises(InputError):
            detector.update(value)
    assert answers(detector, values_for(detector)[50:]) == answers(twin, values_for(twin)[50:])


@each_kind
def test_nothing_is_drawn_from_a_global_generator(kind: str) -> None:
    python, numpy = random.getstate(), np.random.get_state()[1].tobytes()  # type: ignore[index]  # noqa: NPY002
    after(kind, 300)
    assert random.getstate() == python
    assert np.random.get_state()[1].tobytes() == numpy  # type: ignore[index]  # noqa: NPY002


@each_kind
def test_it_keeps_no_hold_on_the_rows_it_was_given(kind: str) -> None:
    detector, twin = make(kind), make(kind)
    values, said = values_for(detector), []
    for value in values:
        given_row = np.array(value)
        detector.update(given_row if detector.watches == "row" else value)
        said.append(detector.drift_detected)
        given_row[...] = 0
    assert said == answers(twin, values)
