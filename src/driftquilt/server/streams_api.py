"""Streams over the wire: who asks, what streams there are, make one, delete one."""

from __future__ import annotations

from typing import Any

from fastapi import Request, Response

from driftquilt.server import schemas
from driftquilt.server.answers import answer
from driftquilt.server.bodies import read_strictly
from driftquilt.server.body_schemas import NewStreamBody
from driftquilt.server.documents import ONCE, document
from driftquilt.server.house import House, NewStream
from driftquilt.server.media import JSON
from driftquilt.server.operations import Name, Operation, allow, expect_type, read_key
from driftquilt.server.problems import Problem

__all__ = ["StreamsApi"]


class StreamsApi:
    """What administrators ask."""

    def __init__(self, house: House) -> None:
        self._house = house

    def operations(self) -> list[Operation]:
        """All of them."""
        create = document(
            "admin", schemas.Stream, "Make a stream", status=201, body=[NewStreamBody],
            headers=[ONCE], problems=[409, 413, 415],
        )  # fmt: skip
        delete = document("admin", None, "Delete a stream and its rows", status=204)
        one = "/v1/streams/{name}"
        return [
            Operation("GET", "/v1/me", self.me, document("read", schemas.Me, "Who asks")),
            Operation(
                "GET", "/v1/streams", self.list, document("read", schemas.Streams, "All streams")
            ),
            Operation("POST", "/v1/streams", self.create, create),
            Operation("GET", one, self.get, document("read", schemas.Stream, "A stream")),
            Operation("DELETE", one, self.delete, delete),
        ]

    async def me(self, request: Request) -> Response:
        """Name and scopes of the token."""
        caller = allow(request, "read")
        return answer({"name": caller.name, "scopes": list(caller.scopes)})

    async def list(self, request: Request) -> Response:
        """All streams as they are now."""
        allow(request, "read")
        streams = [served.status() for served in self._house]
        return answer({"streams": streams, "damaged": sorted(self._house.damaged)})

    async def create(self, request: Request) -> Response:
        """Make a stream; the second time under the same key, tell of the one that was made."""
        allow(request, "admin")
        expect_type(request, (JSON,))
        new = read_strictly(await request.body(), NewStream)
        key, digest = await read_key(request)
        made = await self._create(new, key, digest)
        return answer(made, 201, {"Location": f"/v1/streams/{new.name}"})

    async def get(self, request: Request, name: Name) -> Response:
        """A stream as it is now."""
        allow(request, "read")
        return answer(self._house[name].status())

    async def delete(self, request: Request, name: Name) -> Response:
        """Delete a stream, its rows and its models, for good."""
        allow(request, "admin")
        await self._house.delete(name)
        return Response(status_code=204)

    async def _create(self, new: NewStream, key: str | None, digest: str) -> dict[str, Any]:
        try:
            served = await self._house.create(new, key, digest)
        except Problem as problem:
            if problem.kind != "stream-exists" or key is None:
                raise
            served = self._house[new.name]
            if served.intake.once.find(key, digest) is None:
                raise
            return {**served.status(), "replayed": True}
        return served.status()
