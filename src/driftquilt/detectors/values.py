"""What a detector is told about a row, checked before anything is changed by it.

    check_error(value)        0.0 or 1.0
    check_row(value, width)   (d,) float32, finite

>>> check_error(True), check_row([1, 2.5], width=2)
(1.0, array([1. , 2.5], dtype=float32))
>>> check_error(float("nan"))
Traceback (most recent call last):
driftquilt.errors.InputError: this detector watches errors and got nan; give 1.0 if the \
prediction of the row was wrong, else 0.0
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from driftquilt.errors import InputError

__all__ = ["check_error", "check_row", "shown"]


def check_error(value: Any) -> float:
    """0.0 or 1.0, from whatever number or truth value says the same."""
    if isinstance(value, (float, int, np.bool_, np.integer, np.floating)) and value in (0, 1):
        return float(value)
    raise InputError(
        f"this detector watches errors and got {shown(value)}; "
        "give 1.0 if the prediction of the row was wrong, else 0.0"
    )


def check_row(value: Any, width: int | None) -> NDArray[np.float32]:
    """A copy of the row as float32; `width` is None before the first row."""
    try:
        row = np.asarray(value)
    except ValueError as error:
        raise InputError(f"this is no row of numbers: {shown(value)} ({error})") from error
    if row.ndim != 1 or row.dtype.kind not in "fiub" or not len(row):
        raise InputError(
            f"this detector watches rows and got {shown(value)} (shape {row.shape}, dtype "
            f"{row.dtype}); give one row as a vector of numbers"
        )
    if width is not None and len(row) != width:
        raise InputError(f"the row has {len(row)} numbers, those before had {width}; give as many")
    with np.errstate(over="ignore"):
        row = row.astype(np.float32)
    if not np.isfinite(row).all():
        place = int(np.flatnonzero(~np.isfinite(row))[0])
        raise InputError(
            f"number {place} of the row is {np.asarray(value)[place]}, which is no finite float32; "
            "encode and scale rows first"
        )
    return row


def shown(value: Any) -> str:
    """A value in a message: its repr, cut short."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."  # noqa: PLR2004
