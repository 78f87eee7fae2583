"""The nine streams of the paper, made exactly or loaded and checked, and streams of your own."""

from __future__ import annotations

from driftquilt.datasets.base import Stream
from driftquilt.datasets.catalog import Description, describe, load, names
from driftquilt.datasets.files import read_stream

__all__ = ["Description", "Stream", "describe", "load", "names", "read_stream"]
