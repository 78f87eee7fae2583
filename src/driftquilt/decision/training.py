"""Train on some rows of a table and predict others, without copying the table.

Consecutive rows are sliced out of an Arrow table without a copy. If the rows are scattered, all
rows are given and the others get weight 0, which a classifier treats as if they were absent.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from driftquilt.core.sampling import Sampling
from driftquilt.core.segment import Segment, folds
from driftquilt.data.arrow import SMALLEST_PIECE, ArrowFrame, read_in_place
from driftquilt.data.column_types import BLOCK, present
from driftquilt.decision.layout import Labels, Rows
from driftquilt.quilt.classifier import QuiltClassifier
from driftquilt.quilt.executor import one_blas_thread
from driftquilt.quilt.method import Fitted

__all__ = ["LabelledTable"]

_FEW_RUNS = 64


@dataclass(frozen=True, eq=False)
class LabelledTable:
    """The columns to learn from, the label and the segment of each row."""

    features: pa.Table
    labels: Labels
    segments: pa.ChunkedArray
    in_place: ArrowFrame
    incomplete: frozenset[str]  # columns with missing values

    @classmethod
    def of(cls, features: pa.Table, labels: Labels, segments: Any) -> LabelledTable:
        """Prepare columns that have been checked."""
        if isinstance(segments, pa.Array):
            segments = pa.chunked_array([segments])
        names = features.column_names
        incomplete = frozenset(name for name in names if not present(features[name]).all())
        return cls(features, labels, segments, read_in_place(features), incomplete)

    def fit(self, clf: QuiltClassifier, rows: Rows) -> QuiltClassifier:
        """Train on these rows only; columns without a value among them are left out."""
        used = np.zeros(self.features.num_rows, dtype=bool)
        used[rows] = True
        X = self.features.select(self._names(used))
        with warnings.catch_warnings():  # `decide` reports both once, not at every training
            warnings.filterwarnings("ignore", message="segments appear in the order")
            warnings.filterwarnings("ignore", message="The number of unique classes is greater")
            bounds = _runs(used)
            if len(bounds) > _FEW_RUNS + len(used) // SMALLEST_PIECE:
                return self._fit_weighed(clf, X, used)
            parts = [(a, b - a) for a, b in bounds]
            chunks = [c for a, n in parts for c in self.segments.slice(a, n).chunks]
            segments = pa.chunked_array(chunks, self.segments.type)
            X = pa.concat_tables([X.slice(a, n) for a, n in parts])
            codes = [self.labels.codes[a : a + n] for a, n in parts]
            y = self.labels.to_fit(codes[0] if len(codes) == 1 else np.concatenate(codes))
            return clf.fit(X, y, segments=segments).forget_rows()

    def correct(self, clf: QuiltClassifier, rows: Rows) -> NDArray[np.bool_]:
        """Return whether the most probable class of each row is its label."""
        if not len(rows):
            return np.zeros(0, dtype=bool)
        parts = [
            clf.classes_[self._answers(clf, clf.model_, part)] == self.labels.of(part)
            for part in np.split(rows, range(BLOCK, len(rows), BLOCK))
        ]
        return np.concatenate(parts)

    def validation_accuracy(self, clf: QuiltClassifier, current: Rows) -> float:
        """Return the accuracy of each fold's model on the current rows it was not trained on.

        This is the mean over folds; of a very long segment only the rows held in training count.
        """
        encoder, shares = clf.encoder_, list[float]()
        assert encoder is not None  # noqa: S101
        sampling = Sampling(clf.score_rows, clf.score_every, clf.epoch_rows)
        width = encoder.width
        held = sampling.rows_to_keep(np.zeros(len(current), dtype=np.int32), 1, width)
        current = current if held is None else current[held]
        y = np.searchsorted(clf.classes_, self.labels.of(current))
        numbers = np.arange(len(current))  # stand for the rows, to see how folds divide them
        weight = np.ones(len(y), dtype=np.float32)
        divided = folds(Segment("", numbers[:, None], y, weight), clf.n_folds)
        for model, (_, validation) in zip(clf.model_.models, divided, strict=True):
            at = validation.X[:, 0]
            correct = self._answers(clf, model, current[at]) == y[at]
            shares.append(float(np.mean(correct)))
        return float(np.mean(shares))

    def _names(self, used: NDArray[np.bool_]) -> list[str]:
        return [
            name
            for name in self.features.column_names
            if name not in self.incomplete or (present(self.features[name]) & used).any()
        ]

    def _fit_weighed(
        self, clf: QuiltClassifier, X: pa.Table, used: NDArray[np.bool_]
    ) -> QuiltClassifier:
        codes = self.labels.codes
        # Unused rows get a label of a used row, so that no class is known that was not seen.
        known = np.where(used, codes, codes[int(np.argmax(used))]).astype(np.int32)
        weight = used.astype(np.float64)
        clf.fit(X, self.labels.to_fit(known), self.segments, sample_weight=weight)
        return clf.forget_rows()

    def _answers(self, clf: QuiltClassifier, model: Fitted, rows: Rows) -> NDArray[np.intp]:
        """Return the code of the most probable class of each row."""
        assert clf.encoder_ is not None  # noqa: S101
        with one_blas_thread():
            chances = model.predict_proba(clf.encoder_.transform(self.in_place.take(rows)))
        best: NDArray[np.intp] = chances.argmax(axis=1)
        return best


def _runs(used: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Return the first row and the end of each run of rows."""
    edges = np.flatnonzero(np.diff(used, prepend=False, append=False))
    return [(a, b) for a, b in edges.reshape(-1, 2).tolist()]
