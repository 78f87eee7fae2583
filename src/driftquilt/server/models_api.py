"""Models over the wire: which there are, which answers, train another, take one away."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from fastapi import Request, Response

from driftquilt.errors import InputError
from driftquilt.server import schemas, told
from driftquilt.server.answers import answer
from driftquilt.server.documents import ONCE, document
from driftquilt.server.house import House
from driftquilt.server.model_files import model_bytes
from driftquilt.server.operations import Name, Operation, Version, allow, in_turn, on_thread
from driftquilt.server.problems import Problem
from driftquilt.server.served import Served
from driftquilt.store.base import State

__all__ = ["ModelsApi"]

_BYTES = "application/octet-stream"


class ModelsApi:
    """What people ask who answer for a stream."""

    def __init__(self, house: House) -> None:
        self._house = house

    def operations(self) -> list[Operation]:
        """All of them."""
        models = "/v1/streams/{name}/models"
        every = document("read", schemas.Models, "Models that are kept")
        file = document("read", None, "A model's file", media=_BYTES, problems=[406])
        promote = document("admin", schemas.ModelInUse, "Let a model answer", headers=[ONCE])
        before = document(
            "admin", schemas.ModelInUse, "Let the next older model answer",
            headers=[ONCE], problems=[409],
        )  # fmt: skip
        adapt = document(
            "admin", schemas.Adapting, "Train now", status=202, headers=[ONCE], problems=[409]
        )
        return [
            Operation("GET", models, self.models, every),
            Operation("GET", f"{models}/{{version}}/file", self.file, file),
            Operation("POST", f"{models}/{{version}}/promote", self.promote, promote),
            Operation("POST", f"{models}/rollback", self.rollback, before),
            Operation("POST", "/v1/streams/{name}/adapt", self.adapt, adapt),
        ]

    async def models(self, request: Request, name: Name) -> Response:
        """Models that can be promoted."""
        allow(request, "read")
        served = self._house[name]
        return answer(await on_thread(self._house, lambda: told.tell_models(served)))

    async def file(
        self,
        request: Request,
        name: Name,
        version: Version,
        format: Literal["safetensors", "onnx"] = "safetensors",  # noqa: A002 - the wire's word
    ) -> Response:
        """A model to take away."""
        allow(request, "read")
        served = self._house[name]
        content = await on_thread(self._house, lambda: model_bytes(served, version, format))
        file = f"{name}-{version}.{format}"
        headers = {"Content-Disposition": f'attachment; filename="{file}"'}
        return Response(content, headers=headers, media_type=_BYTES)

    async def promote(self, request: Request, name: Name, version: Version) -> Response:
        """Let a model answer, until the next one is promoted."""
        allow(request, "admin")
        served = self._house[name]
        return await _promote(served, request, lambda: version)

    async def rollback(self, request: Request, name: Name) -> Response:
        """Let the next older model answer that is kept."""
        allow(request, "admin")
        served = self._house[name]
        return await _promote(served, request, lambda: told.version_before(served))

    async def adapt(self, request: Request, name: Name) -> Response:
        """Train for the current segment now."""
        allow(request, "admin")
        served = self._house[name]
        return await in_turn(served, request, lambda: _adapt(served), status=202)


async def _promote(served: Served, request: Request, choose: Callable[[], int]) -> Response:
    def decide() -> dict[str, Any]:
        version = choose()
        if version not in served.stream.models:
            raise Problem("model-unknown", "no model of this version is kept")
        return {"model": version}

    def carry_out(decided: dict[str, Any], note: State) -> None:
        served.stream.roll_back(decided["model"], note=note)

    return await in_turn(served, request, decide, carry_out)


def _adapt(served: Served) -> dict[str, Any]:
    try:
        served.adapt()
    except InputError as error:
        raise Problem(
            "nothing-to-adapt-to", "it takes rows in the current segment, and two classes"
        ) from error
    return {"training": True}
