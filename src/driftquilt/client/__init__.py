"""Clients of the service: `Client` waits for each answer, `AsyncClient` is for asyncio."""

from __future__ import annotations

from driftquilt.errors import MissingExtraError

try:
    from driftquilt.client.clients import AsyncClient, Client
except ModuleNotFoundError as error:
    raise MissingExtraError(str(error.name), extra="client") from error

__all__ = ["AsyncClient", "Client"]
