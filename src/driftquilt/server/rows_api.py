"""Rows over the wire: predictions at once, labels when they are known."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from fastapi import Request, Response

from driftquilt.server import schemas
from driftquilt.server.answers import answer, answer_predictions, wants_arrow
from driftquilt.server.bodies import Rows, pack_rows, read_labels_body, read_rows
from driftquilt.server.body_schemas import (
    IdLabelsBody,
    PredictBody,
    PredictMatrixBody,
    RowLabelsBody,
    RowMatrixLabelsBody,
)
from driftquilt.server.dates import read_dates
from driftquilt.server.documents import ONCE, document
from driftquilt.server.house import House
from driftquilt.server.media import ARROW, JSON
from driftquilt.server.operations import Name, Operation, allow, expect_type, on_thread, read_key
from driftquilt.server.served import Served
from driftquilt.server.sizes import expect_answer_size
from driftquilt.server.view import View

__all__ = ["RowsApi"]

_LARGE = 1 << 16  # bytes of a body that is read on a thread
_MANY = 1 << 15  # probabilities that are told on a thread


class RowsApi:
    """What applications ask."""

    def __init__(self, house: House) -> None:
        self._house = house

    def operations(self) -> list[Operation]:
        """All of them."""
        predict = document(
            "write", schemas.Predictions, "Predict rows",
            body=[PredictBody, PredictMatrixBody], arrow=True, arrow_answer=True,
            problems=[406, 415],
        )  # fmt: skip
        labels = document(
            "write", schemas.Learned, "Learn labels of predicted rows, or rows with labels",
            body=[IdLabelsBody, RowLabelsBody, RowMatrixLabelsBody],
            arrow=True, headers=[ONCE], problems=[409, 415],
        )  # fmt: skip
        return [
            Operation("POST", "/v1/streams/{name}/predict", self.predict, predict),
            Operation("POST", "/v1/streams/{name}/labels", self.labels, labels),
        ]

    async def predict(self, request: Request, name: Name) -> Response:
        """Answer from what the stream knows now; rows wait for their labels unless told not to."""
        allow(request, "write")
        served, kind = self._house[name], expect_type(request, (JSON, ARROW))
        arrow = wants_arrow(request.headers.get("accept", ""))
        body, view = await request.body(), served.view
        if len(body) > _LARGE:
            rows, found = await on_thread(self._house, lambda: self._ask(served, view, body, kind))
        else:
            rows, found = self._ask(served, view, body, kind)
        ids = None
        if rows.keep:
            ids = await served.keeper.keep(*pack_rows(rows.frame, body, kind), len(rows.frame))
        tell = partial(
            answer_predictions, ids, view.answers.classes, found, view.status["model"], arrow=arrow
        )
        return await on_thread(self._house, tell) if found.size > _MANY else tell()

    async def labels(self, request: Request, name: Name) -> Response:
        """Learn, and answer when everything is durable."""
        allow(request, "write")
        served, kind = self._house[name], expect_type(request, (JSON, ARROW))
        body = await request.body()
        key, digest = await read_key(request)
        most = self._house.settings.max_rows
        if len(body) > _LARGE:
            given = await on_thread(self._house, lambda: read_labels_body(body, kind, most))
        else:
            given = read_labels_body(body, kind, most)
        return answer(await served.learn(given, key, digest, len(body)))

    def _ask(self, served: Served, view: View, body: bytes, kind: str) -> tuple[Rows, Any]:
        read = read_rows(body, kind, self._house.settings.max_rows)
        rows = replace(read, frame=read_dates(read.frame, served.about.schema))
        view.expect(rows.frame, served.about.schema)
        expect_answer_size(len(rows.frame), len(view.answers.classes))
        return rows, view.answers.predict(rows.frame)
