"""The service as one ASGI application: middleware, routes, the live page, and its lifespan.

The page is plain HTML, CSS and ES modules with no build step and no other host. Its files are read
once at start. Drawings come from `report`, with the style sheet and the script that the HTML
report has too.

>>> from driftquilt.server.settings import load_settings
>>> import tempfile
>>> app = make_app(load_settings(store=tempfile.mkdtemp()))
>>> sorted(app.openapi()["paths"])[:3]
['/healthz', '/metrics', '/readyz']
>>> load_page()["/static/page.js"].media_type
'text/javascript; charset=utf-8'
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import hashlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from driftquilt.report.html import drawing_files
from driftquilt.server.feeds import Feeds
from driftquilt.server.metrics import Metrics
from driftquilt.server.middleware import RequestMiddleware
from driftquilt.server.openapi import openapi_document
from driftquilt.server.problems import Problem
from driftquilt.server.registry import StreamRegistry
from driftquilt.server.routes import Routes, json_response
from driftquilt.server.settings import ServeSettings
from driftquilt.server.tokens import Tokens

__all__ = ["PageFile", "Service", "load_page", "make_app"]

_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}


class Service(Starlette):
    """The application; `stop` makes it refuse new requests."""

    def __init__(self, settings: ServeSettings) -> None:
        self.settings = settings
        self.registry = StreamRegistry(settings)
        self.metrics = Metrics(lambda: self.registry)
        self.ready = False
        self._feeds = Feeds(self.registry, settings)
        tokens = Tokens(settings.store / "tokens.json")
        self._middleware = RequestMiddleware(settings, tokens, self.metrics)
        goes_on = self._middleware.goes_on
        routes = Routes(self.registry, self.metrics, goes_on, lambda: self.ready)
        operations = routes.operations()
        self._document = openapi_document(operations)
        self._page = load_page()
        super().__init__(
            routes=[
                *(_route(op.path, op, op.method) for op in operations),
                _route("/openapi.json", self._serve_document, "GET"),
                _route("/", self._serve_file, "GET"),
                _route("/static/{name}", self._serve_file, "GET"),
            ],
            middleware=[Middleware(self._middleware.wrap)],
            exception_handlers={HTTPException: _refuse_path},
            lifespan=self._lifespan,
        )
        self.router.redirect_slashes = False

    def openapi(self) -> dict[str, Any]:
        """Return the OpenAPI document."""
        return self._document

    def stop(self) -> None:
        """Refuse every new request; those under way go on."""
        self._middleware.stopping = True
        self.registry.wake()

    @contextlib.asynccontextmanager
    async def _lifespan(self, _: Starlette) -> AsyncIterator[None]:
        self.registry.open(asyncio.get_running_loop())
        self._feeds.start(asyncio.get_running_loop())
        gc.collect()
        gc.freeze()  # what is there by now stays, so the collector need not look through it
        self.ready = True
        try:
            yield
        finally:
            gc.unfreeze()
            self.ready = False
            self.stop()
            await self._feeds.stop()
            await self.registry.close()
            self._middleware.flush_log()

    async def _serve_document(self, _: Request) -> Response:
        return json_response(self._document)

    async def _serve_file(self, request: Request) -> Response:
        file = self._page.get(request.url.path)
        if file is None:
            raise Problem("not-found", "there is no such file")
        headers = {"ETag": file.etag}
        if request.headers.get("if-none-match") == file.etag:
            return Response(status_code=304, headers=headers)
        return Response(file.content, headers=headers, media_type=file.media_type)


@dataclass(frozen=True)
class PageFile:
    """A file as it is sent; the tag changes whenever the content does."""

    content: bytes
    media_type: str
    etag: str


def load_page() -> dict[str, PageFile]:
    """Every file of the page by the path it is served at."""
    found = {
        f"/static/{name}": _page_file(name, text.encode()) for name, text in drawing_files().items()
    }
    for file in (files("driftquilt.server") / "static").iterdir():
        path = "/" if file.name == "index.html" else f"/static/{file.name}"
        found[path] = _page_file(file.name, file.read_bytes())
    return found


def _page_file(name: str, content: bytes) -> PageFile:
    ending = name[name.rindex(".") :]
    return PageFile(content, _TYPES[ending], f'"{hashlib.sha256(content).hexdigest()[:32]}"')


def make_app(settings: ServeSettings) -> Service:
    """Return the service, which opens its streams when its lifespan begins."""
    return Service(settings)


def _route(path: str, endpoint: Any, method: str) -> Route:
    route = Route(path, endpoint, methods=[method])
    route.methods = {method}  # Starlette adds HEAD, which no operation declares
    return route


async def _refuse_path(request: Request, error: Exception) -> Response:
    """Turn what Starlette's router raises into a problem, which the middleware answers with."""
    if isinstance(error, HTTPException) and error.status_code == 405:  # noqa: PLR2004
        allowed = ", ".join(sorted(_methods(request)))
        raise Problem("method-unknown", f"this path takes {allowed}", {"Allow": allowed})
    raise Problem("not-found", "there is nothing at this path")


def _methods(request: Request) -> set[str]:
    """Return the methods of a path, each of which is a route of its own."""
    routes = [route for route in request.app.routes if isinstance(route, Route)]
    fitting = [route for route in routes if route.path_regex.match(request.scope["path"])]
    return {method for route in fitting for method in route.methods or ()}
