"""The numbers a stream runs by, checked before it begins.

>>> StreamSettings(n_wait=0)
Traceback (most recent call last):
driftquilt.errors.InputError: n_wait is 0; it takes a whole number of at least 2
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, fields
from typing import Any

from driftquilt.errors import InputError

__all__ = ["StreamSettings"]

_LEAST = {
    "n_wait": 2,
    "segment_rows": 2,
    "max_segments": 1,
    "max_rows": 2,
    "max_models": 1,
    "max_waiting": 0,
    "max_columns": 1,
    "checkpoint_rows": 1,
}


@dataclass(frozen=True)
class StreamSettings:
    """How often a stream trains, and how much it keeps.

    n_wait           rows of a new segment to gather before a model is trained for it
    refresh          train again when the segment has grown by this factor; None: only once
    segment_rows     rows after which a segment is sealed without a drift
    max_segments     past segments to keep at most
    max_rows         rows of past segments to keep at most
    max_models       models to keep at most, for rollback
    max_waiting      predicted rows that may wait for their label
    max_columns      columns that rows may have in the life of the stream
    checkpoint_rows  rows between two checkpoints, which is what a restart learns anew at most
    """

    n_wait: int = 100
    refresh: float | None = 2.0
    segment_rows: int = 20_000
    max_segments: int = 200
    max_rows: int = 2_000_000
    max_models: int = 10
    max_waiting: int = 10_000
    max_columns: int = 10_000
    checkpoint_rows: int = 5_000

    def __post_init__(self) -> None:
        for name, least in _LEAST.items():
            value = getattr(self, name)
            if type(value) is not int or value < least:
                raise InputError.of_setting(name, value, f"a whole number of at least {least}")
        if self.refresh is not None and not _is_factor(self.refresh):
            raise InputError.of_setting("refresh", self.refresh, "a factor above 1, or None")
        if self.segment_rows < self.n_wait:
            raise InputError(
                f"segment_rows is {self.segment_rows}, fewer than the {self.n_wait} rows that "
                "n_wait gathers; a segment would end before a model is trained for it"
            )

        if self.max_rows < self.segment_rows:
            raise InputError(
                f"max_rows is {self.max_rows}, fewer than the {self.segment_rows} rows that one "
                "segment may have by segment_rows; raise the one or lower the other"
            )

    @classmethod
    def of(cls, **given: Any) -> StreamSettings:
        """The settings of these names; others are refused."""
        known = [field.name for field in fields(cls)]
        unknown = sorted(set(given) - set(known))
        if unknown:
            raise InputError(f"a stream has no setting {unknown[0]!r}; it has {', '.join(known)}")
        return cls(**given)

    def next_training(self, n_current: int) -> int | None:
        """With how many rows of the current segment to train again, after a training with some."""
        return None if self.refresh is None else math.ceil(n_current * self.refresh)

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)


def _is_factor(value: Any) -> bool:
    return type(value) in (int, float) and 1 < value < math.inf
