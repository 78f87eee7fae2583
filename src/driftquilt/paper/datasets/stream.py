"""A labelled stream in segments: the record every data set comes as.

    features  (n, d)  float64, unscaled
    labels    (n,)    class codes, int64
    segments  (n,)    segment numbers from 0, rising, int64

>>> stream = Stream("toy", np.ones((3, 2)), np.array([0, 1, 0]), np.array([0, 0, 1]), "nobody")
>>> stream.feature_names, stream.class_names, stream.n_segments
(('x0', 'x1'), ('0', '1'), 2)
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field, replace
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from driftquilt.data.frame import Frame
from driftquilt.errors import InputError

__all__ = ["Stream", "check_count", "restore_order", "shuffle_inside"]


@dataclass(frozen=True, eq=False)
class Stream:
    """Rows in stream order, cut into segments.

    `current_share` is the part of an average segment whose labels are known when a model is
    trained for it; the paper takes a tenth, and a fifth for its shortest streams.

    `drift_points` are the rows at which a new concept begins, None where that is not known or
    the concept never rests. `sha256` is what `checksum()` has to give, None where no sum is on
    record, as for a part of a stream. Names that are not given are made up: x0, x1, … for
    features, the numbers for classes and segments.

    `frame` has all features of a file of your own, text and gaps included; `features` are then
    its numbers alone. None means complete numbers, as in the paper. `notes` say how the file was
    read.
    """

    name: str
    features: NDArray[np.float64] = field(repr=False)
    labels: NDArray[np.int64] = field(repr=False)
    segments: NDArray[np.int64] = field(repr=False)
    citation: str = field(repr=False)
    current_share: float = 0.1
    feature_names: tuple[str, ...] = field(default=(), repr=False)
    class_names: tuple[str, ...] = ()
    segment_names: tuple[str, ...] = field(default=(), repr=False)
    drift_points: tuple[int, ...] | None = field(default=None, repr=False)
    sha256: str | None = field(default=None, repr=False)
    frame: Frame | None = field(default=None, repr=False)
    notes: tuple[str, ...] = field(default=(), repr=False)

    def __post_init__(self) -> None:
        made_up = {
            "feature_names": (f"x{j}" for j in range(self.features.shape[1])),
            "class_names": map(str, range(int(self.labels.max()) + 1)),
            "segment_names": map(str, range(self.n_segments)),
        }
        for name, names in made_up.items():
            if not getattr(self, name):
                object.__setattr__(self, name, tuple(names))

    @property
    def n_segments(self) -> int:
        return int(self.segments[-1]) + 1

    def checksum(self) -> str:
        """SHA-256 of the features row by row, the labels and the segments, 8 bytes a value.

        Columns of text come after that, as JSON.
        """
        digest = hashlib.sha256(np.ascontiguousarray(self.features, dtype="<f8").tobytes())
        for codes in (self.labels, self.segments):
            digest.update(np.ascontiguousarray(codes, dtype="<i8").tobytes())
        if self.frame is not None:
            texts = {name: list(values) for name, values in self.frame.texts.items()}
            digest.update(json.dumps([self.feature_names, texts]).encode())
        return digest.hexdigest()

    def verify(self) -> bool:
        """Whether the checksum was there to compare, and held; InputError if it did not hold."""
        if self.sha256 is None:
            return False
        found = self.checksum()
        if found != self.sha256:
            raise InputError(
                f"{self.name} has the SHA-256 {found}, but should have {self.sha256}: these are "
                "not the published rows"
            )
        return True

    def first(self, n_segments: int) -> Stream:
        """Return the stream up to the end of its segment number `n_segments` - 1."""
        check_count("n_segments", n_segments)
        if n_segments > self.n_segments:
            raise InputError(f"{self.name} has {self.n_segments} segments, not {n_segments}")
        if n_segments == self.n_segments:
            return self
        n_rows = int(np.searchsorted(self.segments, n_segments))
        points = self.drift_points
        return replace(
            self,
            features=self.features[:n_rows],
            labels=self.labels[:n_rows],
            segments=self.segments[:n_rows],
            segment_names=self.segment_names[:n_segments],
            drift_points=None if points is None else tuple(p for p in points if p < n_rows),
            frame=None if self.frame is None else self.frame.take(slice(n_rows)),
            sha256=None,
        )


def shuffle_inside(segments: NDArray[np.int64]) -> NDArray[np.intp]:
    """Return the order in which the published arrays hold the rows of each segment.

    Published row i is row `order[i]` of the stream as it was made: one generator serves the
    whole stream and gives each segment in turn a permutation of its rows.
    """
    generator = np.random.RandomState(0)
    sizes = np.bincount(segments)
    starts = np.cumsum(sizes) - sizes
    parts = [generator.permutation(n) + start for n, start in zip(sizes, starts, strict=True)]
    return np.concatenate(parts)


def restore_order(stream: Stream) -> Stream:
    """Undo `shuffle_inside`: the same rows as they were made or measured, with no checksum."""
    rank = np.argsort(shuffle_inside(stream.segments))
    return replace(stream, features=stream.features[rank], labels=stream.labels[rank], sha256=None)


def check_count(name: str, value: Any) -> None:
    """Raise InputError unless `value` is a whole number of at least 1."""
    if not isinstance(value, Integral) or isinstance(value, bool) or int(value) < 1:
        raise InputError(f"{name} must be a whole number of at least 1, but got {value!r}")
