"""How the inner loops of the two-layer net are compiled; numba's only door.

Entry points are compiled for fixed types when `mlp_kernels` is first imported on a machine and
then read from numba's cache; one line tells the user who waits for it. Functions they call have
no types of their own and become part of them. All release the GIL.

The cache looks at an entry point's own file alone: whoever changes a function in another file
touches `mlp_kernels.py` as well, or goes on running the old one.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numba import njit, types
from numba.core import event
from numpy.typing import NDArray

__all__ = [
    "CODES", "FLOAT", "INT", "MATRIX", "NUMBERS", "OUT_MATRIX", "OUT_SUMS", "OUT_VECTOR", "SCALE",
    "SUM", "VECTOR", "VOID", "Codes", "Floats", "Ints", "Numbers", "kernel",
]  # fmt: skip

Floats = NDArray[np.float32]
Ints = NDArray[np.int32]
Codes = NDArray[np.int64]
Numbers = NDArray[np.float64]

MATRIX = types.Array(types.float32, 2, "C", readonly=True)
VECTOR = types.Array(types.float32, 1, "C", readonly=True)
CODES = types.Array(types.int64, 1, "C", readonly=True)
OUT_MATRIX, OUT_VECTOR = types.float32[:, ::1], types.float32[::1]
OUT_SUMS = types.float64[:, ::1]
NUMBERS = types.Array(types.float64, 2, "C", readonly=True)
SCALE = types.Array(types.float64, 1, "C", readonly=True)
INT, FLOAT, SUM, VOID = types.int64, types.float32, types.float64, types.void

# Reordering sums and fused multiply-add, but never the promise that NaN cannot happen.
_FASTMATH = {"contract", "reassoc", "nsz", "arcp", "afn"}


class _SayOnce(event.Listener):
    """One line before the first kernel is compiled; nothing when all come from the cache."""

    said = False

    def on_start(self, event: Any) -> None:
        ours = str(event.data["dispatcher"].py_func.__module__).startswith(
            "driftquilt.learners.mlp"
        )
        if ours and not self.said:
            type(self).said = True
            logging.getLogger("driftquilt").warning(
                "driftquilt: compiling numeric kernels; this happens once and takes some seconds"
            )

    def on_end(self, event: Any) -> None:
        pass


event.register("numba:compile", _SayOnce())  # type: ignore[no-untyped-call]


F = TypeVar("F", bound=Callable[..., Any])


def kernel(signature: Any = None) -> Callable[[F], F]:
    """Compile a function: at once for an entry point's signature, else when it is called."""
    compiled: Callable[[F], F] = njit(
        signature, cache=True, nogil=True, fastmath=_FASTMATH, error_model="numpy"
    )
    return compiled
