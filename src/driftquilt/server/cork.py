"""What is written to a connection in one go is sent in one go.

uvicorn writes the head of an answer and its body one after the other, and each write asks the
system to send. Here they wait for the end of the loop's turn, and go together.
"""

from __future__ import annotations

import asyncio
from typing import Any

__all__ = ["Corked"]


class Corked:
    """A transport whose writes are gathered; in all else it is the transport itself."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport, self._loop = transport, loop
        self._waiting: list[bytes] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Send soon."""
        if not self._waiting:
            self._loop.call_soon(self._send)
        self._waiting.append(data)

    def close(self) -> None:
        """Send, and close."""
        self._send()
        self._transport.close()

    def _send(self) -> None:
        waiting, self._waiting = self._waiting, []
        if waiting and not self._transport.is_closing():
            self._transport.write(b"".join(waiting))
