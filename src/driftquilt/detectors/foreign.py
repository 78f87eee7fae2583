"""Detectors that were written elsewhere, behind our contract: river's by name, and any object.

river's detectors all watch errors. What they find, and their settings here:

    adwin         a window that is cut where its older and newer means differ; looks both ways,
                  so it also fires when errors become rarer
    ddm           errors above the lowest level so far by three deviations
    eddm          errors that come closer together; noisy, fires often without a reason
    hddm_a        the mean of all errors so far against its lowest, by Hoeffding's bound
    hddm_w        the same with a mean that forgets: often sooner, and more often for nothing
    kswin         the newest errors against a sample of those before, by a Kolmogorov-Smirnov
                  test at every row, which makes it slow; looks both ways
    page_hinkley  how far errors have run above their mean

They are river's own defaults but for one: river's Page-Hinkley test is set for values of any
size and fires in both directions. Here it looks for rises alone, allows for 0.02 in the rate of
errors and fires at a sum of 30, which a rise by 0.3 makes in about a hundred rows.

A river object may be given in place of a name: it is copied with its settings and what it has
seen, which a restart of a stream does not know of. KSWIN draws samples; without a seed it gets one,
which `settings()` then names, so that it can be made again, and has seen nothing.

Any other object needs `update(value)` and `drift_detected`, a property or attribute; a class of
another library that has both will do. It watches errors unless its attribute `watches` says "row",
and may have a `replay_limit`, as `base` says. `fresh` is its own `clone()`; else a copy made before
the first update, put through its own `reset()` if it has one. Its settings only name its class: an
object cannot be made from them, and has to be given again.

>>> detector = RiverDetector("adwin", delta=0.01)
>>> for row in range(400):
...     detector.update(row >= 200)
...     if detector.drift_detected:
...         break
>>> row
223
>>> detector.fresh().settings()["delta"]
0.01
>>> class Streak:
...     drift_detected = False
...     n_wrong = 0
...     def update(self, wrong: float) -> None:
...         self.n_wrong = self.n_wrong + 1 if wrong else 0
...         self.drift_detected = self.n_wrong >= 3
>>> detector = Foreign(Streak())
>>> for wrong in [1.0, 1.0, 1.0]:
...     detector.update(wrong)
>>> detector.drift_detected, detector.fresh().drift_detected
(True, False)
"""

from __future__ import annotations

import copy
import secrets
from functools import cache
from typing import Any, Self

from driftquilt.detectors.base import (
    FLAG,
    Watched,
    check_error,
    check_replay_limit,
    check_row,
    check_settings,
    choice,
    count,
    number,
)
from driftquilt.errors import InputError
from driftquilt.text import shown

__all__ = ["RIVER_KINDS", "Foreign", "RiverDetector", "has_shape", "kind_of"]

_INNER = number(0, 1, "a number between 0 and 1", inner=True)
_SHARE = number(0, 1, "a number from 0 to 1")
_AMOUNT = number(0, 1e9, "a number from 0 to 1e9")
_COUNT = count(1, 2**31 - 1)
_HDDM = {"drift_confidence": _INNER, "warning_confidence": _INNER, "two_sided_test": FLAG}

_SETTINGS = {
    "adwin": {
        "delta": _INNER,
        "clock": _COUNT,
        "max_buckets": count(2, 1000),
        "min_window_length": _COUNT,
        "grace_period": _COUNT,
    },
    "ddm": {"warm_start": _COUNT, "warning_threshold": _AMOUNT, "drift_threshold": _AMOUNT},
    "eddm": {"warm_start": _COUNT, "alpha": _SHARE, "beta": _SHARE},
    "hddm_a": _HDDM,
    "hddm_w": {**_HDDM, "lambda_val": _INNER},
    "kswin": {
        "alpha": _INNER,
        "window_size": count(2, 100_000),
        "stat_size": count(1, 50_000),
        "seed": count(0, 2**32 - 1),
    },
    "page_hinkley": {
        "min_instances": _COUNT,
        "delta": _AMOUNT,
        "threshold": _AMOUNT,
        "alpha": _SHARE,
        "mode": choice("up", "down", "both"),
    },
}

RIVER_KINDS = tuple(_SETTINGS)

#: Where we differ from river's own defaults.
_DEFAULTS: dict[str, dict[str, Any]] = {
    "page_hinkley": {"delta": 0.02, "threshold": 30.0, "mode": "up"}
}


