"""The nine streams of the paper, made exactly or loaded and checked, and streams of your own."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from driftquilt.paper.datasets.catalog import Description, describe, load, names
from driftquilt.paper.datasets.stream import Stream

if TYPE_CHECKING:
    from driftquilt.paper.datasets.user_file import read_stream

__all__ = ["Description", "Stream", "describe", "load", "names", "read_stream"]


def __getattr__(name: str) -> Any:
    """Import `read_stream` at first use: it needs scikit-learn, which takes a second to import."""
    if name != "read_stream":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module("driftquilt.paper.datasets.user_file").read_stream
