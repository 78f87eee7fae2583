"""The address of the service, taken before anybody is told of it.

>>> from driftquilt.server.settings import ServeSettings
>>> [first] = listen(ServeSettings(port=0))
>>> port = first.getsockname()[1]
>>> first.listen()
>>> listen(ServeSettings(port=port))
Traceback (most recent call last):
driftquilt.errors.InputError: cannot listen on 127.0.0.1:...: address already in use; \
choose another --port
>>> first.close()
"""

from __future__ import annotations

import contextlib
import errno
import socket

from driftquilt.errors import InputError
from driftquilt.server.settings import ServeSettings

__all__ = ["address", "listen"]

_OF_PORT = (errno.EADDRINUSE, errno.EACCES)
_NO_FAMILY = (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)  # such as IPv6 where it is turned off


def address(host: str, port: int) -> str:
    """Host and port as they stand in a URL."""
    host = host.strip("[]")
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def listen(settings: ServeSettings) -> list[socket.socket]:
    """A socket for each address that the host stands for, all with one port."""
    try:
        return _bind_all(settings.host.strip("[]"), settings.port)
    except OSError as error:
        reason = error.strerror or str(error)
        other = "--port" if error.errno in _OF_PORT else "--host"
        raise InputError(
            f"cannot listen on {address(settings.host, settings.port)}: "
            f"{reason[:1].lower()}{reason[1:]}; choose another {other}"
        ) from error


def _bind_all(host: str, port: int) -> list[socket.socket]:
    with contextlib.ExitStack() as at_failure:
        bound: list[socket.socket] = []
        missing: OSError | None = None
        for family, *_, where in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
            try:
                made = _bind(family, (where[0], port, *where[2:]))
            except OSError as error:
                if error.errno not in _NO_FAMILY:
                    raise
                missing = error
                continue
            bound.append(at_failure.enter_context(made))
            port = made.getsockname()[1]
        if missing is not None and not bound:
            raise missing
        at_failure.pop_all()
        return bound


def _bind(family: int, where: tuple[object, ...]) -> socket.socket:
    made = socket.socket(family)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:  # the other family has a socket of its own
            made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        made.bind(where)
    except OSError:
        made.close()
        raise
    return made
