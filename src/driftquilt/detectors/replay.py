"""A detector that can be brought back: what it saw is kept, and fed to a fresh one.

After a restart a stream needs its detector as it was. A detector is not asked for its state, which
for river's is in compiled objects and for your own may be anywhere. Instead what it has seen since
it was fresh is part of a checkpoint: a bit for each error, or the rows, and these are fed to
a fresh detector.

That takes as long as feeding them the first time did: with ADWIN 1.4 µs a value, with most others
below 25 µs, with KSWIN and DAWIDD 1 to 4 milliseconds. So that a restart is bounded, a detector
that has seen `replay_limit` values without a drift is started again with the newest tenth of them;
that happens in the running stream and in the same row after a restart, so that both agree. The
limit is 200,000 values (0.3 s for ADWIN), 10,000 for the slow KSWIN and DAWIDD, and for detectors
that watch rows at most 500,000 numbers, or 8,000 rows if that is more.

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

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from driftquilt.detectors.base import Detector, Watched

__all__ = ["RecordedDetector"]

_LIMIT = 200_000
_NUMBERS, _MIN_ROWS = 500_000, 8_000


class RecordedDetector:
    """A detector and what it has seen since it was fresh; its length is how many values."""

    def __init__(self, detector: Detector) -> None:
        self._detector = detector
        self.watches: Watched = detector.watches
        self._counts = hasattr(detector, "skip")  # and values do not matter
        self._limit: int = getattr(detector, "replay_limit", _LIMIT)
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
