"""What is told of a stream's past: events, segments, selections, models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from driftquilt.errors import InputError
from driftquilt.quilt.explanation import KEPT_FROM, SegmentUse
from driftquilt.server.problems import Problem
from driftquilt.server.served import Served
from driftquilt.stream.checkpoint import versions
from driftquilt.stream.events import (
    DriftFound,
    Event,
    ModelPromoted,
    ModelTrained,
)
from driftquilt.stream.history import first_row
from driftquilt.text import json_safe

__all__ = [
    "tell_accuracy",
    "tell_event",
    "tell_events",
    "tell_models",
    "tell_segments",
    "tell_selection",
    "tell_selections",
    "version_before",
]


def tell_event(event: Event) -> dict[str, Any]:
    """An event with its words; an explanation has a place of its own."""
    fields = {name: json_safe(value, digits=6) for name, value in event.to_json().items()}
    fields.pop("explanation", None)
    return {**fields, "text": str(event)}


def tell_events(served: Served, after: int, limit: int) -> dict[str, Any]:
    """A page of events after a number."""
    later = served.view.events_after(after)
    page = later[:limit]
    more = len(later) > len(page)
    return {
        "events": [tell_event(event) for event in page],
        "next": page[-1].number if more else None,
    }


def tell_accuracy(served: Served) -> dict[str, Any]:
    """The curve, with drifts."""
    drifts = [event.row for event in served.view.events if isinstance(event, DriftFound)]
    return {**served.intake.curve.to_json(), "drifts": drifts}


def tell_segments(served: Served) -> dict[str, Any]:
    """Past segments and the current one."""
    stream = served.stream
    used = stream.used
    n_rows, n_current = stream.n_rows, stream.status().n_current
    return {
        "segments": [
            {
                "number": segment.number,
                "first_row": first_row(segment),
                "n_rows": segment.n_rows,
                "n_bytes": segment.n_bytes,
                "used": round(used.get(segment.number, 0.0), 6),
            }
            for segment in stream.store.segments
        ],
        "current": {"first_row": n_rows - n_current, "n_rows": n_current},
    }


def tell_selections(served: Served) -> dict[str, Any]:
    """Every training that is remembered."""
    trained = [event for event in served.view.events if isinstance(event, ModelTrained)]
    return {"selections": _tell_trainings(served, trained)}


def tell_selection(served: Served, number: int) -> dict[str, Any]:
    """One training in words."""
    for event in served.view.events:
        if event.number == number and isinstance(event, ModelTrained):
            (told,) = _tell_trainings(served, [event])
            return {**told, "explanation": event.explanation}
    raise Problem("selection-unknown", "no training that is remembered has this number")


def tell_models(served: Served) -> dict[str, Any]:
    """Every model that is kept."""
    stream = served.stream
    in_use, sizes = stream.model, {m.number: m.n_bytes for m in stream.store.models}
    promoted = {
        event.model: event for event in served.view.events if isinstance(event, ModelPromoted)
    }
    models = []
    for version, number in sorted(versions(stream.store).items()):
        event = promoted.get(version)
        models.append(
            {
                "version": version,
                "row": None if event is None else event.row,
                "loss": None if event is None else json_safe(event.loss, digits=6),
                "n_bytes": sizes.get(number, 0),
                "in_use": version == in_use,
            }
        )
    return {"in_use": in_use, "models": models}


def version_before(served: Served) -> int:
    """The newest model that is older than the one in use."""
    stream = served.stream
    older = [version for version in stream.models if version < (stream.model or 0)]
    if not older:
        raise Problem("nothing-to-roll-back-to", "no older model is kept")
    return max(older)


def _tell_trainings(served: Served, trained: Sequence[ModelTrained]) -> list[dict[str, Any]]:
    """Each training with the model that came of it, which is told of right after it."""
    promoted = {e.number: e.model for e in served.view.events if isinstance(e, ModelPromoted)}
    kept = {*served.stream.models}
    for version in [*served.selections]:  # of models that are gone
        if version not in kept:
            served.selections.pop(version, None)
    return [_tell_selection(served, event, promoted.get(event.number + 1)) for event in trained]


def _tell_selection(served: Served, event: ModelTrained, version: int | None) -> dict[str, Any]:
    scores = _scores(served, version, event)
    return {
        "number": event.number,
        "row": event.row,
        "n_current": event.n_current,
        "model": version,
        "validation_loss": json_safe(event.validation_loss, digits=6),
        "seconds": round(event.seconds, 3),
        "patches": [
            {
                "segment": segment,
                "share": round(share, 6),
                "kept": share >= KEPT_FROM,
                **scores.get(segment, {"disparity": None, "gain": None}),
            }
            for segment, share in event.shares.items()
        ],
    }


def _scores(
    served: Served, version: int | None, event: ModelTrained
) -> dict[int, dict[str, float | None]]:
    if version is None:
        return {}
    selection = served.selections.get(version)
    if selection is None:
        try:
            selection = served.stream.classifier(version).selection_
        except InputError:  # the model is not kept any more
            return {}
        served.selections[version] = selection
    return dict(zip(event.shares, map(_scores_of, selection), strict=True))


def _scores_of(use: SegmentUse) -> dict[str, float | None]:
    return {
        "disparity": json_safe(use.disparity.median, digits=6),
        "gain": json_safe(use.gain.median, digits=6),
    }
