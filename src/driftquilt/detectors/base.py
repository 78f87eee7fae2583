"""When did the stream change? A detector takes in every row and reports a change.

What it takes is its own choice, `watches`:

    "error"  whether the prediction of the row was wrong, 0.0 or 1.0
    "row"    the row itself, (d,) numbers, encoded and scaled; labels play no part

Its promises, which `tests/detectors/test_laws.py` checks for every detector:

- `drift_detected` is about the last update alone. After a drift a detector may be used on, but
  `fresh()` is what a stream goes on with.
- A value that cannot be used raises `InputError` and leaves the detector as it was.
- `settings()` makes the same detector again: `make_detector(detector.settings())`.
- The same values lead to the same answers: a detector of the same settings that is given all that
  another has seen goes on like it. A restart relies on it (`RecordedDetector`), so a detector has
  no state to be written down. Nothing is drawn from a global generator.
- Memory is bounded.

A detector that looks at nothing but the number of updates has `skip(n_rows)` as well, and if it
numbers them from the start of the stream, `start_at(row)`. One whose updates are slow has
`replay_limit`, the values after which it is started again with the newest of them.

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
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from driftquilt.errors import InputError
from driftquilt.text import shown

__all__ = [
    "FLAG",
    "Detector",
    "Field",
    "RecordedDetector",
    "Watched",
    "check_error",
    "check_replay_limit",
    "check_row",
    "check_settings",
    "choice",
    "count",
    "number",
]

Watched = Literal["error", "row"]
_REPLAY_LIMIT = 200_000  # values that are fed to a fresh detector after a restart
_REPLAY_LIMIT_MIN = 10  # a tenth of it is fed again
_NUMBERS, _MIN_ROWS = 500_000, 8_000  # the same for rows
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


class RecordedDetector:
    """A detector and what it has seen since it was fresh; its length is how many values.

    After a restart a stream needs its detector as it was. A detector is not asked for its state,
    which for river's is in compiled objects and for your own may be anywhere. Instead a checkpoint
    has what it has seen, a bit for each error or the rows, and a fresh detector is fed with it.

    That takes as long as feeding them the first time did: with ADWIN 1.4 µs a value, with most
    others below 25 µs, with KSWIN and DAWIDD 1 to 4 milliseconds. So that a restart is bounded, a
    detector that has seen `replay_limit` values without a drift is started again with the newest
    tenth of them, in the running stream and in the same row after a restart, so that both agree.
    The limit is 200,000 values (0.3 s for ADWIN), 10,000 for the slow KSWIN and DAWIDD, and for
    detectors that watch rows at most 500,000 numbers, or 8,000 rows if that is more.

    >>> from driftquilt.detectors import make_detector
    >>> detector = RecordedDetector(make_detector("adwin"))
    >>> for row in range(210):
    ...     detector.update(float(row >= 200))
    >>> values = detector.pack()
    >>> again = RecordedDetector(make_detector("adwin"))
    >>> again.replay(values, len(detector))
    >>> len(values), len(again) == len(detector) == 210
    (27, True)
    """

    def __init__(self, detector: Detector) -> None:
        self._detector = detector
        self.watches: Watched = detector.watches
        self._counts = hasattr(detector, "skip")  # and values do not matter
        self._limit: int = getattr(detector, "replay_limit", _REPLAY_LIMIT)
        self._n_values = 0
        self._errors = bytearray()
        self._rows: list[NDArray[np.float32]] = []

    def __len__(self) -> int:
        return self._n_values

    @property
    def drift_detected(self) -> bool:
        """Whether the last update found a change."""
        return self._detector.drift_detected

    def update(self, value: Any) -> None:
        """Take in one row, or whether its prediction was wrong."""
        self._detector.update(value)
        self._n_values += 1
        if self._counts:
            return
        if self.watches == "error":
            self._errors.append(int(value))
        else:
            self._rows.append(np.array(value, dtype=np.float32))
        if self._n_values >= self._limit and not self._detector.drift_detected:
            self._start_again()
        elif self._n_values == 1 and self._rows:
            self._limit = min(self._limit, max(_MIN_ROWS, _NUMBERS // len(self._rows[0])))

    def fresh(self) -> RecordedDetector:
        """Return a detector of the same settings that has seen nothing."""
        return RecordedDetector(self._detector.fresh())

    def pack(self) -> NDArray[Any]:
        """Return what it has seen: bits (n / 8,) uint8 of errors, or rows (n, d) float32."""
        if self._rows:
            return np.stack(self._rows)
        return np.packbits(np.frombuffer(self._errors, dtype=np.uint8))

    def replay(self, packed: NDArray[Any], n_values: int, n_before: int = 0) -> None:
        """Take in what `pack` gave, `n_values` that came after `n_before` rows of the stream."""
        self._n_values = n_values
        if hasattr(self._detector, "start_at"):
            self._detector.start_at(n_before)
        if hasattr(self._detector, "skip"):
            self._detector.skip(n_values)
        elif self.watches == "error":
            self._errors = bytearray(np.unpackbits(packed, count=n_values).tobytes())
        else:
            self._rows = list(packed)
        self._feed()

    def _start_again(self) -> None:
        n_newest = self._limit // 10
        del self._errors[:-n_newest], self._rows[:-n_newest]
        self._n_values = n_newest
        self._detector = self._detector.fresh()
        self._feed()

    def _feed(self) -> None:
        for value in self._errors or self._rows:
            self._detector.update(value)


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


def check_replay_limit(detector: Any) -> None:
    """Refuse a detector whose `replay_limit` is not a number of values."""
    limit = getattr(detector, "replay_limit", _REPLAY_LIMIT)
    if type(limit) is not int or limit < _REPLAY_LIMIT_MIN:
        raise InputError(
            f"replay_limit of {type(detector).__name__} is {shown(limit)}; give a whole number of "
            f"at least {_REPLAY_LIMIT_MIN}"
        )


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
