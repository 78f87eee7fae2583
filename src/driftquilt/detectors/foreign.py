"""Any object that can be updated and asked, behind our contract.

It needs `update(value)` and `drift_detected`, a property or attribute; a class of another library
that has both will do. It watches errors unless its attribute `watches` says "row".

    fresh    its own `clone()`; else a copy made before the first update, put through its own
             `reset()` if it has one
    state    its own `state()` and `restore(state)` if it has both; else the state is None, and
             such a detector begins anew after a restart

Its settings only name its class: an object cannot be made from them, and has to be given again.

>>> class Streak:
...     drift_detected = False
...     n_wrong = 0
...     def update(self, wrong: float) -> None:
...         self.n_wrong = self.n_wrong + 1 if wrong else 0
...         self.drift_detected = self.n_wrong >= 3
>>> detector = Foreign(Streak())
>>> for wrong in [1.0, 1.0, 1.0]:
...     detector.update(wrong)
>>> detector.drift_detected, detector.fresh().drift_detected, detector.state()
(True, False, None)
"""

from __future__ import annotations

import copy
from typing import Any, Self

from driftquilt.detectors.base import Watched
from driftquilt.detectors.values import check_error, check_row, shown
from driftquilt.errors import InputError

__all__ = ["Foreign", "has_shape"]


def has_shape(thing: Any) -> bool:
    """Whether it can be updated and asked."""
    return callable(getattr(thing, "update", None)) and hasattr(thing, "drift_detected")


class Foreign:
    """A detector that was written elsewhere."""

    def __init__(self, detector: Any) -> None:
        _check_shape(detector)
        self.watches: Watched = getattr(detector, "watches", "error")
        self._detector = detector
        self._unused = None if _can(detector, "clone") else _copied(detector)
        self._width: int | None = None

    @property
    def drift_detected(self) -> bool:
        return bool(self._detector.drift_detected)

    def update(self, value: Any) -> None:
        if self.watches == "error":
            self._detector.update(check_error(value))
            return
        row = check_row(value, self._width)
        self._detector.update(row)
        self._width = len(row)

    def settings(self) -> dict[str, Any]:
        cls = type(self._detector)
        return {"kind": "foreign", "class": f"{cls.__module__}.{cls.__qualname__}"}

    def state(self) -> dict[str, Any] | None:
        if not _keeps_state(self._detector):
            return None
        state: dict[str, Any] = self._detector.state()
        return state

    def restore(self, state: dict[str, Any] | None) -> None:
        begun_anew = self._anew()
        if state is not None:
            if not _keeps_state(self._detector):
                raise InputError(
                    f"{self.settings()['class']} has no state() and restore(state) and cannot take "
                    f"{shown(state)}; restore None to begin anew"
                )
            begun_anew.restore(state)
        self._detector, self._width = begun_anew, None

    def fresh(self) -> Self:
        return type(self)(self._anew())

    def _anew(self) -> Any:
        if self._unused is None:
            return self._detector.clone()
        detector = _copied(self._unused)
        if _can(detector, "reset"):
            detector.reset()
        return detector


def _can(detector: Any, action: str) -> bool:
    return callable(getattr(detector, action, None))


def _keeps_state(detector: Any) -> bool:
    return _can(detector, "state") and _can(detector, "restore")


def _check_shape(detector: Any) -> None:
    name = type(detector).__name__
    if not has_shape(detector) or callable(detector.drift_detected):
        raise InputError(
            f"{name} is no detector: it needs update(value) and drift_detected, true or false "
            "without a call"
        )
    watches = getattr(detector, "watches", "error")
    if not isinstance(watches, str) or watches not in ("error", "row"):
        raise InputError(f"{name} watches {shown(watches)}; a detector watches 'error' or 'row'")


def _copied(detector: Any) -> Any:
    try:
        return copy.deepcopy(detector)
    except (TypeError, ValueError, AttributeError, NotImplementedError) as error:
        raise InputError(
            f"{type(detector).__name__} cannot be copied ({error}), and a stream needs a new one "
            "after each drift; give it a clone()"
        ) from error
