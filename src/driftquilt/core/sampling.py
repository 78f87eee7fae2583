"""How many rows a training looks at: all in every epoch, as in the paper, or samples.

A segment's mean gradient is known well from some hundred of its rows, and changes little from
one epoch to the next; a pass over fewer rows is a shorter epoch, not a worse one. So a training
costs what the net needs to learn, however long the segments are. A new sample is drawn
each time: a fixed one would decide for its own rows.

Weights averaged over the last epochs predict better than those of any one epoch, and their
validation loss is less of a lottery.

>>> import numpy as np
>>> from driftquilt.core.segment import Segment
>>> may = Segment("may", np.zeros((5000, 2)), np.zeros(5000, np.int64), np.ones(5000, np.float32))
>>> sampling, rng = Sampling(score_rows=256, epoch_rows=1000), np.random.default_rng(0)
>>> [len(segment) for segment in sampling.to_score([may], rng)]
[256]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from driftquilt.core.segment import History, Pick, Segment, count_rows, sample

__all__ = ["EVERY_ROW", "MAX_HISTORY", "Sampling", "spread_out"]

# With hundreds of segments: rows to score in all and in each, segments to train on.
_MAX_SCORED, _MIN_SCORED, _MAX_TRAINED = 32_768, 16, 64
#: Rows of all past segments together that samples are drawn from.
MAX_HISTORY = 262_144
# To draw from: rows of a past segment, of the current one, and numbers in all.
_MAX_PAST, _MAX_CURRENT, _MAX_NUMBERS = 8_192, 65_536, 2**26


@dataclass(frozen=True)
class Sampling:
    """Which rows a training looks at; by default all of them in every epoch, as in the paper.

    score_rows   rows of each past segment that its scores are computed from, a new sample each
                 time; fewer where there are hundreds of segments
    score_every  epochs from one scoring to the next
    epoch_rows   rows that an epoch trains on: the current ones, or a sample of them if they are
                 more than half of it, and a sample of the selected; of hundreds of segments, a
                 sample of the segments too
    averaging    how much of the averaged weights an epoch keeps; 0 means no averaging. It is
                 the averaged model that is scored, validated and kept
    """

    score_rows: int | None = None
    score_every: int = 1
    epoch_rows: int | None = None
    averaging: float = 0.0

    @property
    def has_both(self) -> bool:
        """Whether scores and epochs both look at samples, so that not all rows are needed."""
        return self.score_rows is not None and self.epoch_rows is not None

    def rows_to_keep(
        self, codes: NDArray[np.integer[Any]], n_segments: int, width: int
    ) -> NDArray[np.intp] | None:
        """Return the numbers of the rows that samples are drawn from; None for all of them.

        `codes` is the segment of each row, the current one being the last. A training sees
        some ten thousand rows before it ends, so of much longer segments it takes rows at even
        distances; only those need to be in memory.
        """
        counts = count_rows(codes, n_segments)
        taken = self.count_rows_to_keep(counts, width)
        if taken is None:
            return None
        order = np.argsort(codes, kind="stable") if (codes[1:] < codes[:-1]).any() else None
        starts = np.cumsum(counts) - counts
        parts = zip(starts, counts, taken, strict=True)
        rows = np.concatenate([start + spread_out(n, k) for start, n, k in parts if k])
        return rows if order is None else order[rows]

    def count_rows_to_keep(self, counts: NDArray[np.intp], width: int) -> NDArray[np.intp] | None:
        """Return how many rows of each segment `rows_to_keep` takes; None for all."""
        if self.score_rows is None or self.epoch_rows is None:
            return None
        room = _MAX_NUMBERS // width
        share = min(room, MAX_HISTORY) // len(counts)
        limits = np.full(len(counts), max(min(_MAX_PAST, share), self.score_rows), dtype=np.intp)
        limits[-1] = max(min(_MAX_CURRENT, room // 4), self.epoch_rows)
        return None if (counts <= limits).all() else np.minimum(counts, limits)

    def to_validate(self, validation: Segment) -> Segment:
        """Return the rows that validate: at most those of two epochs, at even distances."""
        limit = len(validation) if self.epoch_rows is None else 2 * self.epoch_rows
        if len(validation) <= limit:
            return validation
        return validation.take(spread_out(len(validation), limit))

    def to_score(self, history: History, rng: np.random.Generator) -> Sequence[Segment]:
        """Return the past segments, as far as their scores look at them."""
        if self.score_rows is None or not history:
            return history
        n_rows = min(self.score_rows, max(_MAX_SCORED // len(history), _MIN_SCORED))
        sizes = np.array([len(segment) for segment in history])
        drawn = (rng.random((len(history), n_rows)) * sizes[:, None]).astype(np.intp)
        drawn.sort(axis=1)
        return [
            segment.take(rows) if size > n_rows else segment
            for segment, size, rows in zip(history, sizes.tolist(), drawn, strict=True)
        ]

    def to_train(
        self,
        selected: Sequence[Segment],
        current: Segment,
        rng: np.random.Generator,
        *,
        evenly: bool = False,
    ) -> list[Pick]:
        """Return the rows of one epoch: a sample of the selected segments and the current one.

        The current rows come first, up to half of the epoch; with `evenly` they are drawn as
        all others are.
        """
        if self.epoch_rows is None or sum(map(len, selected)) + len(current) <= self.epoch_rows:
            return [*map(Pick, selected), Pick(current)]
        if len(selected) > _MAX_TRAINED:
            drawn = rng.choice(len(selected), _MAX_TRAINED, replace=False)
            selected = [selected[number] for number in sorted(drawn.tolist())]
        sizes = np.array([len(segment) for segment in selected], dtype=np.int64)
        n_past = int(sizes.sum())
        n_current = min(len(current), max(self.epoch_rows - n_past, -(-self.epoch_rows // 2)))
        if evenly:
            share = len(current) / (n_past + len(current))
            n_current = max(1, int(rng.binomial(self.epoch_rows, share)))
        room = self.epoch_rows - n_current
        counts = rng.binomial(sizes, min(room / max(n_past, 1), 1.0)).tolist()
        pairs = zip(selected, counts, strict=True)
        picks = [sample(segment, count, rng) for segment, count in pairs if count]
        return [*picks, sample(current, n_current, rng)]

    def share_of_epoch(self, number: int) -> float:
        """How far the average moves after epoch `number`, counted from 1; the first is all."""
        return 1.0 if number == 1 else 1.0 - min(self.averaging, number / (number + 2))


#: Every row in every epoch, as in the paper.
EVERY_ROW = Sampling()


def spread_out(n_rows: int, n_taken: int) -> NDArray[np.intp]:
    """So many of a segment's rows, by number, at even distances.

    >>> spread_out(10, 4).tolist()
    [0, 2, 5, 7]
    """
    return np.arange(n_taken) * n_rows // n_taken
