"""The last rows of a stream as they were answered, for a score by a metric of your choice.

A row costs one write into a ring; the score is computed when somebody asks for it. Nothing here is
random or looks at a clock, so a restart, which learns the same rows again, has the same score.

    codes    (N,)    the class of each row, by order of appearance
    chances  (N, C)  what was answered before the row was learned; 0 for classes not seen by then

>>> from driftquilt.quilt.metrics import find_metric
>>> recent = RecentRows()
>>> for code, yes in [(0, 0.1), (1, 0.8), (0, 0.3), (1, 0.2)]:
...     recent.add(code, np.array([1 - yes, yes], dtype=np.float32))
>>> window = recent.freeze()
>>> window.score(find_metric("roc_auc"), ["no", "yes"])
0.75
>>> window.score(find_metric("roc_auc"), ["yes", "no"])     # the positive class is "yes"
0.75
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from driftquilt.data.frame import Label
from driftquilt.quilt.metrics import Metric, Predictions, shown_score

__all__ = ["RECENT", "RecentRows", "Window"]

#: Rows that a score of a stream is computed from, at most.
RECENT = 1_000


@dataclass(frozen=True, eq=False)
class Window:
    """The last rows at one moment, oldest first; it does not change."""

    codes: NDArray[np.int32]
    chances: NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.codes)

    def score(self, metric: Metric, classes: Sequence[Label]) -> float | None:
        """Return the score as people expect it, None where it is not defined.

        `classes` are all labels so far, in order of appearance. Answers are the most probable
        classes, as the stream's are. Of two classes, the second in sorted order is the positive
        one.
        """
        n_classes = len(classes)
        chances = np.zeros((len(self), n_classes))
        chances[:, : self.chances.shape[1]] = self.chances
        order = sorted(range(n_classes), key=lambda code: classes[code])
        place = np.empty(n_classes, dtype=np.intp)
        place[order] = np.arange(n_classes)
        answers = place[chances.argmax(axis=1)] if n_classes else np.zeros(0, dtype=np.intp)
        labels = np.array([classes[code] for code in order])
        model = Predictions(chances[:, order], answers)
        return shown_score(_of_known(metric, classes), place[self.codes], model, labels)


class RecentRows:
    """A ring of the last rows; columns are added as classes appear."""

    def __init__(self) -> None:
        self._n = 0  # rows added so far
        self._codes = np.zeros(RECENT, dtype=np.int32)
        self._chances = np.zeros((RECENT, 0), dtype=np.float32)

    def add(self, code: int, answer: NDArray[np.float32]) -> None:
        """Take in a row of this class and what was answered; nothing was before the first row."""
        if not len(answer):
            return
        if len(answer) > self._chances.shape[1]:
            n_new = len(answer) - self._chances.shape[1]
            self._chances = np.pad(self._chances, ((0, 0), (0, n_new)))
        at = self._n % RECENT
        self._codes[at] = code
        self._chances[at] = 0
        self._chances[at, : len(answer)] = answer
        self._n += 1

    def freeze(self) -> Window:
        """Return the rows as they are now."""
        at = np.arange(max(self._n - RECENT, 0), self._n) % RECENT
        return Window(self._codes[at], self._chances[at])

    def pack(self) -> dict[str, NDArray[Any]]:
        """Return what `unpack` takes."""
        window = self.freeze()
        return {"codes": window.codes, "chances": window.chances}

    def unpack(self, tensors: Mapping[str, NDArray[Any]]) -> None:
        """Go on from what `pack` returned; early checkpoints have nothing."""
        for code, answer in zip(tensors.get("codes", ()), tensors.get("chances", ()), strict=True):
            self.add(int(code), answer)


def _of_known(metric: Metric, classes: Sequence[Label]) -> Metric:
    """Return the metric without costs of labels that have not appeared, which no row can cause."""
    if metric.costs is None:
        return metric
    known = {*classes, *map(str, classes)}
    return replace(metric, costs={p: c for p, c in metric.costs.items() if known.issuperset(p)})
