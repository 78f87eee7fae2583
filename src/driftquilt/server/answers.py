"""Answers as bytes: JSON without NaN, and predictions as an Arrow table if that is asked for."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
from fastapi import Response
from numpy.typing import NDArray

from driftquilt.data.labels import Label
from driftquilt.server.media import ARROW, JSON
from driftquilt.server.problems import Problem

__all__ = ["answer", "answer_predictions", "wants_arrow"]

_QUALITY = re.compile(r"\bq=(0(?:\.\d{0,3})?|1(?:\.0{0,3})?)\s*(?:;|$)")
_OPTIONS = orjson.OPT_SERIALIZE_NUMPY


def answer(told: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """A document; `replayed` among its keys becomes a header."""
    sent = dict(headers or {})
    if isinstance(told, dict) and told.pop("replayed", False):
        sent["Idempotent-Replayed"] = "true"
    body = orjson.dumps(told, option=_OPTIONS)
    return Response(body, status, sent, media_type=JSON)


def wants_arrow(accept: str) -> bool:
    """Which form an answer is to have.

    >>> wants_arrow("application/vnd.apache.arrow.stream, */*;q=0.1"), wants_arrow("*/*")
    (True, False)
    """
    if not accept:
        return False
    wanted = dict(map(_preference, accept.lower().split(",")))
    other = wanted.get("application/*", wanted.get("*/*", 0.0))
    json, arrow = wanted.get(JSON, other), wanted.get(ARROW, other)
    if not json and not arrow:
        raise Problem("answer-unavailable", f"answers are {JSON} or {ARROW}")
    named = ARROW in wanted and JSON not in wanted
    return arrow > json or (arrow == json and named)


def _preference(part: str) -> tuple[str, float]:
    """A type of an Accept header, and how much it is wanted."""
    kind, _, parameters = part.partition(";")
    quality = _QUALITY.search(parameters)
    return kind.strip(), float(quality[1]) if quality else 1.0


def answer_predictions(
    ids: Sequence[str] | None,
    classes: Sequence[Label],
    probabilities: NDArray[np.float32],
    model: int | None,
    *,
    arrow: bool,
) -> Response:
    """The most probable label of each row, and how probable each is."""
    if not np.isfinite(probabilities).all():
        raise Problem("stream-failed", "the model in use gives no sound answer; roll it back")
    labels: list[Label | None] = [None] * len(probabilities)
    if len(classes):
        labels = [classes[code] for code in probabilities.argmax(axis=1).tolist()]
    if arrow:
        return _arrow(ids, labels, classes, probabilities, model)
    told = {
        "ids": ids,
        "labels": labels,
        "classes": classes,
        "probabilities": probabilities,
        "model": model,
    }
    return _Reply(orjson.dumps(told, option=_OPTIONS))


class _Reply(Response):
    """JSON that was made already, with no more ado."""

    def __init__(self, body: bytes) -> None:
        self.status_code, self.body, self.background = 200, body, None
        length = str(len(body)).encode()
        self.raw_headers = [(b"content-length", length), (b"content-type", b"application/json")]


def _arrow(
    ids: Sequence[str] | None,
    labels: Sequence[Label | None],
    classes: Sequence[Label],
    probabilities: NDArray[np.float32],
    model: int | None,
) -> Response:
    columns: dict[str, Any] = {} if ids is None else {"id": list(ids)}
    columns["label"] = list(labels)
    for code, label in enumerate(classes):
        columns[f"p_{label}"] = probabilities[:, code]
    table = pa.table(columns).replace_schema_metadata({"model": str(model or "")})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return Response(sink.getvalue().to_pybytes(), media_type=ARROW)
