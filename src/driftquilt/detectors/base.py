"""When did the stream change? A detector takes in every row and reports a change.

What it takes is its own choice, `watches`:

    "error"  whether the prediction of the row was wrong, 0.0 or 1.0
    "row"    the row itself, (d,) numbers, encoded and scaled; labels play no part

Its promises, which `tests/detectors/test_laws.py` checks for every detector:

- `drift_detected` speaks of the last update alone. After a drift a detector may be used on, but
  `fresh()` is what a stream goes on with.
- A value that cannot be used raises `InputError` and leaves the detector as it was.
- `settings()` makes the same detector again: `make_detector(detector.settings())`.
- The same values lead to the same answers: a detector of the same settings that is given all that
  another has seen goes on like it. A restart relies on it (`replay`), so a detector has no state
  to be written down. Nothing is drawn from a global generator.
- Memory is bounded.

A detector that looks at nothing but the number of updates has `skip(n_rows)` as well, and if it
numbers them from the start of the stream, `start_at(row)`. One whose updates are slow has
`replay_limit`, the values after which it is started again with the newest of them.

>>> detector = Never()
>>> for wrong in [1.0, 1.0, 1.0]:
...     detector.update(wrong)
>>> detector.drift_detected
False
>>> check_error(True), check_row([1, 2.5], width=2)
(1.0, array([1. , 2.5], dtype=float32))
>>> check_settings("every_rows", {"n_rows": 0}, {"n_rows": count(1)})
Traceback (most recent call last):
driftquilt.errors.InputError: n_rows of the detector 'every_rows' must be a whole number of at \
least 1, but got 0
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, Literal, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from driftquilt.errors import InputError

__all__ = [
    "FLAG",
    "Detector",
    "Field",
    "Never",
    "Watched",
    "check_error",
    "check_row",
    "check_settings",
    "choice",
    "count",
    "number",
    "shown",
]

Watched = Literal["error", "row"]
_LARGEST = 2**53  # whole numbers beyond are no longer exact in JSON readers that use floats


@runtime_checkable
class Detector(Protocol):
    """The contract; see the module for its promises."""

    @property
    def watches(self) -> Watched:
        """What `update` takes."""

    @property
    def drift_detected(self) -> bool:
        """Whether the last update found a change."""

    def update(self, value: Any) -> None:
        """Take in one row, or whether its prediction was wrong."""

    def settings(self) -> dict[str, Any]:
        """Return plain values: its `kind` and its parameters."""

    def fresh(self) -> Detector:
        """Return a detector of the same settings that has seen nothing."""


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


def check_error(value: Any) -> float:
    """Return 0.0 or 1.0, from any number or truth value that is equal to it."""
    if isinstance(value, (float, int, np.bool_, np.integer, np.floating)) and value in (0, 1):
        return float(value)
    raise InputError(
        f"this detector watches errors and got {shown(value)}; "
        "give 1.0 if the prediction of the row was wrong, else 0.0"
    )


def check_row(value: Any, width: int | None) -> NDArray[np.float32]:
    """Return a copy of the row as float32; `width` is None before the first row."""
    try:
        row = np.asarray(value)
    except ValueError as error:
        raise InputError(f"this is not a row of numbers: {shown(value)} ({error})") from error
    if row.ndim != 1 or row.dtype.kind not in "fiub" or not len(row):
        raise InputError(
            f"this detector watches rows and got {shown(value)} (shape {row.shape}, dtype "
            f"{row.dtype}); give one row as a vector of numbers"
        )
    if width is not None and len(row) != width:
        raise InputError(f"the row has {len(row)} numbers, those before had {width}; give as many")
    with np.errstate(over="ignore"):
        row = row.astype(np.float32)
    if not np.isfinite(row).all():
        place = int(np.flatnonzero(~np.isfinite(row))[0])
        raise InputError(
            f"number {place} of the row is {np.asarray(value)[place]}, which is not a finite "
            "float32; encode and scale rows first"
        )
    return row


def shown(value: Any) -> str:
    """Return the repr of a value, cut short, for a message."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."  # noqa: PLR2004


@dataclass(frozen=True)
class Field:
    """What a setting may be, in words and in code, and how it is read."""

    words: str
    accepts: Callable[[Any], bool]
    read: Callable[[Any], Any]


def _is_real(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def count(low: int = 0, high: int = _LARGEST) -> Field:
    """Describe a whole number; one written as a float is read as the number it is."""
    bounds = f"of at least {low}" if high == _LARGEST else f"from {low} to {high}"

    def accepts(value: Any) -> bool:
        whole = isinstance(value, Integral) or (isinstance(value, float) and value.is_integer())
        return whole and not isinstance(value, bool) and bool(low <= value <= high)

    return Field(f"a whole number {bounds}", accepts, int)


def number(low: float, high: float, words: str, *, inner: bool = False) -> Field:
    """Describe a finite number from `low` to `high`, or strictly between them."""

    def accepts(value: Any) -> bool:
        if not _is_real(value) or not low <= value <= high:  # as is NaN
            return False
        return not inner or bool(low < value < high)

    return Field(words, accepts, float)


def choice(*options: str) -> Field:
    """Describe one of some words."""
    return Field(f"one of {', '.join(options)}", lambda v: isinstance(v, str) and v in options, str)


FLAG = Field("true or false", lambda v: isinstance(v, bool), bool)


def check_settings(
    kind: str, given: Mapping[str, Any], fields: Mapping[str, Field]
) -> dict[str, Any]:
    """Return the settings of a detector as plain values; `InputError` names what is wrong."""
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
