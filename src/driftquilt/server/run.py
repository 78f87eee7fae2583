"""The service from start to stop: listen, answer, and on SIGTERM finish what was begun.

At SIGTERM or Ctrl-C no new request is taken; those under way are answered, rows that were taken
are learned and made durable, a training is given up and begins again at the next start. Requests
get `drain_seconds`; rows that still wait to be learned then take as long as they take.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import gc
import importlib
import math
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import FrameType
from typing import cast

import uvicorn

from driftquilt.errors import InputError, StoreError
from driftquilt.files import describe_os_error, lock_file
from driftquilt.server.app import Service, make_app
from driftquilt.server.logs import configure_logs
from driftquilt.server.protocol import HttpProtocol
from driftquilt.server.settings import ServeSettings
from driftquilt.server.tokens import Tokens

__all__ = ["address", "listen", "lock_store", "needs_token", "serve"]

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_SWITCH = 0.0005  # seconds that a thread may keep the others waiting
_GC_OBJECTS = 10_000  # as few as by default would be collected with each batch of requests
_BACKLOG = 1024
_OF_PORT = (errno.EADDRINUSE, errno.EACCES)
_NO_FAMILY = (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)  # such as IPv6 where it is turned off


class _Server(uvicorn.Server):
    """uvicorn, which stops the service before it stops itself."""

    def __init__(self, config: uvicorn.Config, service: Service) -> None:
        super().__init__(config)
        self._service = service

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Stop at a signal, and not a second time by it when all is done."""
        before = {sig: signal.signal(sig, self.handle_exit) for sig in _SIGNALS}
        try:
            yield
        finally:
            for sig, handler in before.items():
                signal.signal(sig, handler)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._service.stop()
        super().handle_exit(sig, frame)


def needs_token(settings: ServeSettings) -> bool:
    """Return whether callers need a token; raise if they need one that nobody could have."""
    tokens = Tokens(settings.store / "tokens.json")
    if settings.is_loopback or len(tokens):
        return tokens.were_made
    raise InputError(
        f"refusing to listen on {settings.host} without a token; create one first: "
        f"driftquilt token create ops --scope admin --store {settings.store}"
    )


def serve(settings: ServeSettings, announce: Callable[[int], None]) -> int:
    """Serve until a signal; return the exit code. `announce` gets the port once it is taken."""
    needs_token(settings)
    configure_logs(settings.log_format, settings.log_level)
    sys.setswitchinterval(_SWITCH)
    gc.set_threshold(_GC_OBJECTS)
    service = make_app(settings)
    config = uvicorn.Config(
        service,
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        date_header=False,
        backlog=_BACKLOG,
        timeout_graceful_shutdown=math.ceil(settings.drain_seconds),
        timeout_keep_alive=75,
        http=cast(
            "type[asyncio.Protocol]",
            partial(
                HttpProtocol,
                head_seconds=settings.body_seconds,
                max_connections=settings.max_connections,
            ),
        ),
        ws="none",
    )
    server = _Server(config, service)
    importlib.import_module("driftquilt.learners.mlp_kernels")  # compiles what is not yet
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(made) for made in listen(settings)]
        stack.enter_context(lock_store(settings.store))
        announce(sockets[0].getsockname()[1])
        server.run(sockets)
    return 0 if server.started else 1


@contextlib.contextmanager
def lock_store(store: Path) -> Iterator[None]:
    """Let nobody else serve the store inside the block; the lock ends with the process.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> with lock_store(folder), lock_store(folder):
    ...     pass
    Traceback (most recent call last):
    driftquilt.errors.StoreError: ... is served by another process; stop that one, or give another \
--store
    """
    with contextlib.ExitStack() as opened:
        try:
            store.mkdir(parents=True, exist_ok=True)
            file = opened.enter_context((store / "serve.lock").open("a"))
            lock_file(file.fileno())
        except BlockingIOError as error:
            raise StoreError(
                f"{store} is served by another process; stop that one, or give another --store"
            ) from error
        except OSError as error:
            raise StoreError(f"cannot open {store}: {describe_os_error(error)}") from error
        yield


def address(host: str, port: int) -> str:
    """Return host and port as in a URL."""
    host = host.strip("[]")
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def listen(settings: ServeSettings) -> list[socket.socket]:
    """Bind a socket for each address of the host, all with one port.

    >>> from driftquilt.server.settings import load_settings
    >>> [first] = listen(load_settings(port=0))
    >>> port = first.getsockname()[1]
    >>> first.listen()
    >>> listen(load_settings(port=port))
    Traceback (most recent call last):
    driftquilt.errors.InputError: cannot listen on 127.0.0.1:...: address already in use; \
choose another --port
    >>> first.close()
    """
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
