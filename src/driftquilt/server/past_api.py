"""A stream's past over the wire: events, segments, selections, accuracy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from fastapi import Path, Query, Request, Response
from fastapi.responses import StreamingResponse

from driftquilt.server import schemas, told
from driftquilt.server.answers import answer
from driftquilt.server.documents import RESUME, document
from driftquilt.server.gate import Caller
from driftquilt.server.house import House
from driftquilt.server.live import live
from driftquilt.server.operations import After, Name, Operation, allow, on_thread

__all__ = ["PastApi"]

_MOST_DIGITS = 15


class PastApi:
    """What people ask who watch a stream."""

    def __init__(self, house: House, goes_on: Callable[[Caller], bool]) -> None:
        self._house, self._goes_on = house, goes_on

    def operations(self) -> list[Operation]:
        """All of them."""
        one, get = "/v1/streams/{name}", "GET"
        selections = document("read", schemas.Selections, "Trainings, and the segments they used")
        explained = document("read", schemas.SelectionExplained, "A training explained")
        happens = document(
            "read", None, "What happens, as server-sent events", media="text/event-stream",
            headers=[RESUME],
        )  # fmt: skip
        what = document("read", schemas.Events, "What happened")
        segments = document("read", schemas.Segments, "Past segments and the current one")
        accuracy = document("read", schemas.Accuracy, "Accuracy over the stream's life")
        return [
            Operation(get, f"{one}/events", self.events, what),
            Operation(get, f"{one}/events/live", self.live, happens),
            Operation(get, f"{one}/segments", self.segments, segments),
            Operation(get, f"{one}/selections", self.selections, selections),
            Operation(get, f"{one}/selections/{{number}}", self.selection, explained),
            Operation(get, f"{one}/accuracy", self.accuracy, accuracy),
        ]

    async def events(
        self,
        request: Request,
        name: Name,
        after: After = 0,
        limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    ) -> Response:
        """A page of events, oldest first."""
        allow(request, "read")
        return answer(told.tell_events(self._house[name], after, limit))

    async def live(self, request: Request, name: Name, after: After = 0) -> Response:
        """Events after a number, then those that come; `Last-Event-ID` goes on where it was."""
        caller = allow(request, "read")
        served = self._house[name]
        last = request.headers.get("last-event-id", "")
        if last.isascii() and last.isdigit() and len(last) <= _MOST_DIGITS:
            after = max(after, int(last))
        return StreamingResponse(
            live(served, after, lambda: not served.closed and self._goes_on(caller)),
            media_type="text/event-stream",
        )

    async def segments(self, request: Request, name: Name) -> Response:
        """Past segments, and how much they were used of late."""
        allow(request, "read")
        served = self._house[name]
        return answer(await on_thread(self._house, lambda: told.tell_segments(served)))

    async def selections(self, request: Request, name: Name) -> Response:
        """The rows of the quilt."""
        allow(request, "read")
        served = self._house[name]
        return answer(await on_thread(self._house, lambda: told.tell_selections(served)))

    async def selection(
        self, request: Request, name: Name, number: Annotated[int, Path(ge=1, lt=2**53)]
    ) -> Response:
        """One row of the quilt, in words."""
        allow(request, "read")
        served = self._house[name]
        return answer(await on_thread(self._house, lambda: told.tell_selection(served, number)))

    async def accuracy(self, request: Request, name: Name) -> Response:
        """The curve that the page draws."""
        allow(request, "read")
        return answer(told.tell_accuracy(self._house[name]))
