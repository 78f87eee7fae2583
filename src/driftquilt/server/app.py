"""The service as one ASGI application: the gate, the operations, the page, and their life.

>>> from driftquilt.server.settings import ServeSettings
>>> import tempfile
>>> app = make_app(ServeSettings(store=tempfile.mkdtemp()))
>>> sorted(app.openapi()["paths"])[:3]
['/healthz', '/metrics', '/readyz']
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
from collections.abc import AsyncIterator
from typing import Any

import orjson
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.routing import Route

from driftquilt import __version__
from driftquilt.errors import StoreError
from driftquilt.server import problems, schemas
from driftquilt.server.answers import answer
from driftquilt.server.documents import document
from driftquilt.server.feeds import Feeds
from driftquilt.server.gate import CALLER, REQUEST_ID, Caller, Gate, Receive, Scope, Send
from driftquilt.server.house import House
from driftquilt.server.lanes import Lanes
from driftquilt.server.metrics import Metrics
from driftquilt.server.models_api import ModelsApi
from driftquilt.server.page import load_page
from driftquilt.server.past_api import PastApi
from driftquilt.server.problems import Problem, internal
from driftquilt.server.rows_api import RowsApi
from driftquilt.server.settings import ServeSettings
from driftquilt.server.streams_api import StreamsApi
from driftquilt.server.tokens import Tokens

__all__ = ["Service", "make_app"]

_WORDS = "Predictions, labels and drift of a team's streams. Every error is a problem (RFC 9457)."


class Service:
    """The application; `stop` makes it refuse what is new."""

    def __init__(self, settings: ServeSettings) -> None:
        self.settings = settings
        self.house = House(settings)
        self._feeds = Feeds(self.house, settings)
        self.metrics = Metrics(lambda: self.house)
        self._app = FastAPI(
            title="driftquilt", version=__version__, description=_WORDS, lifespan=self._life,
            docs_url=None, redoc_url=None, openapi_url=None, redirect_slashes=False,
        )  # fmt: skip
        rows = RowsApi(self.house)
        apis: list[StreamsApi | RowsApi | PastApi | ModelsApi] = [
            StreamsApi(self.house),
            rows,
            PastApi(self.house, self._goes_on),
            ModelsApi(self.house),
        ]
        for operation in (found for api in apis for found in api.operations()):
            method, path, handler, told = operation
            self._app.add_api_route(path, handler, methods=[method], **told)
        self._add_operations()
        self._add_page()
        for kind in (Problem, StoreError, RequestValidationError, HTTPException, Exception):
            self._app.add_exception_handler(kind, _refuse)
        lanes = Lanes(self._app, {"predict": rows.predict, "labels": rows.labels})
        self._gate = Gate(lanes, settings, Tokens(settings.store / "tokens.json"), self.metrics)
        self.ready = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._gate(scope, receive, send)

    def openapi(self) -> dict[str, Any]:
        """The OpenAPI document."""
        if self._app.openapi_schema is None:
            told = self._app.openapi()
            components = told.setdefault("components", {})
            components["securitySchemes"] = {
                "token": {"type": "http", "scheme": "bearer", "description": "See /v1/me."}
            }
        return self._app.openapi()

    def _goes_on(self, caller: Caller) -> bool:
        return self._gate.goes_on(caller)

    def stop(self) -> None:
        """Refuse every new request; those under way go on."""
        self._gate.stopping = True
        self.house.wake()

    @contextlib.asynccontextmanager
    async def _life(self, app: FastAPI) -> AsyncIterator[None]:  # noqa: ARG002
        self.house.open(asyncio.get_running_loop())
        self._feeds.start(asyncio.get_running_loop())
        gc.collect()
        gc.freeze()  # what is there by now stays, and is not to be looked through again and again
        self.ready = True
        try:
            yield
        finally:
            gc.unfreeze()
            self.ready = False
            self.stop()
            await self._feeds.stop()
            await self.house.close()
            self._gate.write_log()

    def _add_operations(self) -> None:
        app = self._app

        @app.get("/healthz", **_open(schemas.Health, "Whether the process answers"))
        async def healthz() -> Response:
            return answer({"status": "ok"})

        @app.get("/readyz", **_open(schemas.Health, "Whether streams are open and learn"))
        async def readyz() -> Response:
            if not self.ready:
                raise Problem("stopping", "the service is starting or stopping")
            return answer({"status": "ready"})

        @app.get("/metrics", **document("read", None, "Figures for Prometheus", media="text/plain"))
        async def metrics(request: Request) -> Response:
            request.scope[CALLER].expect("read")
            return Response(self.metrics.text(), media_type="text/plain; version=0.0.4")

        @app.get("/openapi.json", include_in_schema=False)
        async def openapi() -> Response:
            return answer(self.openapi())

    def _add_page(self) -> None:
        page = load_page()

        async def file(request: Request) -> Response:
            found = page.get(request.url.path)
            if found is None:
                raise Problem("not-found", "there is no such file")
            headers = {"ETag": found.etag}
            if request.headers.get("if-none-match") == found.etag:
                return Response(status_code=304, headers=headers)
            return Response(found.content, headers=headers, media_type=found.media_type)

        for path in ("/", "/static/{name}"):
            self._app.add_route(path, file, methods=["GET"], include_in_schema=False)


def make_app(settings: ServeSettings) -> Service:
    """The service, which opens its streams when its life begins."""
    return Service(settings)


def _open(told: Any, summary: str) -> dict[str, Any]:
    made = document("", told, summary)
    made["openapi_extra"] = {"security": []}
    return made


async def _refuse(request: Request, error: Exception) -> Response:
    problem = _to_problem(error, request)
    told = problem.to_json(request.scope[REQUEST_ID])
    return Response(
        orjson.dumps(told), problem.status, problem.headers, media_type=problems.MEDIA_TYPE
    )


def _to_problem(error: Exception, request: Request) -> Problem:
    if isinstance(error, Problem):
        return error
    if isinstance(error, StoreError):
        return Problem("stream-failed", "the stream cannot be read at the moment")
    if isinstance(error, RequestValidationError):
        first = error.errors()[0]
        where = f"{first['loc'][-1]!r} in the {first['loc'][0]}"
        wanted = first.get("ctx", {}).get("expected")  # our own words, of a parameter with few
        takes = f"takes {wanted}" if wanted else "is not one it takes"
        return Problem("parameter-invalid", f"{where} {takes}")
    if isinstance(error, HTTPException):
        if error.status_code == 405:  # noqa: PLR2004
            allowed = _allowed(request)
            return Problem("method-unknown", f"this path takes {allowed}", {"Allow": allowed})
        return Problem("not-found", "there is nothing at this path")
    return internal()


def _allowed(request: Request) -> str:
    """The methods of a path, which are routes of their own."""
    routes = [route for route in request.app.routes if isinstance(route, Route)]
    fitting = [route for route in routes if route.path_regex.match(request.scope["path"])]
    return ", ".join(sorted({method for route in fitting for method in route.methods or ()}))
