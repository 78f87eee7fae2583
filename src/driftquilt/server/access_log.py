"""A line of log for every request, made by hand and written many at a time: there are so many.

The lines look as all others do (`logs`), and come up to a tenth of a second later.
"""

from __future__ import annotations

import asyncio
import logging
from datetime import UTC, datetime
from typing import Any

import orjson

from driftquilt.server.logs import TextLines, to_text

__all__ = ["AccessLog"]

_PAUSE = 0.1  # seconds
_log = logging.getLogger("driftquilt")


class AccessLog:
    """Lines that wait to be written."""

    def __init__(self) -> None:
        self._lines: list[bytes] = []

    def add(
        self,
        request_id: str,
        method: str,
        route: str,
        status: int,
        seconds: float,
        caller: str | None,
        stream: str | None,
    ) -> None:
        """Note an answer."""
        if not _log.isEnabledFor(logging.INFO):
            return
        values: dict[str, Any] = {
            "time": datetime.now(UTC).isoformat(timespec="milliseconds"), "level": "info",
            "logger": "driftquilt.access", "message": f"{method} {route} {status}",
            "request_id": request_id, "seconds": round(seconds, 6), "caller": caller,
        }  # fmt: skip
        if stream is not None:
            values["stream"] = stream
        if not self._lines:
            asyncio.get_running_loop().call_later(_PAUSE, self.write)
        self._lines.append(orjson.dumps(values))

    def write(self) -> None:
        """Write what waits."""
        lines, self._lines = self._lines, []
        for handler in _log.handlers:
            if isinstance(handler, logging.StreamHandler) and lines:
                told = [line.decode() for line in lines]
                if isinstance(handler.formatter, TextLines):
                    told = [to_text(orjson.loads(line)) for line in lines]
                handler.stream.write("\n".join(told) + "\n")
                handler.flush()
