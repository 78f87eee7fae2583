"""A detector from its name, its settings, or an object that is one already.

>>> make_detector("page_hinkley").settings()["threshold"]
30.0
>>> make_detector({"kind": "every_rows", "n_rows": 500}).watches
'error'
>>> make_detector("adwim")
Traceback (most recent call last):
driftquilt.errors.InputError: there is no detector 'adwim'; did you mean 'adwin'? There are \
'adwin', 'dawidd', 'ddm', 'eddm', 'every_rows', 'hdddm', 'hddm_a', 'hddm_w', 'known', 'kswin', \
'never', 'page_hinkley'
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from driftquilt.detectors.base import Detector, Never, shown
from driftquilt.detectors.dawidd import DAWIDD
from driftquilt.detectors.foreign import RIVER_KINDS, Foreign, RiverDetector, has_shape, kind_of
from driftquilt.detectors.hdddm import HDDDM
from driftquilt.detectors.known import EveryRows, KnownDrifts
from driftquilt.errors import InputError
from driftquilt.text import suggest

__all__ = ["BY_NAME", "DETECTORS", "NEED_SETTINGS", "make_detector"]

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
        raise InputError(_unknown(kind))
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


def _unknown(kind: Any) -> str:
    return f"there is no detector {shown(kind)}; {suggest(kind, sorted(DETECTORS), limit=None)}"
