"""When did the stream change? A detector is told about every row and says so.

What it is told is its own choice, `watches`:

    "error"  whether the prediction of the row was wrong, 0.0 or 1.0
    "row"    the row itself, (d,) numbers, encoded and scaled; labels play no part

Its promises, which `tests/detectors/test_laws.py` holds every detector to:

- `drift_detected` speaks of the last update alone. After a drift a detector may be used on, but
  `fresh()` is what a stream goes on with.
- A value that cannot be used raises `InputError` and leaves the detector as it was.
- `settings()` makes the same detector again: `make_detector(detector.settings())`.
- `state()` is everything it has seen. `restore` on a detector of the same settings goes on from
  there: `drift_detected` is the same at every later row. Both survive strict JSON. A state that
  is not one of its own raises `InputError` and leaves the detector as it was.
- Memory is bounded, and nothing is drawn from a global generator.

A foreign detector that cannot say what it has seen has the state None: it begins anew after a
restart.

>>> detector = Never()
>>> for wrong in [1.0, 1.0, 1.0]:
...     detector.update(wrong)
>>> detector.drift_detected
False
"""

from __future__ import annotations

from typing import Any, Literal, Protocol, Self, runtime_checkable

from driftquilt.detectors.fields import read_fields
from driftquilt.detectors.values import check_error

__all__ = ["Detector", "Never", "Watched"]

Watched = Literal["error", "row"]


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
        """Plain values: its `kind` and its parameters."""

    def state(self) -> dict[str, Any] | None:
        """Plain values: everything it has seen."""

    def restore(self, state: dict[str, Any] | None) -> None:
        """Go on from where a detector of the same settings stood."""

    def fresh(self) -> Detector:
        """A detector of the same settings that has seen nothing."""


class Never:
    """The detector that never fires: the stream stays one segment."""

    watches: Watched = "error"
    drift_detected = False

    def update(self, value: Any) -> None:
        check_error(value)

    def settings(self) -> dict[str, Any]:
        return {"kind": "never"}

    def state(self) -> dict[str, Any]:
        return {}

    def restore(self, state: dict[str, Any] | None) -> None:
        read_fields("never", state, {})

    def fresh(self) -> Self:
        return type(self)()
