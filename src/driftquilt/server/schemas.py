"""What goes over the wire, as the OpenAPI document tells it, with examples.

These models are words for readers and for clients; bodies are read by `bodies`, which is stricter
and faster, and the tests hold the two together.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from driftquilt.server.house import NAME

__all__ = [
    "Accuracy",
    "Adapting",
    "Event",
    "Events",
    "Health",
    "IdLabelsBody",
    "Learned",
    "Me",
    "Model",
    "ModelInUse",
    "Models",
    "NewStreamBody",
    "PredictBody",
    "PredictMatrixBody",
    "Predictions",
    "ProblemBody",
    "RowLabelsBody",
    "RowMatrixLabelsBody",
    "Segments",
    "Selection",
    "SelectionExplained",
    "Selections",
    "Stream",
    "Streams",
]  # fmt: skip

_FLOAT32 = 3.4028234663852886e38
Number = Annotated[float, Field(ge=-_FLOAT32, le=_FLOAT32, allow_inf_nan=False)]
Value = Number | str | None
Whole = Annotated[int, Field(ge=-(2**63), lt=2**63)]
Label = bool | Whole | str
Count = Annotated[int, Field(ge=0, le=2**53)]
_ROW: dict[str, Any] = {"age": 31, "city": "Rome"}
_ID = "1-0"


class _Given(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Schema(_Given):
    """Columns and labels that rows may have; others are refused."""

    columns: Annotated[dict[str, Literal["number", "text"]], Field(min_length=1)]
    labels: Annotated[list[bool] | list[Whole] | list[str] | None, Field(min_length=1)] = None


class GuardSettings(_Given):
    """What stands between a drift and a new model."""

    cool_down: Count = 0
    min_rows: Count = 100
    margin: Annotated[float, Field(gt=-1)] = 0.1


class NewStreamBody(_Given):
    """A stream to be made; all but the name may be left out."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [
                {"name": "clicks", "detector": "adwin", "settings": {"n_wait": 100}},
                {
                    "name": "loans",
                    "schema": {
                        "columns": {"age": "number", "city": "text"},
                        "labels": ["no", "yes"],
                    },
                },
            ]
        },
    )

    name: Annotated[str, Field(pattern=NAME)]
    detector: str | dict[str, float | str | bool | None] = "adwin"
    guard: GuardSettings = GuardSettings()
    settings: dict[str, float | None] = {}
    schema_: Annotated[Schema | None, Field(alias="schema")] = None
    random_state: Annotated[int, Field(ge=0, lt=2**32)] | None = None


class PredictBody(_Given):
    """Rows to be predicted, each with its columns."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"rows": [_ROW]}]})

    rows: Annotated[list[dict[str, Value]], Field(min_length=1)]
    keep: Annotated[bool, Field(description="Whether rows wait for their labels.")] = True


class PredictMatrixBody(_Given):
    """Rows to be predicted, with the names of the columns once."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"columns": ["age", "city"], "rows": [[31, "Rome"]]}]},
    )

    columns: list[str]
    rows: Annotated[list[list[Value]], Field(min_length=1)]
    keep: bool = True


class IdLabel(_Given):
    """The label of a predicted row."""

    id: str
    label: Label


class IdLabelsBody(_Given):
    """Labels of predicted rows, late and in any order."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"labels": [{"id": _ID, "label": "yes"}]}]}
    )

    labels: Annotated[list[IdLabel], Field(min_length=1)]


class RowLabelsBody(_Given):
    """Rows with their labels."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"rows": [_ROW], "labels": ["yes"]}]}
    )

    rows: Annotated[list[dict[str, Value]], Field(min_length=1)]
    labels: Annotated[list[Label], Field(min_length=1)]


class RowMatrixLabelsBody(_Given):
    """Rows with their labels, and the names of the columns once."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [{"columns": ["age", "city"], "rows": [[31, "Rome"]], "labels": ["yes"]}]
        },
    )

    columns: list[str]
    rows: Annotated[list[list[Value]], Field(min_length=1)]
    labels: Annotated[list[Label], Field(min_length=1)]


class _Told(BaseModel):
    model_config = ConfigDict(extra="forbid")


class ProblemBody(_Told):
    """Problem details, RFC 9457."""

    type: Annotated[str, Field(pattern="^urn:driftquilt:[a-z-]+$")]
    title: str
    status: int
    detail: str
    request_id: str


class Health(_Told):
    """Whether the service is there."""

    status: Literal["ok", "ready", "stopping"]


class Me(_Told):
    """Who asks, and what is allowed."""

    name: str | None
    scopes: list[Literal["read", "write", "admin"]]


class LabelDelay(_Told):
    """Seconds from a prediction to its label, of the last thousand."""

    n: int
    median: float
    p90: float


class Feed(_Told):
    """The broker that feeds a stream."""

    source: str | None
    n_messages: int
    n_refused: int
    trouble: str | None


class Stream(_Told):
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
    columns: dict[str, Literal["number", "text"]]
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


class Streams(_Told):
    """All streams; those that are damaged can be deleted, and nothing else."""

    streams: list[Stream]
    damaged: list[str]


class Predictions(_Told):
    """An answer for each row; before the first row is learned there is none."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [
                {
                    "ids": [_ID], "labels": ["yes"], "classes": ["no", "yes"],
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


class Refusal(_Told):
    """An id that no row waits under."""

    id: str
    reason: Literal["unknown", "forgotten"]


class Learned(_Told):
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


class Events(_Told):
    """A page of events; `next` is where the next begins, null at the end."""

    events: list[Event]
    next: int | None


class Segment(_Told):
    """A past segment."""

    number: int
    first_row: int
    n_rows: int
    n_bytes: int
    used: Annotated[float, Field(description="Share of epochs of late, fading by half each time.")]


class Current(_Told):
    """The segment that is open."""

    first_row: int
    n_rows: int


class Segments(_Told):
    """Past segments and the current one."""

    segments: list[Segment]
    current: Current


class Patch(_Told):
    """A past segment in one training; scores are known while its model is kept."""

    segment: int
    share: float
    kept: bool
    disparity: float | None
    gain: float | None


class Selection(_Told):
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


class Selections(_Told):
    """All trainings that are remembered: the rows of the quilt."""

    selections: list[Selection]


class Accuracy(_Told):
    """Accuracy by bucket of `size` rows, and the rows at which drifts were found."""

    size: int
    first_row: int
    accuracy: list[float]
    drifts: list[int]


class Model(_Told):
    """A model that is kept."""

    version: int
    row: int | None
    loss: float | None
    n_bytes: int
    in_use: bool


class Models(_Told):
    """All models that are kept."""

    in_use: int | None
    models: list[Model]


class ModelInUse(_Told):
    """The model that answers now."""

    model: int


class Adapting(_Told):
    """A training is under way."""

    training: bool
