"""The operations of the service over HTTP: streams, rows, their past, models, health.

An `Operation` is an endpoint of Starlette, and `Routes.operations` is the table of all. Each
handler is given the request and its parameters, checked, and returns a response. Whatever waits
for a stream or takes long runs on a thread, so that the event loop stays free.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar, get_args, get_origin

import msgspec
import orjson
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from driftquilt.errors import InputError
from driftquilt.server import payloads, schemas
from driftquilt.server.bodies import (
    decode_strictly,
    expect_values,
    explain,
    pack_rows,
    read_labels,
    read_predict,
)
from driftquilt.server.ingestion import short_digest
from driftquilt.server.metrics import Metrics
from driftquilt.server.problems import Problem
from driftquilt.server.registry import StreamRegistry
from driftquilt.server.schemas import ARROW, JSON, KEY_LETTERS
from driftquilt.server.tokens import SCOPES, Token
from driftquilt.server.worker import StreamWorker
from driftquilt.store.base import State

__all__ = ["Operation", "Routes", "json_response"]

T = TypeVar("T")
Handler = Callable[[Request, Any], Awaitable[Response]]

_LARGE = 1 << 16  # bytes of a body that is read on a thread
_MANY = 1 << 13  # values that are predicted from, or encoded, on a thread
_MAX_DIGITS = 15
_BYTES = "application/octet-stream"
_EVENT_STREAM = "text/event-stream"
_SVG = "image/svg+xml"
_METRICS = "text/plain; version=0.0.4"
_KEY = re.compile(KEY_LETTERS)


class _Request(Request):
    """A request whose body is read without Starlette's stream of chunks, at a third of its cost."""

    async def body(self) -> bytes:
        if not hasattr(self, "_body"):
            parts, more = [], True
            while more:
                message = await self.receive()
                if message["type"] == "http.disconnect":
                    raise ClientDisconnect
                parts.append(message.get("body", b""))
                more = message.get("more_body", False)
            self._body = parts[0] if len(parts) == 1 else b"".join(parts)
        return self._body


