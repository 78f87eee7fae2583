"""Ports for servers that tests start, and start again."""

from __future__ import annotations

import secrets
import socket

# Below the ports that systems hand out by themselves, of which another process may take one
# between the moment it was found free and the moment it is used.
_FIRST, _LAST = 20_000, 32_000


def free_port() -> int:
    """A port of this machine that nobody listens at."""
    while True:
        port = _FIRST + secrets.randbelow(_LAST - _FIRST)
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        return port
