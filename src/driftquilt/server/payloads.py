"""Answers about a stream, built from its worker: predictions, events, segments, models."""

from __future__ import annotations

import asyncio
import contextlib
import re
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any, cast

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from driftquilt.errors import DriftquiltError, InputError, MissingExtraError
from driftquilt.quilt.explanation import SegmentUse
from driftquilt.quilt.model_file import REGRESSION
from driftquilt.report.lines import sparkline, stream_accuracy
from driftquilt.report.quilt import stream_quilt
from driftquilt.report.quilt_layout import Room
from driftquilt.server import schemas
from driftquilt.server.problems import Problem
from driftquilt.server.schemas import ARROW, JSON
from driftquilt.server.view import View, rounded
from driftquilt.server.worker import StreamWorker
from driftquilt.stream.events import DriftFound, Event, ModelPromoted, ModelTrained
from driftquilt.stream.persistence import first_row, versions
from driftquilt.stream.snapshot import NumberSnapshot
from driftquilt.text import json_safe

__all__ = [
    "accuracy",
    "drawing",
    "event",
    "events",
    "live",
    "model_bytes",
    "models",
    "predictions",
    "segments",
    "selection",
    "selections",
    "to_arrow",
    "version_before",
    "wants_arrow",
]

_DIGITS = 6
_QUALITY = re.compile(r"\bq=(0(?:\.\d{0,3})?|1(?:\.0{0,3})?)\s*(?:;|$)")
_QUIET = 15.0  # seconds until a comment is sent, so that no proxy hangs up
_LOOK = 1.0  # seconds between two of status, and two checks whether to go on


def predictions(
    ids: list[str] | None, view: View, answers: NDArray[Any], coverage: float | None
) -> schemas.Predictions:
    """Return the label of each row, and all probabilities; of numbers, their intervals."""
    if not np.isfinite(answers).all():
        raise Problem("stream-failed", "the model in use gives no finite answer; roll it back")
    snapshot, model = view.answers, view.status.model
    labels, classes = snapshot.labels(answers), list(snapshot.classes)
    if not isinstance(snapshot, NumberSnapshot):
        return schemas.Predictions(ids, labels, classes, answers, None, model)
    intervals = None if coverage is None else snapshot.intervals(answers, coverage)
    return schemas.Predictions(ids, labels, classes, None, intervals, model)


def wants_arrow(accept: str) -> bool:
    """Return whether an Accept header prefers Arrow to JSON.

    >>> wants_arrow("application/vnd.apache.arrow.stream, */*;q=0.1"), wants_arrow("*/*")
    (True, False)
    """
    if not accept:
        return False
    wanted = dict(map(_preference, accept.lower().split(",")))
    other = wanted.get("application/*", wanted.get("*/*", 0.0))
    as_json, as_arrow = wanted.get(JSON, other), wanted.get(ARROW, other)
    if not as_json and not as_arrow:
        raise Problem("answer-unavailable", f"answers are {JSON} or {ARROW}")
    return as_arrow > as_json or (as_arrow == as_json and ARROW in wanted and JSON not in wanted)


def _preference(part: str) -> tuple[str, float]:
    """Return a type of an Accept header and its quality."""
    kind, _, parameters = part.partition(";")
    quality = _QUALITY.search(parameters)
    return kind.strip(), float(quality[1]) if quality else 1.0


def to_arrow(answer: schemas.Predictions) -> bytes:
    """Return predictions as an Arrow stream: ids, labels, and a column for each class.

    Of numbers, there are columns for both ends of their intervals, if they have some.
    """
    columns: dict[str, Any] = {} if answer.ids is None else {"id": answer.ids}
    columns["label"] = answer.labels
    if answer.probabilities is not None:
        for code, label in enumerate(answer.classes):
            columns[f"p_{label}"] = answer.probabilities[:, code]
    if answer.intervals is not None:
        columns["low"], columns["high"] = answer.intervals.T
    table = pa.table(columns).replace_schema_metadata({"model": str(answer.model or "")})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def event(happened: Event) -> schemas.Event:
    """Return an event with its text; its explanation is that of a selection."""
    fields = json_safe(happened.to_json(), digits=_DIGITS)
    fields.pop("explanation", None)
    return cast("schemas.Event", {**fields, "text": str(happened)})


