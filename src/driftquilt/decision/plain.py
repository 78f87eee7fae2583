"""Values as strict JSON knows them, so that any reader takes the files.

>>> plain({"loss": float("nan"), "rows": np.int64(3), "names": ("may", date(2024, 6, 1))})
{'loss': None, 'rows': 3, 'names': ['may', '2024-06-01']}
>>> plain(1 / 3, digits=4)
0.3333
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import date
from typing import Any

import numpy as np

__all__ = ["plain"]


def plain(value: Any, digits: int | None = None) -> Any:
    """Numbers, text, lists and dictionaries; None for what is no finite number.

    `digits` are those that matter in a float, all of them by default.
    """
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        if not math.isfinite(value):
            return None
        return value if digits is None else float(f"{value:.{digits}g}")
    if isinstance(value, Mapping):
        return {str(name): plain(item, digits) for name, item in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [plain(item, digits) for item in value]
    return str(value) if isinstance(value, date) else value
