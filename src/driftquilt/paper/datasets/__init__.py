"""The nine streams of the paper, made exactly or loaded and checked, and streams of your own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from driftquilt.lazy import lazy_names
from driftquilt.paper.datasets.catalog import Description, describe, load, names
from driftquilt.paper.datasets.stream import Stream

if TYPE_CHECKING:
    from driftquilt.paper.datasets.user_file import read_stream

__all__ = ["Description", "Stream", "describe", "load", "names", "read_stream"]

# It needs scikit-learn, which takes a second to import.
__getattr__ = lazy_names(__name__, user_file="read_stream")
