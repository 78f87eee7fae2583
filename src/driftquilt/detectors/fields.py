"""The settings and states of detectors as plain JSON, checked field by field.

A `Field` says in words what a value may be, and how it is written as plain JSON and read back.
Settings and states are dicts whose every key has its field; nothing else is accepted, and
nothing is built from a value before it was accepted.

JSON knows no infinity, so `LEVEL` writes it as a word. Arrays are base64 of float32 with their
shape: exact, and quick to write at every commit.

>>> read_fields("never", {"n_rows": -1}, {"n_rows": count()})
Traceback (most recent call last):
driftquilt.errors.InputError: this is no state of the detector 'never': n_rows is -1, not a whole \
number of at least 0; restore what state() of a detector with the same settings gave
>>> LEVEL.write(float("inf")), LEVEL.read("inf")
('inf', inf)
"""

from __future__ import annotations

import base64
import binascii
import math
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from driftquilt.detectors.values import shown
from driftquilt.errors import InputError

__all__ = [
    "FLAG",
    "LEVEL",
    "Field",
    "check_settings",
    "choice",
    "count",
    "number",
    "optional",
    "read_fields",
    "rows",
]

_LARGEST = 2**53  # whole numbers beyond are no longer exact in JSON readers that use floats

_HUGE = sys.float_info.max


def _same(value: Any) -> Any:
    return value


@dataclass(frozen=True)
class Field:
    """What one value may be, in words and in code, and its two ways through JSON."""

    words: str
    accepts: Callable[[Any], bool]
    read: Callable[[Any], Any] = _same
    write: Callable[[Any], Any] = _same


def _is_real(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def count(low: int = 0, high: int = _LARGEST) -> Field:
    """A whole number; one written as a float is read as the number it is."""
    bounds = f"of at least {low}" if high == _LARGEST else f"from {low} to {high}"

    def accepts(value: Any) -> bool:
        whole = isinstance(value, Integral) or (isinstance(value, float) and value.is_integer())
        return whole and not isinstance(value, bool) and bool(low <= value <= high)

    return Field(f"a whole number {bounds}", accepts, int, int)


def number(low: float, high: float, words: str, *, inner: bool = False) -> Field:
    """A finite number from `low` to `high`, or strictly between them."""

    def accepts(value: Any) -> bool:
        if not _is_real(value) or not low <= value <= high:  # as is NaN
            return False
        return not inner or bool(low < value < high)

    return Field(words, accepts, float, float)


def choice(*options: str) -> Field:
    """One of some words."""
    return Field(
        f"one of {', '.join(options)}", lambda v: isinstance(v, str) and v in options, str, str
    )


def optional(field: Field) -> Field:
    """What the field takes, or None."""
    return Field(
        f"null or {field.words}",
        lambda v: v is None or field.accepts(v),
        lambda v: None if v is None else field.read(v),
        lambda v: None if v is None else field.write(v),
    )


FLAG = Field("true or false", lambda v: isinstance(v, bool), bool, bool)

#: A number that may be infinite.
LEVEL = Field(
    'a number, "inf" or "-inf"',
    lambda v: (_is_real(v) and abs(v) <= _HUGE) or (isinstance(v, str) and v in ("inf", "-inf")),
    float,
    lambda v: float(v) if math.isfinite(v) else str(float(v)),
)


def rows(max_rows: int) -> Field:
    """Rows as an array (n, d) of float32, n up to `max_rows`; none at all is (0, 0)."""

    def accepts(value: Any) -> bool:
        if not isinstance(value, dict) or set(value) != {"shape", "float32"}:
            return False
        shape, text = value["shape"], value["float32"]
        if not isinstance(text, str) or not isinstance(shape, list) or len(shape) != 2:  # noqa: PLR2004
            return False
        if not all(count(0).accepts(n) for n in shape) or (shape[0] == 0) != (shape[1] == 0):
            return False
        n_bytes = 4 * int(shape[0]) * int(shape[1])
        if shape[0] > max_rows or len(text) != 4 * -(-n_bytes // 3):
            return False
        try:
            return bool(np.isfinite(_decode(value)).all())
        except (binascii.Error, ValueError):
            return False

    return Field(f"up to {max_rows} rows of float32 in base64", accepts, _decode, _encode)


def _encode(array: NDArray[np.float32]) -> dict[str, Any]:
    text = base64.b64encode(np.ascontiguousarray(array, dtype="<f4").tobytes()).decode()
    return {"shape": list(array.shape), "float32": text}


def _decode(value: Mapping[str, Any]) -> NDArray[np.float32]:
    data = base64.b64decode(value["float32"], validate=True)
    shape = [int(n) for n in value["shape"]]
    return np.frombuffer(data, dtype="<f4").reshape(shape).astype(np.float32)


def read_fields(kind: str, state: Any, fields: Mapping[str, Field]) -> dict[str, Any]:
    """The values of a state, or `InputError` for the first thing that is not as it should be."""
    if not isinstance(state, dict) or set(state) != set(fields):
        found = sorted(map(str, state)) if isinstance(state, dict) else shown(state)
        raise _no_state(kind, f"it holds {found}, not {sorted(fields)}")
    for name, field in fields.items():
        if not field.accepts(state[name]):
            raise _no_state(kind, f"{name} is {shown(state[name])}, not {field.words}")
    return {name: field.read(state[name]) for name, field in fields.items()}


def _no_state(kind: str, reason: str) -> InputError:
    return InputError(
        f"this is no state of the detector {kind!r}: {reason}; restore what state() of a detector "
        "with the same settings gave"
    )


def check_settings(
    kind: str, given: Mapping[str, Any], fields: Mapping[str, Field]
) -> dict[str, Any]:
    """The parameters of a detector, as plain values."""
    for name, value in given.items():
        if name not in fields:
            raise InputError(
                f"the detector {kind!r} has no setting {shown(name)}; "
                f"it has {', '.join(fields) or 'none'}"
            )
        if not fields[name].accepts(value):
            raise InputError(
                f"{name} of the detector {kind!r} must be {fields[name].words}, "
                f"but got {shown(value)}"
            )
    return {name: fields[name].read(value) for name, value in given.items()}
