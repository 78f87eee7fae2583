"""Every body and every answer of the service, declared once.

These structs are what requests are decoded into, what answers are encoded from, and what the
OpenAPI document is generated from (`openapi`). Text that a caller may choose is bounded here;
what takes more than a type to say is checked in `bodies` and `registry`.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias, TypedDict

from msgspec import UNSET, Meta, Struct, UnsetType

from driftquilt.data.columns import FLOAT32_MAX
from driftquilt.server.tokens import Scope
from driftquilt.stream.settings import Guard

__all__ = [
    "ARROW",
    "JSON",
    "KEY_LETTERS",
    "MAX_ID_LETTERS",
    "MAX_LETTERS",
    "NAME",
    "NAME_WORDS",
    "Accuracy",
    "Adapting",
    "Delays",
    "Event",
    "Events",
    "Feed",
    "GuardBody",
    "Health",
    "IdLabel",
    "LabelsBody",
    "Learned",
    "Me",
    "Model",
    "ModelInUse",
    "Models",
    "NewStream",
    "Patch",
    "PredictBody",
    "Predictions",
    "ProblemBody",
    "Schema",
    "Segments",
    "Selection",
    "SelectionExplained",
    "Selections",
    "Stream",
    "StreamParameters",
    "Streams",
]

JSON = "application/json"
ARROW = "application/vnd.apache.arrow.stream"
#: A stream's name is a folder's name and a part of URLs.
NAME = r"[a-z0-9][a-z0-9_-]{0,62}"
NAME_WORDS = "a stream's name has 1 to 63 of a-z, 0-9, - and _, and begins with a letter or a digit"
#: Letters of a label or the name of a column, and of an id.
MAX_LETTERS, MAX_ID_LETTERS = 1_000, 32
#: Of an Idempotency-Key.
KEY_LETTERS = r"[A-Za-z0-9_.:-]{1,128}"
_MAX_DETECTOR_SETTINGS, _MAX_METRIC_LETTERS = 20, 64
_MAX_CLASS_WEIGHTS = 1_000

Number = Annotated[float, Meta(ge=-FLOAT32_MAX, le=FLOAT32_MAX)]
Value: TypeAlias = Number | str | None
Column = Annotated[str, Meta(max_length=MAX_LETTERS)]
Integer = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
Text = Annotated[str, Meta(max_length=MAX_LETTERS)]
Label: TypeAlias = bool | Integer | Text
#: A label as it is sent: also a number, of a stream of numbers.
SentLabel: TypeAlias = bool | Integer | float | Text
Task = Annotated[
    Literal["classification", "regression"],
    Meta(description="Whether labels are classes or numbers."),
]
Coverage = Annotated[
    float,
    Meta(
        gt=0,
        lt=1,
        description="Of numbers: predictions come with intervals that hold such a share of the "
        "labels.",
        examples=[0.8],
    ),
]
#: Integers that all JSON readers agree on.
Safe = Annotated[int, Meta(ge=-(2**53), le=2**53)]
Count = Annotated[int, Meta(ge=0, le=2**53)]
Kind = Literal["number", "text", "date", "time"]
Row: TypeAlias = dict[Column, Value] | list[Value]
Weight = Annotated[float, Meta(gt=0, le=1e9)]
ClassWeight = (
    Literal["balanced"]
    | Annotated[
        dict[Text, Weight],
        Meta(
            min_length=1,
            max_length=_MAX_CLASS_WEIGHTS,
            description="Weights by label, as text; others weigh 1.",
            examples=[{"yes": 5}],
        ),
    ]
)
Rows = Annotated[
    list[Row],
    Meta(description="Objects by column; or lists of values, with `columns` naming them once."),
]
Name = Annotated[
    str,
    Meta(
        pattern=rf"^{NAME}\Z",  # `$` would let a line feed follow
        description="A stream's name.",
        examples=["clicks"],
    ),
]
Version = Annotated[int, Meta(ge=1, lt=2**31, description="A model's version.", examples=[1])]
After = Annotated[int, Meta(ge=0, lt=2**53, description="The number of an event.")]


#: A list of lists of numbers, encoded straight from a numpy array.
Matrix = Annotated[
    Any,
    Meta(
        extra_json_schema={
            "type": "array",
            "items": {"type": "array", "items": {"type": "number"}},
        }
    ),
]


class _Strict(Struct, forbid_unknown_fields=True):
    """An object without other fields than those declared."""


# Parameters of paths and queries.


class NoParameters(Struct):
    """An operation on the service as a whole."""


class StreamParameters(Struct):
    """An operation on a stream."""

    name: Name


class ModelParameters(StreamParameters):
    """An operation on a model of a stream."""

    version: Version


class ModelFileParameters(ModelParameters):
    """Which file of a model."""

    format: Literal["safetensors", "onnx"] = "safetensors"


class SelectionParameters(StreamParameters):
    """Which training."""

    number: Annotated[int, Meta(ge=1, lt=2**53, description="The number of a selection.")]


class DrawingParameters(StreamParameters):
    """Which drawing; width and smallest patch in pixels, and rows, are those of the quilt."""

    kind: Literal["quilt", "accuracy", "sparkline"]
    width: Annotated[int, Meta(ge=200, le=4_000)] = 1_090
    smallest: Annotated[int, Meta(ge=10, le=48)] = 23
    rows: Annotated[int, Meta(ge=1, le=1_000)] = 24


class LiveParameters(StreamParameters):
    """Which events."""

    after: After = 0


class EventsParameters(LiveParameters):
    """Which events, and how many."""

    limit: Annotated[int, Meta(ge=1, le=1000)] = 100


# Bodies.


class PredictBody(_Strict):
    """Rows to predict."""

    rows: Rows
    columns: list[Column] | UnsetType | None = UNSET
    keep: Annotated[
        bool, Meta(description="Whether the rows wait for their labels (default: true).")
    ] | UnsetType = UNSET  # fmt: skip


class IdLabel(_Strict):
    """The label of a predicted row."""

    id: Annotated[str, Meta(max_length=MAX_ID_LETTERS)]
    label: SentLabel


class LabelsBody(_Strict):
    """Labels of predicted rows, by id and in any order; or rows with their labels."""

    labels: list[IdLabel | bool | Integer | float | Text]
    rows: Rows | UnsetType = UNSET
    columns: list[Column] | UnsetType | None = UNSET


class Schema(_Strict):
    """Columns and labels that rows may have; others are refused."""

    columns: Annotated[dict[Column, Kind], Meta(min_length=1)]
    labels: Annotated[list[Label], Meta(min_length=1)] | None = None


class GuardBody(_Strict):
    """See `driftquilt.stream.Guard`."""

    cool_down: Count = Guard.cool_down
    min_rows: Count = Guard.min_rows
    margin: Annotated[float, Meta(gt=-1)] = Guard.margin


class NewStream(_Strict):
    """A stream to create; everything but the name is optional."""

    name: Name
    task: Task = "classification"
    coverage: Coverage | None = None
    detector: (
        str
        | Annotated[
            dict[str, Safe | float | str | bool | None], Meta(max_length=_MAX_DETECTOR_SETTINGS)
        ]
    ) = "experts"
    guard: GuardBody | None = None
    settings: dict[str, Safe | float | None] = {}
    schema: Schema | None = None
    random_state: Annotated[int, Meta(ge=0, lt=2**32)] | None = None
    class_weight: ClassWeight | None = None
    metric: Annotated[
        str,
        Meta(
            max_length=_MAX_METRIC_LETTERS,
            description="A metric of classes to watch beside accuracy, such as roc_auc or f1.",
        ),
    ] | None = None  # fmt: skip


# Answers.


class ProblemBody(_Strict):
    """Problem details, RFC 9457."""

    type: Annotated[str, Meta(pattern="^urn:driftquilt:[a-z-]+$")]
    title: str
    status: int
    detail: str
    request_id: str


class Health(_Strict):
    """Whether the service is there."""

    status: Literal["ok", "ready"]


class Me(_Strict):
    """Who asks, and what they may do."""

    name: str | None
    scopes: list[Scope]


class Delays(_Strict):
    """Seconds from a prediction to its label, over the last thousand."""

    n: int
    median: float
    p90: float


class Feed(_Strict):
    """The broker that feeds a stream."""

    source: str | None
    n_messages: int
    n_late: int
    n_forgotten: int
    n_refused: int
    last_refused: str | None
    trouble: str | None


class Stream(_Strict):
    """A stream as it is now."""

    name: str
    created: str
    schema: dict[str, Any] | None
    n_rows: int
    n_waiting: int
    n_current: int
    task: Task
    coverage: Coverage | None
    accuracy: Annotated[
        float | None, Meta(description="Null before the first row, and of numbers.")
    ]
    recent_accuracy: Annotated[
        float | None, Meta(description="The same over the last thousand rows.")
    ]
    mean_absolute_error: Annotated[
        float | None, Meta(description="Null before the first answer, and of classes.")
    ]
    recent_mean_absolute_error: Annotated[
        float | None, Meta(description="The same over the last thousand rows.")
    ]
    metric: str | None
    score: Annotated[
        float | None,
        Meta(description="By the metric, over the last thousand rows; null if it is not defined."),
    ]
    classes: list[Label]
    columns: dict[str, Kind]
    model: int | None
    models: list[int]
    training: bool
    rows_until_training: int | None
    n_segments: int
    n_damaged: Annotated[
        int, Meta(description="Segments left out of trainings: their files are damaged.")
    ]
    n_drifts: int
    last_drift: int | None
    last_event: int
    detector: dict[str, Any]
    guard: dict[str, Any]
    settings: dict[str, Any]
    class_weight: ClassWeight | None
    label_delay: Delays | None
    failure: str | None
    feed: Feed | None
    experts: dict[str, float]


class Streams(_Strict):
    """All streams; damaged ones can only be deleted."""

    streams: list[Stream]
    damaged: list[str]


class Predictions(_Strict):
    """An answer for each row; the labels are null before the first row is learned.

    Numbers have no classes and no probabilities. They have intervals, low and high, if the stream
    has a coverage, and has learned enough rows.
    """

    ids: list[str] | None
    labels: list[bool | Integer | float | Text | None]
    classes: list[Label]
    probabilities: Matrix | None
    intervals: Matrix | None
    model: int | None


class Refusal(_Strict):
    """An id without a pending row, or with one that no longer fits the stream."""

    id: str
    reason: Literal["unknown", "forgotten", "unfit"]


class Learned(_Strict):
    """What became of the labels; the rows are durable."""

    learned: int
    repeated: Annotated[int, Meta(description="Rows that had their label already.")]
    n_rows: Annotated[int, Meta(description="Rows of the stream, including these.")]
    refused: list[Refusal] = []


class Event(TypedDict):
    """Something that happened; each kind of event has more fields of its own."""

    number: int
    event: str
    row: int
    text: str


class Events(_Strict):
    """A page of events; `next` is the last number of the page, null at the end."""

    events: list[Event]
    next: int | None


class Segment(_Strict):
    """A past segment."""

    number: int
    first_row: int
    n_rows: int
    n_bytes: int
    used: Annotated[float, Meta(description="Share of epochs, halved with each training since.")]


class CurrentSegment(_Strict):
    """The segment that is open."""

    first_row: int
    n_rows: int


class Segments(_Strict):
    """Past segments and the current one."""

    segments: list[Segment]
    current: CurrentSegment


class Patch(_Strict):
    """A past segment in one training; scores are known while its model is kept."""

    segment: int
    weight: float
    used: bool
    disparity: float | None
    gain: float | None


class Selection(_Strict):
    """A training: which segments it used, and what came of it.

    `blend` has the weights of all data, of the selected segments and of the current one alone;
    trainings of earlier versions have none.
    """

    number: int
    row: int
    n_current: int
    model: int | None
    validation_loss: float | None
    seconds: float
    blend: dict[str, float]
    patches: list[Patch]


class SelectionExplained(Selection):
    """A training explained in words; kept for the last twenty trainings."""

    explanation: str


class Selections(_Strict):
    """All trainings that are remembered: the rows of the quilt."""

    selections: list[Selection]


class Accuracy(_Strict):
    """Accuracy by bucket of `size` rows, and the rows at which drifts were found.

    Of numbers, it is the mean absolute error by bucket.
    """

    size: int
    first_row: int
    accuracy: list[float] | None
    mean_absolute_error: list[float] | None
    drifts: list[int]


class Model(_Strict):
    """A model that is kept."""

    version: int
    row: int | None
    loss: float | None
    n_bytes: int
    in_use: bool


class Models(_Strict):
    """All models that are kept."""

    in_use: int | None
    models: list[Model]


class ModelInUse(_Strict):
    """The model that answers now."""

    model: int


class Adapting(_Strict):
    """A training is under way."""

    training: bool
