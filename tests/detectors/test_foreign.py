"""Detectors of other libraries are taken by their shape."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest
from river import drift

from driftquilt.detectors import Foreign, RecordedDetector, make_detector
from driftquilt.errors import InputError
from tests.detectors.streams import answers, drifts


class Streak:
    """Fires at the third error in a row."""

    def __init__(self) -> None:
        self.n_wrong = 0
        self.drift_detected = False

    def update(self, wrong: float) -> object:
        self.n_wrong = self.n_wrong + 1 if wrong else 0
        self.drift_detected = self.n_wrong >= 3
        return self


class Resetting(Streak):
    def reset(self) -> None:
        self.n_wrong, self.drift_detected = 0, False


class Cloning(Streak):
    def __init__(self) -> None:
        super().__init__()
        self.lock = threading.Lock()  # cannot be copied

    def clone(self) -> Cloning:
        return Cloning()


class Far:
    """Watches rows; fires where one is far out."""

    watches = "row"
    last: Any = None

    @property
    def drift_detected(self) -> bool:
        return self.last is not None and abs(self.last).max() > 9

    def update(self, row: Any) -> None:
        self.last = row


ERRORS = [0.0, 1, 1, 1, 1, 1, 1, 0, 1, 1, 1]


@pytest.mark.parametrize("cls", [Streak, Resetting, Cloning])
def test_it_fires_as_it_would_alone_and_begins_anew_after_a_drift(cls: type) -> None:
    assert drifts(make_detector(cls()), ERRORS) == [3, 6, 10]
    assert [row for row, said in enumerate(answers(Foreign(cls()), ERRORS)) if said] == [
        3, 4, 5, 6, 10,
    ]  # fmt: skip


def test_one_that_was_used_before_begins_anew_if_it_can_be_reset() -> None:
    used = Resetting()
    used.update(1.0)
    assert drifts(make_detector(used).fresh(), [1.0, 1, 1]) == [2]


def test_one_may_watch_rows_and_then_gets_them_checked() -> None:
    detector = make_detector(Far())
    assert detector.watches == "row"
    assert drifts(detector, np.array([[0.0, 1], [0, -10], [1, 1]])) == [1]
    answers(detector, [[0.0, 1.0]])
    with pytest.raises(InputError, match="those before had 2"):
        detector.update([1.0, 2.0, 3.0])


@pytest.mark.parametrize("cls", [drift.binary.FHDDM, drift.NoDrift])
def test_river_detectors_without_a_name_here_are_taken_too(cls: Any) -> None:
    made = make_detector(cls())
    assert isinstance(made, Foreign)
    assert not any(answers(made, [0.0, 1.0] * 20))
    assert not made.fresh().drift_detected


def test_settings_name_its_class_and_cannot_make_it() -> None:
    settings = make_detector(Streak()).settings()
    assert settings == {"kind": "foreign", "class": f"{__name__}.Streak"}
    with pytest.raises(InputError, match="settings"):
        make_detector(settings)


def test_one_that_cannot_be_copied_is_refused_with_what_to_do() -> None:
    class Locked(Streak):
        def __init__(self) -> None:
            super().__init__()
            self.lock = threading.Lock()

    with pytest.raises(InputError, match=r"Locked .*clone\(\)"):
        make_detector(Locked())


def test_one_that_must_be_called_to_answer_is_refused() -> None:
    class Called:
        def update(self, wrong: float) -> None: ...

        def drift_detected(self) -> bool:
            return False

    with pytest.raises(InputError, match="true or false without a call"):
        make_detector(Called())


@pytest.mark.parametrize(
    ("name", "value"),
    [("watches", "labels"), ("replay_limit", 9), ("replay_limit", "many"), ("replay_limit", 1e4)],
)
def test_an_attribute_that_makes_no_sense_is_refused(name: str, value: Any) -> None:
    strange = Streak()
    setattr(strange, name, value)
    with pytest.raises(InputError, match=f"{name}|watches {value!r}"):
        make_detector(strange)


@pytest.mark.parametrize("cls", [Streak, Resetting])
def test_it_may_say_after_how_many_values_it_is_started_again(cls: type[Streak]) -> None:
    slow: Any = cls()
    slow.replay_limit = 50
    detector = RecordedDetector(make_detector(slow))
    lengths = []
    for _ in range(120):
        detector.update(0.0)
        lengths.append(len(detector))
    assert lengths[48:50] == [49, 5]
    assert max(lengths) == 49
