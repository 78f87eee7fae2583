"""A small table to try things on: orders of five months, and whether the customer will buy again.

Two of the months follow the opposite rule, so a model of all months knows nothing. Only the first
15 rows of the last month have a label that a model may use. The rows are drawn from a fixed seed.

>>> labelled, later = load_orders()
>>> labelled.X.column_names
['price', 'visits', 'channel']
>>> len(labelled.y), len(later.y), sorted(set(labelled.month.tolist()))[-1]
(2415, 585, '2023-12')
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

__all__ = ["Orders", "load_orders"]

_MONTHS = ("2023-08", "2023-09", "2023-10", "2023-11", "2023-12")
_OPPOSITE = ("2023-09", "2023-11")
_ROWS_PER_MONTH = 600
_AFFORDABLE = 80
_LABELLED = 4 * _ROWS_PER_MONTH + 15


class Orders(NamedTuple):
    """Columns, labels and months of some orders, row by row."""

    X: pa.Table
    y: NDArray[Any]
    month: NDArray[Any]


def load_orders() -> tuple[Orders, Orders]:
    """Return the labelled orders, and the later ones of the last month, to measure a model with."""
    rng = np.random.default_rng(0)
    n_rows = len(_MONTHS) * _ROWS_PER_MONTH
    price = rng.uniform(1, 100, n_rows).round(2)
    visits = rng.poisson(3, n_rows)
    channel = rng.choice(["web", "shop", "phone"], n_rows)
    month = np.repeat(_MONTHS, _ROWS_PER_MONTH)
    buys = (price + 10 * visits < _AFFORDABLE) ^ np.isin(month, _OPPOSITE)
    X, y = (
        pa.table({"price": price, "visits": visits, "channel": channel}),
        np.where(buys, "yes", "no"),
    )
    labelled, later = slice(0, _LABELLED), slice(_LABELLED, None)
    return (
        Orders(X.slice(0, _LABELLED), y[labelled], month[labelled]),
        Orders(X.slice(_LABELLED), y[later], month[later]),
    )
