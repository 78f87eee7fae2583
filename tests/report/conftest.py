"""A browser to open reports in."""

from __future__ import annotations

from tests.chromium import browser

__all__ = ["browser"]
