"""Everything that can be asked of the service, written once for both clients.

`OPERATIONS` is the table. `Service` and `Stream` turn a method's arguments into a `Call`; a client
sends it, and returns the answer or something to await. Answers are the service's JSON, as dicts.
"""

from __future__ import annotations

import uuid
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar
from urllib.parse import quote

from driftquilt.client.rows import Body, as_body, as_json
from driftquilt.errors import InputError

__all__ = ["OPERATIONS", "Call", "Service", "Stream", "make_call"]

_STREAM = "/v1/streams/{name}"

OPERATIONS = {
    "health": ("GET", "/healthz"),
    "ready": ("GET", "/readyz"),
    "metrics": ("GET", "/metrics"),
    "me": ("GET", "/v1/me"),
    "streams": ("GET", "/v1/streams"),
    "create_stream": ("POST", "/v1/streams"),
    "status": ("GET", _STREAM),
    "delete": ("DELETE", _STREAM),
    "predict": ("POST", f"{_STREAM}/predict"),
    "learn": ("POST", f"{_STREAM}/labels"),
    "label": ("POST", f"{_STREAM}/labels"),
    "events": ("GET", f"{_STREAM}/events"),
    "live_events": ("GET", f"{_STREAM}/events/live"),
    "segments": ("GET", f"{_STREAM}/segments"),
    "selections": ("GET", f"{_STREAM}/selections"),
    "selection": ("GET", f"{_STREAM}/selections/{{number}}"),
    "accuracy": ("GET", f"{_STREAM}/accuracy"),
    "drawing": ("GET", f"{_STREAM}/drawings/{{kind}}"),
    "models": ("GET", f"{_STREAM}/models"),
    "promote": ("POST", f"{_STREAM}/models/{{version}}/promote"),
    "rollback": ("POST", f"{_STREAM}/models/rollback"),
    "model_file": ("GET", f"{_STREAM}/models/{{version}}/file"),
    "adapt": ("POST", f"{_STREAM}/adapt"),
}

Answer = TypeVar("Answer")
Content = TypeVar("Content")
Events = TypeVar("Events")


@dataclass(frozen=True)
class Call:
    """A request to be sent, perhaps more than once."""

    method: str
    path: str
    params: dict[str, Any] = field(default_factory=dict)
    content: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)

    def request(self) -> dict[str, Any]:
        """Return the arguments of httpx's `request`."""
        return {
            "method": self.method, "url": self.path, "params": self.params,
            "content": self.content, "headers": self.headers,
        }  # fmt: skip


def make_call(
    operation: str, body: Body | None = None, params: Mapping[str, Any] | None = None, **parts: Any
) -> Call:
    """Return the call of an operation; `parts` fill its path.

    Every POST has a key of its own, by which the service knows it again when it is repeated.

    >>> make_call("selection", name="a b", number=7).path
    '/v1/streams/a%20b/selections/7'
    """
    method, path = OPERATIONS[operation]
    headers = {} if method != "POST" else {"Idempotency-Key": uuid.uuid4().hex}
    if body is not None:
        headers["Content-Type"] = body.kind
    filled = path.format(**{name: quote(str(part), safe="") for name, part in parts.items()})
    given = {name: value for name, value in (params or {}).items() if value is not None}
    return Call(method, filled, given, body.content if body else b"", headers)