_SLOW = 10_000  # values that one with slow updates may see before it is started again


@cache
def _classes() -> dict[str, Any]:
    from river import drift  # noqa: PLC0415  # it takes a second

    errors = drift.binary
    classes = (
        drift.ADWIN, errors.DDM, errors.EDDM, errors.HDDMA, errors.HDDMW, drift.KSWIN,
        drift.PageHinkley,
    )  # fmt: skip
    return dict(zip(RIVER_KINDS, classes, strict=True))


def kind_of(thing: Any) -> str | None:
    """Return the name of a river detector that is known here, else None."""
    if not type(thing).__module__.startswith("river."):
        return None  # without importing river to find out
    return next((kind for kind, cls in _classes().items() if type(thing) is cls), None)


class RiverDetector:
    """One of river's detectors, by its short name; the rest are its settings."""

    watches: Watched = "error"

    def __init__(self, kind: str, **settings: Any) -> None:
        if kind not in _SETTINGS:
            raise InputError(
                f"river's detectors are {', '.join(RIVER_KINDS)} here, but got {kind!r}"
            )
        given = check_settings(kind, settings, _SETTINGS[kind])
        if kind == "kswin":
            given.setdefault("seed", secrets.randbits(32))
        self.kind = kind
        self._river = _make(kind, {**_DEFAULTS.get(kind, {}), **given})
        self._settings = {name: getattr(self._river, name) for name in _SETTINGS[kind]}
        if kind == "kswin":  # which tests at every row
            self.replay_limit = _SLOW

    @classmethod
    def wrap(cls, detector: Any) -> Self:
        """Copy a river detector with its settings and all that it has seen."""
        kind = kind_of(detector)
        if kind is None:
            raise InputError(f"{type(detector).__name__} is not one of river's known detectors")
        settings = {name: getattr(detector, name) for name in _SETTINGS[kind]}
        own = cls(kind, **{name: value for name, value in settings.items() if value is not None})
        if None not in settings.values():
            own._river = copy.deepcopy(detector)
        return own

    @property
    def drift_detected(self) -> bool:
        return bool(self._river.drift_detected)

    def update(self, value: Any) -> None:
        self._river.update(check_error(value))

    def settings(self) -> dict[str, Any]:
        return {"kind": self.kind, **self._settings}

    def fresh(self) -> Self:
        return type(self)(self.kind, **self._settings)


def _make(kind: str, settings: dict[str, Any]) -> Any:
    try:
        detector = _classes()[kind](**settings)
    except ValueError as error:
        raise InputError(f"river refused the settings of {kind!r}: {error}") from error
    if kind == "kswin" and 2 * detector.stat_size > detector.window_size:
        raise InputError(
            f"stat_size of the detector 'kswin' is {detector.stat_size}; it takes at most half of "
            f"window_size, which is {detector.window_size}"
        )
    return detector


def has_shape(thing: Any) -> bool:
    """Return whether it can be updated and asked."""
    return callable(getattr(thing, "update", None)) and hasattr(thing, "drift_detected")


class Foreign:
    """A detector that was written elsewhere."""

    def __init__(self, detector: Any) -> None:
        _check_shape(detector)
        self.watches: Watched = getattr(detector, "watches", "error")
        if hasattr(detector, "replay_limit"):
            self.replay_limit: int = detector.replay_limit
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

    def fresh(self) -> Self:
        if self._unused is None:
            return type(self)(self._detector.clone())
        detector = _copied(self._unused)
        if _can(detector, "reset"):
            detector.reset()
        return type(self)(detector)


def _can(detector: Any, action: str) -> bool:
    return callable(getattr(detector, action, None))


def _check_shape(detector: Any) -> None:
    name = type(detector).__name__
    if not has_shape(detector) or callable(detector.drift_detected):
        raise InputError(
            f"{name} is not a detector: it needs update(value) and drift_detected, true or false "
            "without a call"
        )
    watches = getattr(detector, "watches", "error")
    if not isinstance(watches, str) or watches not in ("error", "row"):
        raise InputError(f"{name} watches {shown(watches)}; a detector watches 'error' or 'row'")
    check_replay_limit(detector)


def _copied(detector: Any) -> Any:
    try:
        return copy.deepcopy(detector)
    except (TypeError, ValueError, AttributeError, NotImplementedError) as error:
        raise InputError(
            f"{type(detector).__name__} cannot be copied ({error}), and a stream needs a new one "
            "after each drift; give it a clone()"
        ) from error