def events(worker: StreamWorker, after: int, limit: int) -> schemas.Events:
    """Return a page of events after a number."""
    later = worker.view.events_after(after)
    page = later[:limit]
    more = len(later) > len(page)
    return schemas.Events(list(map(event, page)), page[-1].number if more else None)


async def live(
    worker: StreamWorker, after: int, goes_on: Callable[[], bool]
) -> AsyncIterator[bytes]:
    """Send events as they happen, and the stream's status at most once a second."""
    yield b": driftquilt\n\n"
    seen: tuple[object, ...] = ()
    sent = time.monotonic()
    while goes_on():
        changed, view = worker.changed, worker.view
        for happened in view.events_after(after):
            after = happened.number
            payload = event(happened)
            yield _message(payload["event"], payload, after)
        trouble = worker.feed().trouble if worker.feed else None
        now = (view, worker.failure, worker.ingestion.pending.n_rows, trouble)
        if now != seen:
            yield _message("status", worker.status())
            seen, sent = now, time.monotonic()
            await asyncio.sleep(_LOOK)
        elif time.monotonic() - sent > _QUIET:
            yield b": still here\n\n"
            sent = time.monotonic()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LOOK):
                await changed.wait()


def _message(kind: str, payload: object, number: int | None = None) -> bytes:
    head = b"" if number is None else b"id: %d\n" % number
    return b"%bevent: %b\ndata: %b\n\n" % (head, kind.encode(), msgspec.json.encode(payload))


def accuracy(worker: StreamWorker) -> schemas.Accuracy:
    """Return accuracy, or the mean absolute error of numbers, over time, with drifts."""
    drifts = [e.row for e in worker.view.events if isinstance(e, DriftFound)]
    size, first, means = worker.ingestion.history.buckets()
    if worker.stream.task == REGRESSION:
        return schemas.Accuracy(size, first, None, [rounded(mean) for mean in means], drifts)
    return schemas.Accuracy(size, first, [round(mean, 4) for mean in means], None, drifts)


def drawing(worker: StreamWorker, wanted: schemas.DrawingParameters) -> str:
    """Return a drawing of the live page as SVG."""
    if wanted.kind == "quilt":
        return stream_quilt(
            msgspec.to_builtins(selections(worker).selections[-wanted.rows :]),
            msgspec.to_builtins(segments(worker).segments),
            worker.stream.model,
            Room(wanted.width, wanted.smallest),
        )
    curve = msgspec.to_builtins(accuracy(worker))
    if wanted.kind == "sparkline":
        return sparkline(curve)
    return stream_accuracy(curve, worker.stream.n_rows)


def segments(worker: StreamWorker) -> schemas.Segments:
    """Return past segments and the current one."""
    stream = worker.stream
    used = stream.used
    past = [
        schemas.Segment(
            number=segment.number,
            first_row=first_row(segment),
            n_rows=segment.n_rows,
            n_bytes=segment.n_bytes,
            used=round(used.get(segment.number, 0.0), _DIGITS),
        )
        for segment in stream.store.segments
    ]
    n_rows, n_current = worker.view.status.n_rows, worker.view.status.n_current
    return schemas.Segments(past, schemas.CurrentSegment(n_rows - n_current, n_current))


def selections(worker: StreamWorker) -> schemas.Selections:
    """Return every training that is remembered."""
    return schemas.Selections(_selections(worker, _trainings(worker)))


def selection(worker: StreamWorker, number: int) -> schemas.SelectionExplained:
    """Return one training in words."""
    for trained in _trainings(worker):
        if trained.number == number:
            (chosen,) = _selections(worker, [trained])
            fields = msgspec.structs.asdict(chosen)
            return schemas.SelectionExplained(**fields, explanation=trained.explanation)
    raise Problem("selection-unknown", "no training that is remembered has this number")


