"""Types of bodies, as HTTP names them, and the one that is never sent."""

from __future__ import annotations

__all__ = ["ARROW", "JSON", "NUMBERS"]

JSON = "application/json"
ARROW = "application/vnd.apache.arrow.stream"
NUMBERS = "numbers"  # rows of numbers alone, in the form in which they wait: `bodies.pack_rows`
