"""The HTTP service with its live page: `driftquilt serve` as a package.

Names are loaded when they are first used, since they need the extra `serve`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from driftquilt.errors import MissingExtraError

if TYPE_CHECKING:
    from driftquilt.server.app import Service, make_app
    from driftquilt.server.run import address, needs_token, serve
    from driftquilt.server.settings import ServeSettings, load_settings
    from driftquilt.server.tokens import Token, Tokens

__all__ = [
    "ServeSettings",
    "Service",
    "Token",
    "Tokens",
    "address",
    "load_settings",
    "make_app",
    "needs_token",
    "serve",
]

_MODULES = {
    "ServeSettings": "settings", "Service": "app", "Token": "tokens", "Tokens": "tokens",
    "address": "run", "load_settings": "settings", "make_app": "app", "needs_token": "run",
    "serve": "run",
}  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    except ModuleNotFoundError as error:
        raise MissingExtraError(str(error.name), extra="serve") from error
