"""What river's detectors hold, attribute by attribute, as plain JSON and back.

A table names every attribute that an update reads or writes, by its path from the detector, and
the field it takes; no other attribute is ever touched, and no class is named in a state. So a
state can only fill a detector that exists already. The fields are narrow enough that no state
they accept makes a later update fail: means of errors lie between 0 and 1, a part is not longer
than the whole. The parts that are compiled are the matter of `river_bytes`.

>>> fields_of("ddm", {})["_p._mean"].words
'a number from 0 to 1'
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Any

from driftquilt.detectors.fields import FLAG, LEVEL, Field, count, number, optional, read_fields
from driftquilt.detectors.river_bytes import average, window
from driftquilt.errors import InputError

__all__ = ["fields_of", "fill", "write_out"]

Fields = dict[str, Field]

_SHARE = number(0, 1, "a number from 0 to 1")
_AMOUNT = number(0, 1e300, "a number of at least 0")
_WORDS = 624  # of 32 bits, in the state of Python's generator


def write_out(detector: Any, fields: Mapping[str, Field]) -> dict[str, Any]:
    """The attributes of a river detector as plain values, by path."""
    return {path: field.write(attrgetter(path)(detector)) for path, field in fields.items()}


def fill(detector: Any, kind: str, state: Any, fields: Mapping[str, Field]) -> None:
    """Set the attributes of a river detector from a state, all of them or none."""
    values = read_fields(kind, state, fields)
    if kind in _CONTRADICTS and _CONTRADICTS[kind](values):
        raise InputError(
            f"this is no state of the detector {kind!r}: its numbers contradict each other; "
            "restore what state() of a detector with the same settings gave"
        )
    for path, value in values.items():
        parent, _, name = path.rpartition(".")
        owner = attrgetter(parent)(detector) if parent else detector
        if isinstance(value, bytes):  # a compiled part, which takes nothing else
            getattr(owner, name).__setstate__(value)
        else:
            setattr(owner, name, value)


def fields_of(kind: str, settings: Mapping[str, Any]) -> Fields:
    """Path and field of everything that a detector of this kind has seen."""
    return _FIELDS[kind](settings)


def _under(parent: str, fields: Fields) -> Fields:
    return {f"{parent}.{name}": field for name, field in fields.items()}


def _errors(size: int) -> Field:
    """The errors in a window, oldest first, as a text of digits."""
    return Field(
        f"a text of up to {size} digits 0 and 1",
        lambda v: isinstance(v, str) and len(v) <= size and set(v) <= {"0", "1"},
        lambda v: deque(map(float, v), maxlen=size),
        lambda v: "".join({0: "0", 1: "1"}.get(error, "?") for error in v),
    )


def _is_generator(value: Any) -> bool:
    word, place = count(0, 2**32 - 1), count(0, _WORDS)
    sized = isinstance(value, list) and len(value) == _WORDS + 1
    return sized and all(map(word.accepts, value[:-1])) and place.accepts(value[-1])


def _read_generator(value: list[int]) -> random.Random:
    rng = random.Random(0)  # noqa: S311  no secret
    rng.setstate((3, tuple(int(word) for word in value), None))
    return rng


_GENERATOR = Field(
    "the 625 words of Python's generator",
    _is_generator,
    _read_generator,
    lambda rng: list(rng.getstate()[1]),
)

_MEAN = {"n": count(), "_mean": _SHARE}
_DRIFT = {"_drift_detected": FLAG}
_ALARMS = {**_DRIFT, "_warning_detected": FLAG}
_PAGE_HINKLEY = {
    **_DRIFT,
    **_under("_x_mean", _MEAN),
    "_sum_increase": LEVEL,
    "_sum_decrease": LEVEL,
    "_min_increase": LEVEL,
    "_max_decrease": LEVEL,
}
_DDM = {
    **_ALARMS,
    **_under("_p", _MEAN),
    "_p_min": optional(_SHARE),
    "_s_min": optional(_SHARE),
    "_ps_min": LEVEL,
}
_EDDM = {
    **_ALARMS,
    "_n": count(),
    "_last_error": count(),
    "_n_errors": count(),
    "_error_distances.mean.n": count(),
    "_error_distances.mean._mean": _AMOUNT,
    "_error_distances._S": _AMOUNT,
    "_p2s_prime_max": number(-1, 1e300, "a number of at least -1"),
}
_HDDM_A = {
    **_ALARMS,
    **_under("_x_min", _MEAN),
    **_under("_x_max", _MEAN),
    **_under("_z", _MEAN),
}


def _kswin(settings: Mapping[str, Any]) -> Fields:
    seen = {"p_value": _SHARE, "n": count(), "window": _errors(settings["window_size"])}
    return {**_DRIFT, **seen, "_rng": _GENERATOR}


def _hddm_w(settings: Mapping[str, Any]) -> Fields:
    sample = {"_ewma._ewmean": average(settings), "_is_init": FLAG, "_ibc": _SHARE}
    fields = {**_ALARMS, "_incr_cutpoint": LEVEL, "_decr_cutpoint": LEVEL}
    for name in ("_total", "_s1_incr", "_s2_incr", "_s1_decr", "_s2_decr"):
        fields |= _under(name, sample)
    return fields


_FIELDS: dict[str, Callable[[Mapping[str, Any]], Fields]] = {
    "adwin": lambda settings: {**_DRIFT, "_helper": window(settings)},
    "ddm": lambda _: _DDM,
    "eddm": lambda _: _EDDM,
    "hddm_a": lambda _: _HDDM_A,
    "hddm_w": _hddm_w,
    "kswin": _kswin,
    "page_hinkley": lambda _: _PAGE_HINKLEY,
}

#: What must not be, lest a later update divide by zero or take the root of a negative number.
_CONTRADICTS: dict[str, Callable[[Mapping[str, Any]], bool]] = {
    "ddm": lambda v: (
        (v["_p_min"] is None) != (v["_s_min"] is None)
        or (v["_p_min"] is None) != (v["_ps_min"] == float("inf"))
    ),
    "eddm": lambda v: (
        v["_last_error"] > v["_n"]
        or (v["_error_distances.mean.n"] == 0 != v["_error_distances.mean._mean"])
    ),
    "hddm_a": lambda v: bool(max(v["_x_min.n"], v["_x_max.n"]) > v["_z.n"]),
}
