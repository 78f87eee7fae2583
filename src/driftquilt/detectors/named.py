"""Detectors by name, and those that look at nothing but the number of rows.

`make_detector` takes a name, settings, or an object that is a detector already. `Never` keeps the
stream one segment. `KnownDrifts(points)` fires at given rows: row p, counted from 0 at the start
of the stream, is the first of a new concept. The count goes on over drifts, so `fresh()` keeps it;
that is the one thing a fresh detector of this kind has "seen". `EveryRows(n)` fires at every n-th
row since it was made. A stream has to give them every row, from the first one on.

>>> make_detector("page_hinkley").settings()["threshold"]
30.0
>>> make_detector({"kind": "every_rows", "n_rows": 500}).watches
'error'
>>> make_detector("adwim")
Traceback (most recent call last):
driftquilt.errors.InputError: there is no detector 'adwim'; did you mean 'adwin'? There are \
'adwin', 'dawidd', 'ddm', 'eddm', 'every_rows', 'hdddm', 'hddm_a', 'hddm_w', 'known', 'kswin', \
'never', 'page_hinkley'
>>> detector = KnownDrifts([2, 5])
>>> rows = []
>>> for row in range(8):
...     detector.update(0.0)
...     if detector.drift_detected:
...         rows.append(row)
...         detector = detector.fresh()
>>> rows
[2, 5]
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Self

from driftquilt.detectors.base import (
    Detector,
    Watched,
    check_error,
    check_replay_limit,
    check_settings,
    count,
)
from driftquilt.detectors.dawidd import DAWIDD
from driftquilt.detectors.foreign import RIVER_KINDS, Foreign, RiverDetector, has_shape, kind_of
from driftquilt.detectors.hdddm import HDDDM
from driftquilt.errors import InputError
from driftquilt.text import shown, suggest

__all__ = [
    "BY_NAME",
    "DETECTORS",
    "NEED_SETTINGS",
    "EveryRows",
    "KnownDrifts",
    "Never",
    "make_detector",
]


class Never:
    """The detector that never fires: the stream stays one segment."""

    watches: Watched = "error"
    drift_detected = False

    def update(self, value: Any) -> None:
        check_error(value)

    def skip(self, n_rows: int) -> None:
        """Do as after so many updates."""

    def settings(self) -> dict[str, Any]:
        return {"kind": "never"}

    def fresh(self) -> Self:
        return type(self)()


class KnownDrifts:
    """Fires at the rows of the stream that are named in `points`, counted from 0."""

    watches: Watched = "error"

    def __init__(self, points: Iterable[int]) -> None:
        if isinstance(points, str) or not isinstance(points, Iterable):
            raise InputError(f"points are row numbers, such as [1000, 2000]; got {shown(points)}")
        self.points = tuple(_point(point) for point in points)
        self._points = frozenset(self.points)
        self._n_rows = 0
        self.drift_detected = False

    def update(self, value: Any) -> None:
        check_error(value)
        self.drift_detected = self._n_rows in self._points
        self._n_rows += 1

    def settings(self) -> dict[str, Any]:
        return {"kind": "known", "points": list(self.points)}

    def skip(self, n_rows: int) -> None:
        """Do as after so many updates."""
        self._n_rows += n_rows

    def start_at(self, row: int) -> None:
        """Take the next update for this row of the stream."""
        self._n_rows = row

    def fresh(self) -> Self:
        """Return a detector of the same points that counts on from the last row."""
        twin = type(self)(self.points)
        twin._n_rows = self._n_rows
        return twin


class EveryRows:
    """Fires at every n-th row."""

    watches: Watched = "error"

    def __init__(self, n_rows: int) -> None:
        self.n_rows: int = check_settings("every_rows", {"n_rows": n_rows}, {"n_rows": count(1)})[
            "n_rows"
        ]
        self._seen = 0

    @property
    def drift_detected(self) -> bool:
        return self._seen > 0 and self._seen % self.n_rows == 0

    def update(self, value: Any) -> None:
        check_error(value)
        self._seen += 1

    def settings(self) -> dict[str, Any]:
        return {"kind": "every_rows", "n_rows": self.n_rows}

    def skip(self, n_rows: int) -> None:
        """Do as after so many updates."""
        self._seen += n_rows

    def fresh(self) -> Self:
        return type(self)(self.n_rows)


def _point(value: Any) -> int:
    if not count().accepts(value):
        raise InputError(f"points are row numbers of at least 0, and one is {shown(value)}")
    return int(value)


#: How each kind is made from its settings.
DETECTORS: dict[str, Callable[..., Detector]] = {
    "dawidd": DAWIDD,
    "every_rows": EveryRows,
    "hdddm": HDDDM,
    "known": KnownDrifts,
    "never": Never,
    **{kind: partial(RiverDetector, kind) for kind in RIVER_KINDS},
}
_SEEDED = ("dawidd", "kswin")
#: Those that a name alone does not make, with settings that would do.
NEED_SETTINGS: dict[str, dict[str, Any]] = {
    "known": {"points": [1000, 2000]},
    "every_rows": {"n_rows": 1000},
}
#: Those that it does.
BY_NAME = sorted(DETECTORS.keys() - NEED_SETTINGS.keys())


def make_detector(spec: Any, seed: int | None = None) -> Detector:
    """Make a detector from a name, settings, or an object; `seed` is for those that draw.

    A seed that stands in the settings goes first. Without any, one is drawn, and `settings()`
    names it. One of our detectors, and any object that obeys the whole contract, comes back as
    it is; one of river's is copied with what it has seen; see `foreign` for the rest.
    """
    if isinstance(spec, str):
        return _from_settings({"kind": spec}, seed)
    if isinstance(spec, Mapping):
        return _from_settings(spec, seed)
    if isinstance(spec, type):
        raise InputError(f"{spec.__name__} is a class, not a detector; give {spec.__name__}()")
    if kind_of(spec) is not None:
        return RiverDetector.wrap(spec)
    if isinstance(spec, Detector):
        check_replay_limit(spec)
        return spec
    if has_shape(spec):
        return Foreign(spec)
    raise InputError(
        f"this is not a detector: {shown(spec)}; give a name ({', '.join(sorted(DETECTORS))}), its "
        "settings, or an object with update(value) and drift_detected"
    )


def _from_settings(settings: Mapping[str, Any], seed: int | None) -> Detector:
    kind = settings.get("kind")
    if kind == "foreign":
        raise InputError(
            f"a detector of class {shown(settings.get('class'))} cannot be made from its settings; "
            "give the object again"
        )
    if not isinstance(kind, str) or kind not in DETECTORS:
        names = suggest(kind, sorted(DETECTORS), limit=None)
        raise InputError(f"there is no detector {shown(kind)}; {names}")
    given = {name: value for name, value in settings.items() if name != "kind"}
    if kind in _SEEDED and given.get("seed") is None:
        given["seed"] = secrets.randbits(32) if seed is None else seed
    if not all(isinstance(name, str) for name in given):
        raise InputError(f"settings are named by text, but got {shown(given)}")
    try:
        return DETECTORS[kind](**given)
    except TypeError as error:
        example = {"kind": kind, **NEED_SETTINGS.get(kind, {})}
        raise InputError(
            f"the detector {kind!r} cannot be made from {shown(given)} ({error}); "
            f"give, for example, {example}"
        ) from error
