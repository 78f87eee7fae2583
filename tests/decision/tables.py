"""Tables for the tests: a short sine stream, a shop with text, gaps and dates, small models."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa

from driftquilt.paper.datasets.stream import Stream
from driftquilt.paper.datasets.synthetic import sine
from driftquilt.quilt.classifier import QuiltClassifier
from driftquilt.quilt.regressor import QuiltRegressor


def small(**settings: Any) -> QuiltClassifier:
    """A classifier that is trained within a fraction of a second."""
    given = {"hidden_units": 16, "n_folds": 2, "max_epochs": 40, "n_jobs": 1, "random_state": 0}
    return QuiltClassifier(**(given | settings))


def tiny(**settings: Any) -> QuiltClassifier:
    """One that hardly learns, for tests of what is around it."""
    return small(**({"hidden_units": 8, "max_epochs": 4} | settings))


def as_table(stream: Stream) -> pa.Table:
    """A stream with its label and segment as columns."""
    columns = dict(zip(stream.feature_names, stream.features.T, strict=True))
    return pa.table({**columns, "label": stream.labels, "segment": stream.segments})


def sine_table(n_segments: int = 4, n_rows: int = 300) -> pa.Table:
    return as_table(sine(n_segments, n_rows))


def price_table(n_rows: int = 400, current: int = 200) -> pa.Table:
    """Prices of flats in April, May and June; in April large ones were the cheap ones."""
    rng = np.random.default_rng(0)
    month = np.repeat(["April", "May", "June"], [n_rows, n_rows, current])
    size, floor = rng.uniform(20, 120, len(month)), rng.integers(0, 6, len(month))
    turned = np.where(month == "April", -1, 1)
    price = 1_000 + 8 * turned * (size - 70) + 20 * floor + rng.normal(0, 15, len(month))
    return pa.table({"size": size, "floor": floor, "price": price.round(2), "month": month})


def small_regressor(**settings: Any) -> QuiltRegressor:
    """A regressor that is trained within a fraction of a second."""
    given = {"hidden_units": 16, "n_folds": 2, "max_epochs": 60, "n_jobs": 1, "random_state": 0}
    return QuiltRegressor(**(given | settings))


def shop_table(n_rows: int = 600) -> pa.Table:
    """Three months with text, a boolean, a date, gaps, an id and labels that are missing.

    In June the answers are the other way round.
    """
    rng = np.random.default_rng(0)
    begin = datetime(2024, 5, 1)
    when = [begin + timedelta(minutes=92 * 24 * 60 * k // n_rows) for k in range(n_rows)]
    price, visits = rng.uniform(1, 100, n_rows), rng.poisson(3, n_rows)
    june = np.array([moment.month == 6 for moment in when])
    yes = (price + 10 * visits < 80) ^ june
    return pa.table(
        {
            "when": pa.array(when, pa.timestamp("us")),
            "order": [f"order {k}" for k in range(n_rows)],
            "price": price,
            "visits": [None if k % 10 == 5 else int(v) for k, v in enumerate(visits)],
            "channel": [("web", "shop", None)[k] for k in rng.integers(3, size=n_rows)],
            "member": rng.random(n_rows) < 0.5,
            "country": ["NO"] * n_rows,
            "bought": [
                None if k % 50 == 7 else "yes" if is_yes else "no" for k, is_yes in enumerate(yes)
            ],
        }
    )
