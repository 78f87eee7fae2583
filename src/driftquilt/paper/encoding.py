"""A stream's features become the matrix that methods take, by what some of its rows tell.

The streams of the paper are complete numbers and are scaled to zero mean and unit variance, as
they were for the published results. A stream of the user's is encoded as `QuiltClassifier`
encodes rows: numbers scaled, gaps filled and flagged, one column per category of text. Rows that
are not `known` (the test rows of an honest protocol) leave no trace in it: a category that only
they have is all zeros, and a column that is empty in the known rows is left out.

>>> X = np.array([[20, 0], [40, 0], [np.nan, 1]])
>>> rows = {"labels": np.array([0, 1, 0]), "segments": np.zeros(3, np.int64)}
>>> cities = {"city": ("Oslo", "Rome")}
>>> stream = Stream("s", X, **rows, citation="", feature_names=("age", "city"), categories=cities)
>>> encode(stream, 3, n_known=2)
(array([[-1.,  1.],
       [ 1.,  1.],
       [ 0.,  0.]], dtype=float32), ('age', 'city=Oslo'))
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from driftquilt.data.encoder import Encoder
from driftquilt.data.table import Table
from driftquilt.errors import InputError
from driftquilt.paper.datasets.base import Stream

__all__ = ["encode"]


def encode(
    stream: Stream, n_rows: int, *, n_known: int
) -> tuple[NDArray[np.float32], tuple[str, ...]]:
    """The first `n_rows` rows by what the first `n_known` tell, and the names of the columns."""
    known = stream.features[:n_known]
    if stream.categories is None:
        return _scale(stream.features[:n_rows], known), stream.feature_names
    used = np.flatnonzero(~np.isnan(known).all(axis=0)).tolist()
    if not used:
        raise InputError(
            f"no column of {stream.name} has a value in its first {n_known} rows, which are all "
            "that is known at that point; drop these rows or fill some in"
        )
    encoder = Encoder.fit(_table(stream, used, n_known))
    return encoder.transform(_table(stream, used, n_rows)), encoder.feature_names_out


def _table(stream: Stream, used: Sequence[int], n_rows: int) -> Table:
    """Some columns of the first rows, with text as text again."""
    columns, names = list[NDArray[np.float64 | np.object_]](), stream.feature_names
    for j in used:
        values, texts = stream.features[:n_rows, j], (stream.categories or {}).get(names[j])
        if texts is None:
            columns.append(values)
            continue
        lookup = np.array([*texts, None], dtype=object)
        missing = np.isnan(values)
        columns.append(lookup[np.where(missing, len(texts), values).astype(np.intp)])
    return Table(tuple(names[j] for j in used), tuple(columns), named=True)


def _scale(rows: NDArray[np.float64], seen: NDArray[np.float64]) -> NDArray[np.float32]:
    spread = seen.std(axis=0)
    spread[spread == 0] = 1.0
    scaled: NDArray[np.float64] = (rows - seen.mean(axis=0)) / spread
    return scaled.astype(np.float32)
