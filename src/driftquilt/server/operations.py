"""What every operation shares: who may ask, what type a body has, the key it came with."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from typing import Annotated, Any, NamedTuple, TypeVar

from fastapi import Path, Query, Request, Response

from driftquilt.server.answers import answer
from driftquilt.server.documents import KEY_LETTERS
from driftquilt.server.gate import CALLER, Caller
from driftquilt.server.house import House
from driftquilt.server.names import NAME
from driftquilt.server.once import short_digest
from driftquilt.server.problems import Problem
from driftquilt.server.served import Served
from driftquilt.store.base import State

__all__ = [
    "After",
    "Name",
    "Operation",
    "Version",
    "allow",
    "expect_type",
    "in_turn",
    "on_thread",
    "read_key",
]

T = TypeVar("T")

Name = Annotated[str, Path(pattern=NAME, description="A stream's name.", examples=["clicks"])]
Version = Annotated[int, Path(ge=1, lt=2**31, description="A model's version.", examples=[1])]
After = Annotated[int, Query(ge=0, lt=2**53, description="The number of an event.")]
_KEY = re.compile(KEY_LETTERS)


class Operation(NamedTuple):
    """A way to ask; `told` are the words of its documentation."""

    method: str
    path: str
    handler: Callable[..., Any]
    told: dict[str, Any]


def allow(request: Request, scope: str) -> Caller:
    """Who asks, if they may."""
    caller: Caller = request.scope[CALLER]
    caller.expect(scope)
    return caller


def expect_type(request: Request, kinds: tuple[str, ...]) -> str:
    """The type of the body, if it is one of these."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in kinds:
        raise Problem("body-type-unknown", f"send a body of type {' or '.join(kinds)}")
    if request.headers.get("content-encoding", "identity").lower() != "identity":
        raise Problem("body-type-unknown", "send the body as it is, without a content encoding")
    return kind


async def read_key(request: Request) -> tuple[str | None, str]:
    """The caller's Idempotency-Key, and a digest of what it stands for."""
    key = request.headers.get("idempotency-key")
    if key is None:
        return None, ""
    if not _KEY.fullmatch(key):
        raise Problem(
            "parameter-invalid", "an Idempotency-Key has 1 to 128 letters, digits and _.:-"
        )
    content = f"{request.method} {request.url.path}\n".encode() + await request.body()
    return key, short_digest(content)


async def on_thread(house: House, run: Callable[[], T]) -> T:
    """What takes long, or waits for a stream, goes on a thread that nobody learns on."""
    return await asyncio.get_running_loop().run_in_executor(house.readers, run)


async def in_turn(
    served: Served,
    request: Request,
    decide: Callable[[], dict[str, Any]],
    carry_out: Callable[[dict[str, Any], State], None] | None = None,
    *,
    status: int = 200,
) -> Response:
    """Do something that changes a stream, once for each key."""
    key, digest = await read_key(request)
    do = served.intake.do_once
    return answer(await served.turn(lambda: do(key, digest, decide, carry_out)), status)