def models(worker: StreamWorker) -> schemas.Models:
    """Return every model that is kept."""
    stream = worker.stream
    in_use, sizes = stream.model, {m.number: m.n_bytes for m in stream.store.models}
    promoted = {e.model: e for e in worker.view.events if isinstance(e, ModelPromoted)}
    kept = []
    for version, number in sorted(versions(stream.store).items()):
        promotion = promoted.get(version)
        kept.append(
            schemas.Model(
                version=version,
                row=None if promotion is None else promotion.row,
                loss=None if promotion is None else json_safe(promotion.loss, _DIGITS),
                n_bytes=sizes.get(number, 0),
                in_use=version == in_use,
            )
        )
    return schemas.Models(in_use, kept)


def version_before(worker: StreamWorker) -> int:
    """Return the newest model that is older than the one in use."""
    stream = worker.stream
    older = [version for version in stream.models if version < (stream.model or 0)]
    if not older:
        raise Problem("nothing-to-roll-back-to", "no older model is kept")
    return max(older)


def model_bytes(worker: StreamWorker, version: int, file_format: str) -> bytes:
    """Return a model's file."""
    try:
        model = worker.stream.fitted(version)
    except InputError as error:
        raise Problem("model-unknown", "no model of this version is kept") from error
    if file_format == "onnx":
        try:
            return model.to_onnx()
        except MissingExtraError as error:
            raise Problem("answer-unavailable", str(error)) from error
        except DriftquiltError as error:
            raise Problem("answer-unavailable", "this model cannot be written as ONNX") from error
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.safetensors"
        model.save(path)
        return path.read_bytes()


def _trainings(worker: StreamWorker) -> list[ModelTrained]:
    return [e for e in worker.view.events if isinstance(e, ModelTrained)]


def _selections(worker: StreamWorker, trainings: Sequence[ModelTrained]) -> list[schemas.Selection]:
    """Return each training with the model that came of it, which is the event right after it."""
    promoted = {e.number: e.model for e in worker.view.events if isinstance(e, ModelPromoted)}
    return [_selection(worker, e, promoted.get(e.number + 1)) for e in trainings]


def _selection(
    worker: StreamWorker, trained: ModelTrained, version: int | None
) -> schemas.Selection:
    scores = {} if version is None else _scores(worker, version, trained)
    nothing: tuple[float | None, float | None] = (None, None)
    used = {*trained.used}
    return schemas.Selection(
        number=trained.number,
        row=trained.row,
        n_current=trained.n_current,
        model=version,
        validation_loss=json_safe(trained.validation_loss, _DIGITS),
        seconds=round(trained.seconds, 3),
        blend={part: round(weight, _DIGITS) for part, weight in trained.blend.items()},
        patches=[
            schemas.Patch(
                segment, round(weight, _DIGITS), segment in used, *scores.get(segment, nothing)
            )
            for segment, weight in trained.weights.items()
        ],
    )


def _scores(
    worker: StreamWorker, version: int, trained: ModelTrained
) -> dict[int, tuple[float | None, float | None]]:
    """Return disparity and gain by segment; none if the model is not kept any more."""
    kept = {*worker.stream.models}
    for gone in [number for number in worker.selections if number not in kept]:
        worker.selections.pop(gone, None)
    chosen = worker.selections.get(version)
    if chosen is None:
        try:
            chosen = worker.stream.fitted(version).selection_
        except InputError:
            return {}
        worker.selections[version] = chosen
    return dict(zip(trained.weights, map(_medians, chosen), strict=True))


def _medians(use: SegmentUse) -> tuple[float | None, float | None]:
    disparity, gain = use.disparity.median, use.gain.median
    return json_safe(disparity, _DIGITS), json_safe(gain, _DIGITS)
