"""A detector is made from a name, from settings, or from an object."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from river import drift

from driftquilt.detectors import DAWIDD, Never, RiverDetector, make_detector
from driftquilt.errors import InputError
from tests.processes import PATIENCE

ADWIN: Any = drift.ADWIN  # which has no types


def test_one_of_ours_comes_back_as_it_is() -> None:
    detector = DAWIDD()
    assert make_detector(detector) is detector
    never = Never()
    assert make_detector(never, seed=4) is never


@pytest.mark.parametrize(
    ("name", "near"), [("adwim", "adwin"), ("ADWIN", "adwin"), ("hddm", "hdddm"), ("kwin", "kswin")]
)
def test_an_unknown_name_is_answered_with_the_nearest_and_all_names(name: str, near: str) -> None:
    with pytest.raises(InputError, match=f"did you mean '{near}.*page_hinkley"):
        make_detector(name)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("zzz", "there is no detector 'zzz'; there are 'adwin'"),
        ({}, "there is no detector None"),
        ({"kind": 3}, "there is no detector 3"),
        ("known", r"cannot be made .* give, for example, \{'kind': 'known', 'points'"),
        ({"kind": "never", "n": 1}, "the detector 'never' cannot be made"),
        ({"kind": "adwin", "delta": 2}, "delta of the detector 'adwin' must be a number between"),
        ({"kind": "adwin", "clock": 0}, "clock of the detector 'adwin' must be a whole number"),
        ({"kind": "adwin", "gamma": 2}, "'adwin' has no setting 'gamma'; it has delta, clock"),
        ({"kind": "eddm", "alpha": 0.5, "beta": 0.7}, "river refused the settings of 'eddm'"),
        ({"kind": "kswin", "stat_size": 60}, "it takes at most half of window_size"),
        ({"kind": "kswin", "seed": -1}, "seed of the detector 'kswin' must be"),
        ({"kind": "hdddm", "batch_rows": 10**9}, "batch_rows of the detector 'hdddm' must be"),
        ({"kind": "dawidd", "max_rows": 10**6}, "max_rows of the detector 'dawidd' must be"),
        ({"kind": "dawidd", "min_rows": 400}, "min_rows must lie between"),
        ({"kind": "dawidd", "p_max": 1e-5}, "set n_permutations to 100000 or more"),
        ({"kind": "adwin", 3: 4}, "settings are named by text"),
        (ADWIN, r"ADWIN is a class, not a detector; give ADWIN\(\)"),
        (None, "this is not a detector: None; give a name"),
        (3.5, "this is not a detector: 3.5"),
    ],
)
def test_what_is_no_detector_is_refused_with_what_to_do(spec: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        make_detector(spec)


@pytest.mark.parametrize("kind", ["kswin", "dawidd"])
def test_a_seed_is_taken_from_the_settings_then_the_caller_and_else_drawn(kind: str) -> None:
    assert make_detector({"kind": kind, "seed": 5}, seed=6).settings()["seed"] == 5
    assert make_detector({"kind": kind, "seed": None}, seed=6).settings()["seed"] == 6
    assert make_detector(kind, seed=6).settings()["seed"] == 6
    assert make_detector(kind).settings()["seed"] != make_detector(kind).settings()["seed"]


def test_a_seed_is_nothing_to_one_that_does_not_draw() -> None:
    assert "seed" not in make_detector("adwin", seed=6).settings()


def test_an_object_of_river_is_wrapped() -> None:
    detector = make_detector(ADWIN(delta=0.05))
    assert isinstance(detector, RiverDetector)
    assert detector.settings()["delta"] == 0.05


def test_making_one_of_ours_does_not_load_river() -> None:
    code = (
        "import sys; from driftquilt.detectors import make_detector as m;"
        "m('hdddm'); m('dawidd'); m('never'); m({'kind': 'every_rows', 'n_rows': 3});"
        "print([name for name in ('river', 'scipy', 'sklearn', 'torch') if name in sys.modules])"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=PATIENCE
    )
    assert run.stdout.strip() == "[]"
