"""Tables as gradient boosting libraries take them: pandas frames of numbers and categories.

A table is read as for the net (`frame`): booleans and decimals become numbers, dates the columns
of `calendar`. Text columns become pandas categories. They are fixed when they are fitted, so that
a category has the same code in every table; a value that was not there then counts as missing.
Characters that a library refuses in the name of a column become underscores. Arrays and lists stay
as they are. It takes pandas, which comes with the extras of these libraries.

>>> import pandas as pd
>>> categories = Categories.fit(pd.DataFrame({"city": ["Oslo", "Rome", None], "age": [1, 2, 3]}))
>>> categories.text_columns
('city',)
>>> categories.apply(pd.DataFrame({"city": ["Rome", "Bonn"], "age": [4, 5]}))["city"].tolist()
['Rome', nan]
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from driftquilt.data.calendar import find_columns
from driftquilt.data.frame import Frame, as_frame, read_frame
from driftquilt.errors import InputError, MissingExtraError

__all__ = ["Categories"]

_REFUSED = re.compile(r'[\[\]{}<>",:]')  # by LightGBM or XGBoost, in names of columns


@dataclass(frozen=True)
class Categories:
    """The columns of a table, and the categories of those that are text.

    With `missing`, a missing value is a category of that name. Without columns, tables are not
    changed.
    """

    columns: tuple[str, ...] = ()
    values: Mapping[str, list[str]] = field(default_factory=dict)
    missing: str | None = None

    @property
    def text_columns(self) -> tuple[str, ...]:
        """The text columns, by the names they have in the frames."""
        names = dict(zip(self.columns, _safe_names(self.columns), strict=True))
        return tuple(names[name] for name in self.values)

    @classmethod
    def fit(cls, X: Any, *, limit: int | None = None, missing: str | None = None) -> Self:
        """Find text columns and their categories, at most the `limit` most frequent of each."""
        if not _is_table(X):
            return cls()
        frame = read_frame(X)
        values = {name: _frequent(frame, name, limit, missing) for name in frame.texts}
        return cls(frame.columns, values, missing)

    def apply(self, X: Any) -> Any:
        """Return the table as a pandas frame with the columns of the one fitted."""
        if not self.columns:
            return X
        try:
            import pandas as pd  # type: ignore[import-untyped]  # noqa: PLC0415
        except ImportError as error:
            raise MissingExtraError("pandas", extra="hgb") from error
        frame = read_frame(X)
        places = find_columns(frame, self.columns, named=True)
        made = {
            safe: self._column(pd, frame, name, frame.columns[place])
            for name, safe, place in zip(
                self.columns, _safe_names(self.columns), places, strict=True
            )
        }
        return pd.DataFrame(made)

    def _column(self, pandas: Any, frame: Frame, name: str, there: str) -> Any:
        """Return a column as it was when fitted: numbers, or categories."""
        is_text = name in self.values
        if frame.is_text(there) == is_text:
            column = frame.column(there)
        elif frame.kind(there) == "nothing":
            column = np.full(len(frame), None if is_text else np.nan, object if is_text else float)
        else:
            before, now = ("text", "numbers") if is_text else ("numbers", "text")
            raise InputError(
                f"column {name!r} was {before} at fit and is {now} now; make it the same in both"
            )
        return self._categorize(pandas, name, column) if is_text else column

    def _categorize(self, pandas: Any, name: str, column: NDArray[Any]) -> Any:
        values = self.values[name]
        codes = pandas.Index(values, dtype=object).get_indexer(column)
        if self.missing is not None:
            codes = np.where(codes < 0, values.index(self.missing), codes)
        return pandas.Categorical.from_codes(codes, categories=values)

    def to_json(self) -> dict[str, Any]:
        """Return what `from_json` reads."""
        return {
            "columns": list(self.columns),
            "values": dict(self.values),
            "missing": self.missing,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        return cls(tuple(data["columns"]), dict(data["values"]), data["missing"])


def _is_table(X: Any) -> bool:
    return isinstance(X, Mapping) or isinstance(as_frame(X), nw.DataFrame)


def _frequent(frame: Frame, name: str, limit: int | None, missing: str | None) -> list[str]:
    """Return the values of a text column in order, the `limit` most frequent ones."""
    counts = frame.counts(name)
    del counts[None]
    known = sorted(value for value, _ in counts.most_common(limit) if value is not None)
    return known if missing is None or missing in known else [*known, missing]


def _safe_names(names: Sequence[str]) -> list[str]:
    """Return names that every library takes, each once.

    >>> _safe_names(["price", "price, net", "price_ net"])
    ['price', 'price_ net_', 'price_ net']
    """
    taken, safe = {*names}, list[str]()
    for name in names:
        made = _REFUSED.sub("_", name)
        while made != name and made in taken:
            made += "_"
        taken.add(made)
        safe.append(made)
    return safe
