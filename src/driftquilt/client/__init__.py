"""Calling the service, in step or with asyncio."""

from __future__ import annotations

from driftquilt.errors import MissingExtraError

try:
    import httpx  # noqa: F401
except ModuleNotFoundError as error:
    raise MissingExtraError("httpx", extra="client") from error
