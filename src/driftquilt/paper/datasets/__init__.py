"""The nine streams of the paper, made exactly or loaded and checked, and streams of your own."""

from __future__ import annotations

from driftquilt.paper.datasets.catalog import Description, describe, load, names
from driftquilt.paper.datasets.stream import Stream
from driftquilt.paper.datasets.user_file import read_stream

__all__ = ["Description", "Stream", "describe", "load", "names", "read_stream"]