class Service(ABC, Generic[Answer, Content, Events]):
    """The service as a whole; what becomes of a call is up to the client."""

    @abstractmethod
    def _answer(self, call: Call) -> Answer:
        """Return the answer, read as JSON."""

    @abstractmethod
    def _content(self, call: Call) -> Content:
        """Return the answer as bytes."""

    @abstractmethod
    def _events(self, call: Call, *, live: bool) -> Events:
        """Return the events, page by page, or as they happen."""

    def health(self) -> Answer:
        return self._answer(make_call("health"))

    def ready(self) -> Answer:
        """Ask whether it takes requests; a ServiceError with status 503 if it does not."""
        return self._answer(make_call("ready"))

    def metrics(self) -> Content:
        """Return the metrics as Prometheus reads them."""
        return self._content(make_call("metrics"))

    def me(self) -> Answer:
        """Return the name and the scopes of the token."""
        return self._answer(make_call("me"))

    def streams(self) -> Answer:
        return self._answer(make_call("streams"))

    def create_stream(self, name: str, **options: Any) -> Answer:
        """Create a stream.

        Options: task, coverage, detector, guard, settings, schema, random_state, class_weight,
        metric. With the task "regression" labels are numbers.
        """
        body = as_json({"name": name, **options})
        return self._answer(make_call("create_stream", body))

    def stream(self, name: str) -> Stream[Answer, Content, Events]:
        """Return a handle for one stream; nothing is asked yet."""
        return Stream(self, name)


class Stream(Generic[Answer, Content, Events]):
    """One stream of the service.

    `rows` are dicts by column, or a table: pandas, polars, Arrow and others. Tables travel as
    Arrow.
    """

    def __init__(self, service: Service[Answer, Content, Events], name: str) -> None:
        self._service = service
        self.name = name

    def __repr__(self) -> str:
        return f"<stream {self.name!r} of {self._service!r}>"

    def status(self) -> Answer:
        return self._ask("status")

    def delete(self) -> Answer:
        """Remove the stream and all that it has learned."""
        return self._ask("delete")

    def predict(self, rows: Any, *, keep: bool = True) -> Answer:
        """Labels and probabilities, or numbers and intervals.

        Rows that are kept wait for their labels under `ids`.
        """
        return self._ask("predict", as_body(rows, keep=keep))

    def learn(self, rows: Any, labels: Iterable[Any]) -> Answer:
        """Learn rows with their labels at once."""
        return self._ask("learn", as_body(rows, labels=list(labels)))

    def label(self, ids: Iterable[str], labels: Iterable[Any]) -> Answer:
        """Learn the labels of the predicted rows with these ids."""
        ids, labels = list(ids), list(labels)
        if len(labels) != len(ids):
            raise InputError(f"{len(ids)} ids came with {len(labels)} labels; give one for each")
        pairs = [{"id": row, "label": label} for row, label in zip(ids, labels, strict=True)]
        return self._ask("label", as_json({"labels": pairs}))

    def events(self, *, after: int = 0, live: bool = False) -> Events:
        """Return what happened since event number `after`; live, also whatever happens next.

        Live, it continues until it is closed, over lost connections too, and misses nothing.
        """
        operation = "live_events" if live else "events"
        call = make_call(operation, params={"after": after}, name=self.name)
        return self._service._events(call, live=live)

    def segments(self) -> Answer:
        return self._ask("segments")

    def selections(self) -> Answer:
        return self._ask("selections")

    def selection(self, number: int) -> Answer:
        """One selection with its explanation."""
        return self._ask("selection", number=number)

    def accuracy(self) -> Answer:
        return self._ask("accuracy")

    def drawing(self, kind: str, **sizes: int) -> Content:
        """Return an SVG: `quilt` (sizes: width, smallest, rows), `accuracy` or `sparkline`."""
        return self._service._content(make_call("drawing", params=sizes, name=self.name, kind=kind))

    def models(self) -> Answer:
        return self._ask("models")

    def promote(self, version: int) -> Answer:
        """Use this model from now on."""
        return self._ask("promote", version=version)

    def rollback(self) -> Answer:
        """Use the next older model that is kept."""
        return self._ask("rollback")

    def model_file(self, version: int, *, file_format: str = "safetensors") -> Content:
        """Return a model's file: `safetensors` or `onnx`."""
        params = {"format": file_format}
        call = make_call("model_file", params=params, name=self.name, version=version)
        return self._service._content(call)

    def adapt(self) -> Answer:
        """Train a new model now."""
        return self._ask("adapt")

    def _ask(self, operation: str, body: Body | None = None, **parts: Any) -> Answer:
        return self._service._answer(make_call(operation, body, name=self.name, **parts))
