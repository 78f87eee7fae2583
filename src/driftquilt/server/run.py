"""The service from start to stop: listen, answer, and on SIGTERM finish what was begun.

At SIGTERM or Ctrl-C no new request is taken; those under way are answered, rows that were taken
are learned and made durable, a training is given up and begins again at the next start. Requests
get `drain_seconds`; rows that still wait to be learned then take as long as they take.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import math
import signal
import sys
from collections.abc import Callable, Iterator
from functools import partial
from types import FrameType
from typing import cast

import uvicorn

from driftquilt.errors import InputError
from driftquilt.server.app import Service, make_app
from driftquilt.server.hold import hold
from driftquilt.server.listen import listen
from driftquilt.server.logs import configure_logs
from driftquilt.server.settings import ServeSettings
from driftquilt.server.tokens import Tokens
from driftquilt.server.wire import Http

__all__ = ["needs_token", "serve"]

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_SWITCH = 0.0005  # seconds that a thread may keep the others waiting
_BACKLOG = 1024


class _Server(uvicorn.Server):
    """uvicorn, which tells the service when it is time to stop."""

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
    """Whether callers need a token; an error if they need one that nobody could have."""
    tokens = Tokens(settings.store / "tokens.json")
    if settings.is_loopback or len(tokens):
        return tokens.were_made
    raise InputError(
        f"others could reach {settings.host}, and there is no token; make one first: "
        f"driftquilt token create ops --scope admin --store {settings.store}"
    )


def serve(settings: ServeSettings, announce: Callable[[int], None]) -> int:
    """Serve until told to stop; the exit code. `announce` is told the port once it is taken."""
    needs_token(settings)
    configure_logs(settings.log_format, settings.log_level)
    sys.setswitchinterval(_SWITCH)
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
                Http,
                head_seconds=settings.body_seconds,
                max_connections=settings.max_connections,
            ),
        ),
        ws="none",
    )
    server = _Server(config, service)
    importlib.import_module("driftquilt.learners.mlp_kernels")  # compiles what is not yet
    with contextlib.ExitStack() as held:
        sockets = [held.enter_context(made) for made in listen(settings)]
        held.enter_context(hold(settings.store))
        announce(sockets[0].getsockname()[1])
        server.run(sockets)
    return 0 if server.started else 1
