"""What both clients need to connect: the address, the token, the time limits."""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import urlsplit

import httpx

from driftquilt.client.frames import Frame
from driftquilt.client.operations import Call
from driftquilt.client.retrying import Tries
from driftquilt.errors import InputError

__all__ = ["Connection", "as_live_request", "as_request", "behind", "ended", "events_in"]

_TOKEN = re.compile(r"[\x21-\x7e]+")
_SILENCE = 45.0  # seconds; the service says something every 15


@dataclass(frozen=True)
class Connection:
    """Where the service is and how to speak to it. The token is not shown."""

    url: str
    token: str | None = field(default=None, repr=False)
    timeout: float = 30.0
    retries: int | None = None

    def __post_init__(self) -> None:
        if not _is_address(self.url):
            raise InputError(
                "the service's address is like http://127.0.0.1:8321, without a user or password"
            )
        if not _TOKEN.fullmatch(self._token or "dq"):
            raise InputError(
                "the token holds letters that no token has, such as a space or a line break; give "
                "it as `driftquilt token create` printed it"
            )
        if not self.timeout > 0 or (self.retries is not None and self.retries < 0):
            raise InputError(
                "timeout is more than 0 seconds and retries are 0 or more, "
                f"but got {self.timeout!r} and {self.retries!r}"
            )

    def options(self) -> dict[str, Any]:
        """The arguments of httpx's clients."""
        headers = {"Authorization": f"Bearer {self._token}"} if self._token else {}
        return {"base_url": self.url, "headers": headers, "timeout": self.timeout}

    @property
    def _token(self) -> str | None:
        given = self.token or os.environ.get("DRIFTQUILT_TOKEN")
        return given.strip() if given else None  # files end with a line break

    def tries(self) -> Tries:
        """For one call."""
        return Tries(self.retries)


def _is_address(text: str) -> bool:
    try:
        url, _ = httpx.URL(text), urlsplit(text)  # each refuses what the other takes
    except (httpx.InvalidURL, TypeError, ValueError):
        return False
    return url.scheme in ("http", "https") and bool(url.host) and not url.userinfo


def as_request(call: Call) -> dict[str, Any]:
    """The arguments of httpx's request."""
    return {
        "method": call.method, "url": call.path, "params": call.params,
        "content": call.content, "headers": call.headers,
    }  # fmt: skip


def as_live_request(call: Call, connection: Connection) -> dict[str, Any]:
    """The same for an answer without end: it may be silent for a while, but not for long."""
    return {**as_request(call), "timeout": httpx.Timeout(connection.timeout, read=_SILENCE)}


def behind(call: Call, number: int) -> Call:
    """The call that goes on behind this event."""
    return replace(call, params={**call.params, "after": number})


def events_in(frames: list[Frame]) -> list[dict[str, Any]]:
    """The stream's own events; the others tell how it stands."""
    return [json.loads(frame.data) for frame in frames if frame.number is not None]


def ended() -> Exception:
    """An answer without end that ended is a lost connection."""
    return httpx.RemoteProtocolError("the service ended the connection")
