"""Messy tables: what real tables have and the paper's streams do not, with drift that is known.

A table has some thousand rows in each of its months and nineteen columns: money with heavy tails
and a few values a thousand times too large, a balance with a spike at zero, ages with the sentinels
999 and -1, gaps, a column that only begins halfway, a constant, noise, two columns of 2,000
categories (one of which matters) and two of few. What the label depends on changes in three ways:
four seasons of three months that return every year, an abrupt change in the second half, and one
feature whose effect turns around gradually. Without drift it is one season all along.

>>> table, labels, month = messy_table(3, positives=0.03, months=6, rows=500)
>>> sorted(table)[:4], len(table.columns)
(['age', 'amount', 'balance', 'channel'], 19)
>>> round(float(labels.mean()), 2), int(month[-1])
(0.03, 5)
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
from numpy.typing import NDArray

__all__ = ["messy_table"]

_N_CATEGORIES = 2_000
_SEASONS, _SEASON = 4, 3  # how many, and how many months each
_ABRUPT = 15 / 24  # of the months are gone
_TURN = (4 / 24, 20 / 24)  # when the gradual change begins and ends
_BEGINS = 11 / 24  # when the late column does
_NO_BALANCE, _WRONG_UNIT = 0.4, 0.002  # shares of rows

Columns = dict[str, NDArray[Any]]


def messy_table(
    seed: int = 0,
    *,
    positives: float = 0.25,
    months: int = 24,
    rows: int = 2_500,
    drift: bool = True,
    heavy_tails: bool = True,
    gaps: bool = True,
    sentinels: bool = True,
) -> tuple[pd.DataFrame, NDArray[np.int64], NDArray[np.int64]]:
    """Make a table, the label (0 or 1) and the month of each row, in order of time.

    There are so many months with about so many rows each; `positives` is the share of label 1.
    Without `heavy_tails` the same rows have their columns as a careful person would have made them
    by hand: logarithms, and no outliers. `gaps` and `sentinels` can be left out in the same way.
    """
    rng = np.random.default_rng((seed, 77))
    sizes = rng.integers(int(rows * 0.8), int(rows * 1.2), months)
    month = np.repeat(np.arange(months), sizes)
    columns, effects = _draw(rng, len(month))
    scores = _score(rng, effects, month, months, drift=drift)
    chances = _chances(scores, positives)
    y = (rng.random(len(month)) < chances).astype(np.int64)
    columns |= _outliers(rng, columns) if heavy_tails else _logarithms(columns)
    if sentinels:
        columns |= _sentinels(rng, columns)
    if gaps:
        columns |= _gaps(rng, columns, month >= months * _BEGINS)
    return pd.DataFrame(columns), y, month


def _draw(rng: np.random.Generator, n: int) -> tuple[Columns, NDArray[np.float64]]:
    """Draw clean columns, and what of them the label may depend on, (n, 15)."""
    columns: Columns = {
        "age": rng.normal(42, 13, n).round().clip(18, 95),
        "tenure": rng.exponential(30, n),
        "amount": rng.lognormal(3.5, 1.2, n),
        "income": rng.lognormal(10, 0.6, n),
        "balance": np.where(rng.random(n) < _NO_BALANCE, 0, rng.standard_t(2, n) * 500),
        "n_calls": rng.poisson(1.3, n),
        "usage": rng.gamma(2, 10, n),
        "visits": rng.geometric(0.1, n),
        "score": rng.normal(size=n),
        "risk": rng.normal(size=n),
        "ratio": rng.beta(2, 5, n),
        **{f"noise_{number}": rng.normal(size=n) for number in range(3)},
        "constant": np.ones(n),
    }
    shares = {"merchant": rng.beta(0.6, 2.5, n), "city": rng.beta(0.8, 2, n)}
    codes = {name: (_N_CATEGORIES * share).astype(int) for name, share in shares.items()}
    codes["channel"] = rng.choice(5, n, p=[0.4, 0.25, 0.2, 0.1, 0.05])
    codes["plan"] = rng.choice(3, n)
    for name, code in codes.items():
        columns[name] = np.char.add(f"{name} ", code.astype(str)).astype(object)
    return columns, _effects(rng, columns, codes)


def _effects(rng: np.random.Generator, columns: Columns, codes: Columns) -> NDArray[np.float64]:
    """Return what the label may depend on, each about as large as the others."""
    merchant, channel, plan = (rng.normal(size=size) for size in (_N_CATEGORIES, 5, 3))
    log_amount = _standard(np.log(columns["amount"]))
    return np.column_stack(
        [
            _standard(columns["age"]),
            _standard(np.log1p(columns["tenure"])),
            log_amount,
            _standard(np.log(columns["income"])),
            (columns["balance"] == 0) - _NO_BALANCE,
            np.tanh(columns["balance"] / 500),
            _standard(np.sqrt(columns["n_calls"])),
            _standard(np.log(columns["usage"])),
            _standard(np.log(columns["visits"])),
            _standard(columns["score"]),
            _standard(columns["risk"]),
            _standard(columns["ratio"]) * _standard(columns["score"]),
            merchant[codes["merchant"]],
            channel[codes["channel"]],
            plan[codes["plan"]] * log_amount,
        ]
    )


def _score(
    rng: np.random.Generator,
    effects: NDArray[np.float64],
    month: NDArray[np.int64],
    months: int,
    *,
    drift: bool,
) -> NDArray[np.float64]:
    """Return the log odds of each row up to a constant, by the weights of its month."""
    width = effects.shape[1]
    always, abrupt = 0.5 * rng.normal(size=width), 0.9 * rng.normal(size=width)
    seasons = 0.9 * rng.normal(size=(_SEASONS, width))
    turning = rng.integers(width)
    number = np.arange(months)
    season = number // _SEASON if drift else np.zeros(months, dtype=int)
    weights = always + seasons[season % _SEASONS]
    sign = np.ones(months)
    if drift:
        weights[number >= int(months * _ABRUPT)] += abrupt
        start, end = (months * share for share in _TURN)
        weights[:, turning] = 1.5 * np.cos(np.pi * np.clip((number - start) / (end - start), 0, 1))
        sign[season % 2 == 1] = -1
    curved = 0.8 * np.sin(2 * effects[:, 9]) * sign[month]
    scores: NDArray[np.float64] = (effects * weights[month]).sum(axis=1) + curved
    return scores


def _chances(scores: NDArray[np.float64], positives: float) -> NDArray[np.float64]:
    """Shift the log odds so that the mean chance is `positives`."""
    low, high = -40.0, 40.0
    for _ in range(60):
        shift = (low + high) / 2
        too_many = (1 / (1 + np.exp(-(scores + shift)))).mean() > positives
        low, high = (low, shift) if too_many else (shift, high)
    chances: NDArray[np.float64] = 1 / (1 + np.exp(-(scores + shift)))
    return chances


def _outliers(rng: np.random.Generator, columns: Columns) -> Columns:
    """Return amounts of which some are in the wrong unit."""
    amount = columns["amount"]
    return {"amount": np.where(rng.random(len(amount)) < _WRONG_UNIT, 1000 * amount, amount)}


def _logarithms(columns: Columns) -> Columns:
    """Return the columns with heavy tails as a person would prepare them."""
    logged = {name: np.log(columns[name]) for name in ("amount", "income", "usage", "visits")}
    logged["tenure"] = np.log1p(columns["tenure"])
    logged["balance"] = np.arcsinh(columns["balance"] / 500)
    return logged


def _sentinels(rng: np.random.Generator, columns: Columns) -> Columns:
    """Return ages of which some are numbers that stand for something else."""
    unknown, refused = (rng.random(len(columns["age"])) < share for share in (0.01, 0.02))
    return {"age": np.where(unknown, 999, np.where(refused, -1, columns["age"]))}


def _gaps(rng: np.random.Generator, columns: Columns, is_late: NDArray[np.bool_]) -> Columns:
    """Return columns with missing values; one only begins late."""
    shares = {"tenure": 0.05, "income": 0.2, "usage": 0.01, "score": 0.1}
    missing = {name: rng.random(len(is_late)) < share for name, share in shares.items()}
    missing["risk"] = ~is_late
    return {name: np.where(where, np.nan, columns[name]) for name, where in missing.items()}


def _standard(values: NDArray[Any]) -> NDArray[np.float64]:
    scaled: NDArray[np.float64] = (values - values.mean()) / values.std()
    return scaled
