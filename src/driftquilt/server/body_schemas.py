"""Bodies of requests, as the OpenAPI document tells them, with examples.

These models are words for readers and for clients; bodies are read by `bodies`, which is stricter
and faster, and the tests hold the two together.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from driftquilt.data.columns import FLOAT32_MAX
from driftquilt.server.names import NAME
from driftquilt.server.sizes import MOST_ID_LETTERS, MOST_LETTERS

__all__ = [
    "EXAMPLE_ID",
    "IdLabelsBody",
    "Label",
    "NewStreamBody",
    "PredictBody",
    "PredictMatrixBody",
    "RowLabelsBody",
    "RowMatrixLabelsBody",
    "Strict",
]

Number = Annotated[float, Field(ge=-FLOAT32_MAX, le=FLOAT32_MAX, allow_inf_nan=False)]
Value = Number | str | None
Column = Annotated[str, Field(max_length=MOST_LETTERS)]
Whole = Annotated[int, Field(ge=-(2**63), lt=2**63)]
Label = bool | Whole | Annotated[str, Field(max_length=MOST_LETTERS)]
Count = Annotated[int, Field(ge=0, le=2**53)]
_ROW: dict[str, Any] = {"age": 31, "city": "Rome"}
EXAMPLE_ID = "1-0"


class Strict(BaseModel):
    """Nothing but what is told of."""

    model_config = ConfigDict(extra="forbid")


class Schema(Strict):
    """Columns and labels that rows may have; others are refused."""

    columns: Annotated[dict[Column, Literal["number", "text", "date", "time"]], Field(min_length=1)]
    labels: Annotated[list[bool] | list[Whole] | list[str] | None, Field(min_length=1)] = None


class GuardSettings(Strict):
    """What stands between a drift and a new model."""

    cool_down: Count = 0
    min_rows: Count = 100
    margin: Annotated[float, Field(gt=-1)] = 0.1


class NewStreamBody(Strict):
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


class PredictBody(Strict):
    """Rows to be predicted, each with its columns."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"rows": [_ROW]}]})

    rows: Annotated[list[dict[Column, Value]], Field(min_length=1)]
    keep: Annotated[bool, Field(description="Whether rows wait for their labels.")] = True


class PredictMatrixBody(Strict):
    """Rows to be predicted, with the names of the columns once."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"columns": ["age", "city"], "rows": [[31, "Rome"]]}]},
    )

    columns: list[Column]
    rows: Annotated[list[list[Value]], Field(min_length=1)]
    keep: bool = True


class IdLabel(Strict):
    """The label of a predicted row."""

    id: Annotated[str, Field(max_length=MOST_ID_LETTERS)]
    label: Label


class IdLabelsBody(Strict):
    """Labels of predicted rows, late and in any order."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"labels": [{"id": EXAMPLE_ID, "label": "yes"}]}]},
    )

    labels: Annotated[list[IdLabel], Field(min_length=1)]


class RowLabelsBody(Strict):
    """Rows with their labels."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"rows": [_ROW], "labels": ["yes"]}]}
    )

    rows: Annotated[list[dict[Column, Value]], Field(min_length=1)]
    labels: Annotated[list[Label], Field(min_length=1)]


class RowMatrixLabelsBody(Strict):
    """Rows with their labels, and the names of the columns once."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [{"columns": ["age", "city"], "rows": [[31, "Rome"]], "labels": ["yes"]}]
        },
    )

    columns: list[Column]
    rows: Annotated[list[list[Value]], Field(min_length=1)]
    labels: Annotated[list[Label], Field(min_length=1)]