@dataclass(frozen=True, eq=False)
class Operation:
    """One way to ask: method, path, scope, parameters, body, answer; `openapi` documents it.

    `scope` is what a token needs, None if no token is needed. `answer` is a struct, None if there
    is not JSON; `media_types` are the other forms of the answer.
    """

    method: str
    path: str
    handler: Handler
    summary: str
    scope: str | None = "read"
    parameters: type[msgspec.Struct] = schemas.NoParameters
    body: Any = None
    takes_arrow: bool = False
    answer: Any = None
    status: int = 200
    media_types: Sequence[str] = ()
    headers: Sequence[str] = ()
    problems: Sequence[int] = ()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check who asks and what for, then answer."""
        request = _Request(scope, receive)
        if self.scope is not None and not scope["state"]["caller"].may(self.scope):
            raise Problem("scope-missing", f"this takes a token with the scope {self.scope}")
        response = await self.handler(request, self._read_parameters(request))
        await response(scope, receive, send)

    def _read_parameters(self, request: Request) -> Any:
        given = request.path_params
        if request.scope["query_string"]:
            given = {**request.query_params, **given}
        try:
            return msgspec.convert(given, self.parameters, strict=False)
        except msgspec.ValidationError as error:
            choices = [
                f"{parameter.name} takes {', '.join(map(repr, get_args(parameter.type)))}"
                for parameter in msgspec.structs.fields(self.parameters)
                if get_origin(parameter.type) is Literal
            ]
            detail = "; ".join([explain(error), *choices])
            raise Problem("parameter-invalid", detail) from error


class Routes:
    """Handlers of all operations; `goes_on` says whether an endless answer may go on."""

    def __init__(
        self,
        registry: StreamRegistry,
        metrics: Metrics,
        goes_on: Callable[[Token], bool],
        is_ready: Callable[[], bool],
    ) -> None:
        self._registry, self._metrics = registry, metrics
        self._goes_on, self._is_ready = goes_on, is_ready

    def operations(self) -> list[Operation]:
        """List all operations, the most frequent first."""
        stream, models = "/v1/streams/{name}", "/v1/streams/{name}/models"
        one: dict[str, Any] = {"parameters": schemas.StreamParameters}
        once: dict[str, Any] = {"headers": ["Idempotency-Key"]}
        return [
            Operation(
                "POST", f"{stream}/predict", self.predict, "Predict rows", "write", **one,
                body=schemas.PredictBody, takes_arrow=True,
                answer=schemas.Predictions, media_types=[ARROW], problems=[406, 415],
            ),
            Operation(
                "POST", f"{stream}/labels", self.learn,
                "Learn labels of predicted rows, or rows with labels", "write", **one, **once,
                body=schemas.LabelsBody, takes_arrow=True,
                answer=schemas.Learned, problems=[409, 415],
            ),
            Operation("GET", "/v1/me", self.me, "Who asks", answer=schemas.Me),
            Operation(
                "GET", "/v1/streams", self.list_streams, "All streams", answer=schemas.Streams
            ),
            Operation(
                "POST", "/v1/streams", self.create_stream, "Create a stream", "admin", **once,
                body=schemas.NewStream, answer=schemas.Stream,
                status=201, problems=[409, 413, 415],
            ),
            Operation("GET", stream, self.get_stream, "A stream", **one, answer=schemas.Stream),
            Operation(
                "DELETE", stream, self.delete_stream, "Delete a stream and its rows", "admin",
                **one, status=204,
            ),
            Operation(
                "GET", f"{stream}/events", self.list_events, "What happened",
                parameters=schemas.EventsParameters, answer=schemas.Events,
            ),
            Operation(
                "GET", f"{stream}/events/live", self.live_events,
                "What happens, as server-sent events", parameters=schemas.LiveParameters,
                media_types=[_EVENT_STREAM], headers=["Last-Event-ID"],
            ),
            Operation(
                "GET", f"{stream}/segments", self.list_segments,
                "Past segments and the current one", **one, answer=schemas.Segments,
            ),
            Operation(
                "GET", f"{stream}/selections", self.list_selections,
                "Trainings, and the segments they used", **one, answer=schemas.Selections,
            ),
            Operation(
                "GET", f"{stream}/selections/{{number}}", self.get_selection,
                "A training explained", parameters=schemas.SelectionParameters,
                answer=schemas.SelectionExplained,
            ),
            Operation(
                "GET", f"{stream}/accuracy", self.get_accuracy, "Accuracy over the stream's life",
                **one, answer=schemas.Accuracy,
            ),
            Operation(
                "GET", f"{stream}/drawings/{{kind}}", self.get_drawing,
                "The quilt, or the accuracy or error, as SVG", parameters=schemas.DrawingParameters,
                media_types=[_SVG],
            ),
            Operation(
                "GET", models, self.list_models, "Models that are kept", **one,
                answer=schemas.Models,
            ),
            Operation(
                "GET", f"{models}/{{version}}/file", self.get_model_file, "A model's file",
                parameters=schemas.ModelFileParameters, media_types=[_BYTES], problems=[406],
            ),
            Operation(
                "POST", f"{models}/{{version}}/promote", self.promote, "Use a model", "admin",
                parameters=schemas.ModelParameters, **once, answer=schemas.ModelInUse,
            ),
            Operation(
                "POST", f"{models}/rollback", self.roll_back, "Use the next older model", "admin",
                **one, **once, answer=schemas.ModelInUse, problems=[409],
            ),
            Operation(
                "POST", f"{stream}/adapt", self.adapt, "Train now", "admin", **one, **once,
                answer=schemas.Adapting, status=202, problems=[409],
            ),
            Operation(
                "GET", "/healthz", self.health, "Whether the process answers", None,
                answer=schemas.Health,
            ),
            Operation(
                "GET", "/readyz", self.readiness, "Whether streams are open and learn", None,
                answer=schemas.Health,
            ),
            Operation(
                "GET", "/metrics", self.get_metrics, "Metrics for Prometheus",
                media_types=["text/plain"],
            ),
        ]  # fmt: skip

    # Rows.

    async def predict(self, request: Request, at: schemas.StreamParameters) -> Response:
        """Answer from what the stream knows now; rows wait for their labels if kept."""
        worker, media_type = self._registry[at.name], _media_type(request, JSON, ARROW)
        as_arrow = payloads.wants_arrow(request.headers.get("accept", ""))
        body, view = await request.body(), worker.view

        def read() -> Any:
            max_rows, schema = self._registry.settings.max_rows, worker.about.schema
            rows = read_predict(body, media_type, max_rows, schema)
            view.expect(rows.frame, schema)
            expect_values(len(rows.frame), len(view.answers.classes), "classes")
            return rows

        rows = await self._on_thread(read, len(body) > _LARGE)
        n_values = len(rows.frame) * (len(rows.frame.columns) + len(view.answers.classes))
        answers = await self._on_thread(lambda: view.answers.predict(rows.frame), n_values > _MANY)
        ids = None
        if rows.keep:
            packed = pack_rows(rows.frame, body, media_type)
            ids = await worker.keep(*packed, len(rows.frame))

        def encode() -> Response:
            answer = payloads.predictions(ids, view, answers, worker.about.coverage)
            if as_arrow:
                return Response(payloads.to_arrow(answer), media_type=ARROW)
            return json_response(answer)

        return await self._on_thread(encode, answers.size > _MANY)

    async def learn(self, request: Request, at: schemas.StreamParameters) -> Response:
        """Learn, and answer when everything is durable."""
        worker, media_type = self._registry[at.name], _media_type(request, JSON, ARROW)
        body = await request.body()
        key, digest = await _read_key(request)

        def read() -> Any:
            max_rows, schema = self._registry.settings.max_rows, worker.about.schema
            return read_labels(body, media_type, max_rows, schema, worker.stream.task)

        labels = await self._on_thread(read, len(body) > _LARGE)
        answer, replayed = await worker.learn(labels, key, digest, len(body))
        return json_response(answer, replayed=replayed)

    # Streams.

    async def me(self, request: Request, _: Any) -> Response:
        """Name and scopes of the token."""
        caller: Token = request.state.caller
        scopes = [scope for scope in SCOPES if caller.may(scope)]
        return json_response(schemas.Me(caller.name or None, scopes))

    async def list_streams(self, _request: Request, _: Any) -> Response:
        """All streams as they are now."""
        streams = [worker.status() for worker in self._registry]
        return json_response(schemas.Streams(streams, sorted(self._registry.damaged)))

    async def create_stream(self, request: Request, _: Any) -> Response:
        """Create a stream; the same key again returns the one that was created."""
        _media_type(request, JSON)
        new = decode_strictly(await request.body(), schemas.NewStream)
        key, digest = await _read_key(request)
        replayed = False
        try:
            worker = await self._registry.create(new, key, digest)
        except Problem as problem:
            if problem.kind != "stream-exists" or key is None:
                raise
            worker = self._registry[new.name]
            if worker.ingestion.keys.find(key, digest) is None:
                raise
            replayed = True
        headers = {"Location": f"/v1/streams/{new.name}"}
        return json_response(worker.status(), 201, headers, replayed=replayed)

    async def get_stream(self, _: Request, at: schemas.StreamParameters) -> Response:
        """Return a stream as it is now."""
        return json_response(self._registry[at.name].status())

    async def delete_stream(self, _: Request, at: schemas.StreamParameters) -> Response:
        """Delete a stream, its rows and its models, for good."""
        await self._registry.delete(at.name)
        return Response(status_code=204)

    # The past of a stream.

    async def list_events(self, _: Request, at: schemas.EventsParameters) -> Response:
        """Return a page of events, oldest first."""
        return json_response(payloads.events(self._registry[at.name], at.after, at.limit))

    async def live_events(self, request: Request, at: schemas.LiveParameters) -> Response:
        """Events after a number, then those to come; `Last-Event-ID` resumes."""
        caller, worker, after = request.state.caller, self._registry[at.name], at.after
        last = request.headers.get("last-event-id", "")
        if last.isascii() and last.isdigit() and len(last) <= _MAX_DIGITS:
            after = max(after, int(last))
        return StreamingResponse(
            payloads.live(worker, after, lambda: not worker.closed and self._goes_on(caller)),
            media_type=_EVENT_STREAM,
        )

    async def list_segments(self, _: Request, at: schemas.StreamParameters) -> Response:
        """Past segments, and how much recent trainings used them."""
        return await self._read(at.name, payloads.segments)

    async def list_selections(self, _: Request, at: schemas.StreamParameters) -> Response:
        """Return the rows of the quilt."""
        return await self._read(at.name, payloads.selections)

    async def get_selection(self, _: Request, at: schemas.SelectionParameters) -> Response:
        """One row of the quilt, in words."""
        return await self._read(at.name, lambda worker: payloads.selection(worker, at.number))

    async def get_accuracy(self, _: Request, at: schemas.StreamParameters) -> Response:
        """Return the curve that the page draws."""
        return json_response(payloads.accuracy(self._registry[at.name]))

    async def get_drawing(self, _: Request, at: schemas.DrawingParameters) -> Response:
        """Return the quilt, the line of accuracy, or a small line without numbers."""
        worker = self._registry[at.name]
        drawing = await self._on_thread(lambda: payloads.drawing(worker, at), True)
        return Response(drawing, media_type=_SVG)

    # Models.

    async def list_models(self, _: Request, at: schemas.StreamParameters) -> Response:
        """Models that can be promoted."""
        return await self._read(at.name, payloads.models)

    async def get_model_file(self, _: Request, at: schemas.ModelFileParameters) -> Response:
        """Return a model as `load_model` or an ONNX runtime reads it."""
        worker = self._registry[at.name]
        content = await self._on_thread(
            lambda: payloads.model_bytes(worker, at.version, at.format), True
        )
        file = f"{at.name}-{at.version}.{at.format}"
        headers = {"Content-Disposition": f'attachment; filename="{file}"'}
        return Response(content, headers=headers, media_type=_BYTES)

    async def promote(self, request: Request, at: schemas.ModelParameters) -> Response:
        """Use a model until a training brings a better one."""
        return await _promote(self._registry[at.name], request, lambda: at.version)

    async def roll_back(self, request: Request, at: schemas.StreamParameters) -> Response:
        """Use the next older model that is kept."""
        worker = self._registry[at.name]
        return await _promote(worker, request, lambda: payloads.version_before(worker))

    async def adapt(self, request: Request, at: schemas.StreamParameters) -> Response:
        """Train for the current segment now."""
        worker = self._registry[at.name]

        def start() -> dict[str, Any]:
            try:
                worker.adapt()
            except InputError as error:
                raise Problem(
                    "nothing-to-adapt-to",
                    "training needs rows in the current segment, of two classes or with different "
                    "numbers",
                ) from error
            return {"training": True}

        return await _once(worker, request, start, status=202)

    # The service itself.

    async def health(self, _request: Request, _: Any) -> Response:
        """Whether the process answers."""
        return json_response(schemas.Health("ok"))

    async def readiness(self, _request: Request, _: Any) -> Response:
        """Whether the service takes requests."""
        if not self._is_ready():
            raise Problem("stopping", "the service is starting or stopping")
        return json_response(schemas.Health("ready"))

    async def get_metrics(self, _request: Request, _: Any) -> Response:
        """Everything that Prometheus collects."""
        return Response(self._metrics.text(), media_type=_METRICS)

    async def _read(self, name: str, payload: Callable[[StreamWorker], Any]) -> Response:
        worker = self._registry[name]
        return json_response(await self._on_thread(lambda: payload(worker), True))

    async def _on_thread(self, run: Callable[[], T], is_long: bool) -> T:
        """Run what takes long on a thread that nobody learns on, anything else here."""
        if not is_long:
            return run()
        return await asyncio.get_running_loop().run_in_executor(self._registry.readers, run)


def json_response(
    answer: Any,
    status: int = 200,
    headers: Mapping[str, str] | None = None,
    *,
    replayed: bool = False,
) -> Response:
    """Encode an answer, and mark it if it is that of an earlier request."""
    sent = {**(headers or {}), **({"Idempotent-Replayed": "true"} if replayed else {})}
    return Response(_encode(answer), status, sent, media_type=JSON)


def _numpy_to_json(array: Any) -> msgspec.Raw:
    return msgspec.Raw(orjson.dumps(array, option=orjson.OPT_SERIALIZE_NUMPY))


_encode = msgspec.json.Encoder(enc_hook=_numpy_to_json).encode


def _media_type(request: Request, *allowed: str) -> str:
    """Return the type of the body, if it is an allowed one."""
    headers = request.headers
    media_type = headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type not in allowed:
        raise Problem("body-type-unknown", f"send a body of type {' or '.join(allowed)}")
    if headers.get("content-encoding", "identity").lower() != "identity":
        raise Problem("body-type-unknown", "send the body without a content encoding")
    return media_type


async def _read_key(request: Request) -> tuple[str | None, str]:
    """Return the caller's Idempotency-Key, and a digest of what it stands for."""
    key = request.headers.get("idempotency-key")
    if key is None:
        return None, ""
    if not _KEY.fullmatch(key):
        raise Problem(
            "parameter-invalid", "an Idempotency-Key has 1 to 128 letters, digits and _.:-"
        )
    content = f"{request.method} {request.url.path}\n".encode() + await request.body()
    return key, short_digest(content)


async def _once(
    worker: StreamWorker,
    request: Request,
    decide: Callable[[], dict[str, Any]],
    carry_out: Callable[[dict[str, Any], State], None] | None = None,
    *,
    status: int = 200,
) -> Response:
    """Change a stream, once for each key."""
    key, digest = await _read_key(request)
    do_once = worker.ingestion.do_once
    answer, replayed = await worker.turn(lambda: do_once(key, digest, decide, carry_out))
    return json_response(answer, status, replayed=replayed)


async def _promote(worker: StreamWorker, request: Request, choose: Callable[[], int]) -> Response:
    def decide() -> dict[str, Any]:
        version = choose()
        if version not in worker.stream.models:
            raise Problem("model-unknown", "no model of this version is kept")
        return {"model": version}

    def carry_out(decision: dict[str, Any], note: State) -> None:
        worker.stream.roll_back(decision["model"], note=note)

    return await _once(worker, request, decide, carry_out)
