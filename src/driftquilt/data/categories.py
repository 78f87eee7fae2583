"""Text columns as pandas categories, which is how gradient boosting libraries take them.

The categories of a column are fixed when they are fitted, so that a category has the same code in
every table; a value that was not there then counts as missing. Other columns, and tables that are
not data frames, stay as they are. pandas is not imported here: the frame brings it along.

>>> import pandas as pd
>>> categories = Categories.fit(pd.DataFrame({"city": ["Oslo", "Rome", None], "age": [1, 2, 3]}))
>>> categories.columns
('city',)
>>> categories.apply(pd.DataFrame({"city": ["Rome", "Bonn"], "age": [4, 5]}))["city"].tolist()
['Rome', nan]
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import narwhals.stable.v2 as nw
import numpy as np

from driftquilt.data.frame import as_frame
from driftquilt.errors import InputError

__all__ = ["Categories"]


@dataclass(frozen=True)
class Categories:
    """The categories of each text column; with `missing`, a missing value is one of them."""

    values: Mapping[str, list[Any]] = field(default_factory=dict)
    missing: str | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the text columns."""
        return tuple(self.values)

    @classmethod
    def fit(cls, X: Any, *, limit: int | None = None, missing: str | None = None) -> Self:
        """Find text columns and their categories, at most the `limit` most frequent of each."""
        frame = as_frame(X)
        if not isinstance(frame, nw.DataFrame):
            return cls()
        kinds = (nw.String, nw.Categorical)
        texts = [name for name, dtype in frame.schema.items() if isinstance(dtype, kinds)]
        return cls({name: _categories(frame[name], limit, missing) for name in texts}, missing)

    def apply(self, X: Any) -> Any:
        """Return the table with its text columns as categories, as a pandas frame."""
        frame = as_frame(X)
        if not self.values or not isinstance(frame, nw.DataFrame):
            return X
        if absent := [name for name in self.values if name not in frame.columns]:
            raise InputError(f"X lacks the column {absent[0]!r}, which the model was trained on")
        table = frame.to_pandas().copy(deep=False)
        pandas = nw.from_native(table, eager_only=True).__native_namespace__()
        for name, values in self.values.items():
            codes = pandas.Index(values, dtype=object).get_indexer(table[name].astype(object))
            if self.missing is not None:
                codes = np.where(codes < 0, values.index(self.missing), codes)
            table[name] = pandas.Categorical.from_codes(codes, categories=values)
        return table


def _categories(column: nw.Series[Any], limit: int | None, missing: str | None) -> list[Any]:
    """Return the values of a column in order; those of a category column as it has them."""
    if isinstance(column.dtype, nw.Categorical):
        known = column.cat.get_categories().to_list()
    else:
        known = sorted(column.drop_nulls().unique().to_list())
    if limit is not None and len(known) > limit:
        counts = column.drop_nulls().value_counts(sort=True)
        frequent = set(counts[counts.columns[0]].head(limit).to_list())
        known = [value for value in known if value in frequent]
    return known if missing is None or missing in known else [*known, missing]
