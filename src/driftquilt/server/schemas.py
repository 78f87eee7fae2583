"""Answers, as the OpenAPI document tells them, with examples."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from driftquilt.server.body_schemas import EXAMPLE_ID, Label, Strict

__all__ = [
    "Accuracy",
    "Adapting",
    "Event",
    "Events",
    "Health",
    "Learned",
    "Me",
    "Model",
    "ModelInUse",
    "Models",
    "Predictions",
    "ProblemBody",
    "Segments",
    "Selection",
    "SelectionExplained",
    "Selections",
    "Stream",
    "Streams",
]


class ProblemBody(Strict):
    """Problem details, RFC 9457."""

    type: Annotated[str, Field(pattern="^urn:driftquilt:[a-z-]+$")]
    title: str
    status: int
    detail: str
    request_id: str


class Health(Strict):
    """Whether the service is there."""

    status: Literal["ok", "ready"]


class Me(Strict):
    """Who asks, and what is allowed."""

    name: str | None
    scopes: list[Literal["read", "write", "admin"]]


class LabelDelay(Strict):
    """Seconds from a prediction to its label, of the last thousand."""

    n: int
    median: float
    p90: float


class Feed(Strict):
    """The broker that feeds a stream."""

    source: str | None
    n_messages: int
    n_late: int
    n_forgotten: int
    n_refused: int
    last_refused: str | None
    trouble: str | None


class Stream(Strict):
    """A stream as it is now."""

    name: str
    created: str
    schema_: Annotated[dict[str, Any] | None, Field(alias="schema")]
    n_rows: int
    n_waiting: int
    n_current: int
    accuracy: float | None
    recent_accuracy: float | None
    classes: list[Label]
    columns: dict[str, Literal["number", "text", "date", "time"]]
    model: int | None
    models: list[int]
    training: bool
    rows_until_training: int | None
    n_segments: int
    n_drifts: int
    last_drift: int | None
    last_event: int
    detector: dict[str, Any]
    guard: dict[str, Any]
    settings: dict[str, Any]
    label_delay: LabelDelay | None
    failure: str | None
    feed: Feed | None


class Streams(Strict):
    """All streams; those that are damaged can be deleted, and nothing else."""

    streams: list[Stream]
    damaged: list[str]


class Predictions(Strict):
    """An answer for each row; before the first row is learned there is none."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [
                {
                    "ids": [EXAMPLE_ID], "labels": ["yes"], "classes": ["no", "yes"],
                    "probabilities": [[0.1, 0.9]], "model": 3,
                }
            ]
        },
    )  # fmt: skip

    ids: list[str] | None
    labels: list[Label | None]
    classes: list[Label]
    probabilities: list[list[float]]
    model: int | None


class Refusal(Strict):
    """An id that no row waits under, or under which one waits that does not go with the stream."""

    id: str
    reason: Literal["unknown", "forgotten", "unfit"]


class Learned(Strict):
    """What became of the labels; the rows are durable."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [{"learned": 1, "repeated": 0, "refused": [], "n_rows": 1236}]
        },
    )

    learned: int
    repeated: Annotated[int, Field(description="Rows that had their label already.")]
    refused: list[Refusal]
    n_rows: Annotated[int, Field(description="Rows of the stream, with these.")]


class Event(BaseModel):
    """Something that happened, with fields of its own kind."""

    model_config = ConfigDict(extra="allow")

    number: int
    event: str
    row: int
    text: str


class Events(Strict):
    """A page of events; `next` is where the next begins, null at the end."""

    events: list[Event]
    next: int | None


class Segment(Strict):
    """A past segment."""

    number: int
    first_row: int
    n_rows: int
    n_bytes: int
    used: Annotated[float, Field(description="Share of epochs of late, fading by half each time.")]


class Current(Strict):
    """The segment that is open."""

    first_row: int
    n_rows: int


class Segments(Strict):
    """Past segments and the current one."""

    segments: list[Segment]
    current: Current


class Patch(Strict):
    """A past segment in one training; scores are known while its model is kept."""

    segment: int
    share: float
    kept: bool
    disparity: float | None
    gain: float | None


class Selection(Strict):
    """A training: which segments it used, and what came of it."""

    number: int
    row: int
    n_current: int
    model: int | None
    validation_loss: float | None
    seconds: float
    patches: list[Patch]


class SelectionExplained(Selection):
    """The same in words; they are kept of the last twenty trainings."""

    explanation: str


class Selections(Strict):
    """All trainings that are remembered: the rows of the quilt."""

    selections: list[Selection]


class Accuracy(Strict):
    """Accuracy by bucket of `size` rows, and the rows at which drifts were found."""

    size: int
    first_row: int
    accuracy: list[float]
    drifts: list[int]


class Model(Strict):
    """A model that is kept."""

    version: int
    row: int | None
    loss: float | None
    n_bytes: int
    in_use: bool


class Models(Strict):
    """All models that are kept."""

    in_use: int | None
    models: list[Model]


class ModelInUse(Strict):
    """The model that answers now."""

    model: int


class Adapting(Strict):
    """A training is under way."""

    training: bool
