"""What the clients do when answers are late, lost, refused or strange."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import httpx
import pytest

from driftquilt import AsyncClient, Client, InputError, ServiceError
from driftquilt.client.connection import Retries
from driftquilt.client.operations import make_call
from tests.client.conftest import Reply, Script, reply
from tests.processes import PATIENCE, free_port

PROBLEM = {
    "type": "urn:driftquilt:unknown-stream", "title": "Not found", "status": 404,
    "detail": "there is no stream 'a'", "request_id": "r-7",
}  # fmt: skip
LOST = Reply(0)
TOKEN = "dq_given"  # noqa: S105

Ask = Callable[..., Any]


def _sync(script: Script, ask: Callable[[Any], Any], **options: Any) -> Any:
    with Client(script.url, **options) as client:
        return ask(client)


def _async(script: Script, ask: Callable[[Any], Any], **options: Any) -> Any:
    async def run() -> Any:
        async with AsyncClient(script.url, **options) as client:
            return await ask(client)

    return asyncio.run(run())


both = pytest.mark.parametrize("run", [_sync, _async], ids=["Client", "AsyncClient"])


@both
def test_an_answer_is_a_dict(run: Ask, script: Script) -> None:
    script.tell(reply({"labels": ["yes"]}))
    answer = run(script, lambda client: client.stream("a b").predict([{"x": 1}], keep=False))
    assert answer == {"labels": ["yes"]}
    [asked] = script.asked
    assert (asked.method, asked.path) == ("POST", "/v1/streams/a%20b/predict")
    assert json.loads(asked.body) == {"rows": [{"x": 1}], "keep": False}


@both
def test_a_lost_post_is_sent_again_under_the_same_key(run: Ask, script: Script) -> None:
    script.tell(LOST, LOST, reply({"learned": 1}))
    assert run(script, lambda client: client.stream("a").learn([{"x": 1}], ["y"])) == {"learned": 1}
    keys = [asked.headers["idempotency-key"] for asked in script.asked]
    assert len(keys) == 3
    assert len(set(keys)) == 1
    assert len({asked.body for asked in script.asked}) == 1


def test_two_posts_have_two_keys(script: Script) -> None:
    script.tell(reply({}), reply({}))
    with Client(script.url) as client:
        client.stream("a").adapt()
        client.stream("a").adapt()
    assert len({asked.headers["idempotency-key"] for asked in script.asked}) == 2


@both
@pytest.mark.parametrize("status", [429, 503])
def test_a_busy_service_is_asked_again_when_it_said(run: Ask, script: Script, status: int) -> None:
    script.tell(reply({}, status, Retry_After="1"), reply({"streams": []}))
    began = time.monotonic()
    assert run(script, lambda client: client.streams()) == {"streams": []}
    assert time.monotonic() - began >= 1


def test_too_many_of_something_that_stays_is_not_asked_again(script: Script) -> None:
    script.tell(reply(PROBLEM | {"type": "urn:driftquilt:too-many-streams"}, 429))
    with pytest.raises(ServiceError, match="429 too-many-streams"):
        _sync(script, lambda client: client.create_stream("one-more"))
    assert len(script.asked) == 1


def test_a_date_is_understood_as_the_time_to_come_back(script: Script) -> None:
    later = format_datetime(datetime.now(UTC) + timedelta(seconds=2), usegmt=True)
    script.tell(reply({}, 503, Retry_After=later), reply({"streams": []}))
    began = time.monotonic()
    assert _sync(script, lambda client: client.streams()) == {"streams": []}
    assert 0.9 <= time.monotonic() - began < PATIENCE


@both
def test_retries_come_to_an_end(run: Ask, script: Script) -> None:
    script.tell(*[reply(PROBLEM | {"status": 503}, 503)] * 3)
    with pytest.raises(ServiceError) as caught:
        run(script, lambda client: client.streams(), retries=2)
    assert caught.value.status == 503
    assert len(script.asked) == 3


@both
def test_a_refusal_tells_the_status_the_kind_the_detail_and_the_request(
    run: Ask, script: Script
) -> None:
    script.tell(reply(PROBLEM, 404))
    with pytest.raises(ServiceError) as caught:
        run(script, lambda client: client.stream("a").status())
    error = caught.value
    assert (error.status, error.kind, error.request_id) == (404, "unknown-stream", "r-7")
    assert error.detail == "there is no stream 'a'"
    assert str(error) == "there is no stream 'a' (404 unknown-stream, request r-7)"
    assert len(script.asked) == 1


@both
def test_a_service_that_is_not_ready_is_not_asked_again(run: Ask, script: Script) -> None:
    script.tell(reply({"status": "starting"}, 503))
    with pytest.raises(ServiceError) as caught:
        run(script, lambda client: client.ready())
    assert caught.value.status == 503


@pytest.mark.parametrize("body", [b"<html>Bad gateway</html>", b"[1]", b""])
def test_whatever_stands_between_may_refuse_in_its_own_way(script: Script, body: bytes) -> None:
    script.tell(Reply(502, body, (("X-Request-Id", "r-8"),)))
    with pytest.raises(ServiceError, match="502 unknown, request r-8"):
        _sync(script, lambda client: client.streams())


def test_an_answer_of_something_else_is_told_as_such(script: Script) -> None:
    script.tell(Reply(200, b"<html>Welcome"))
    with pytest.raises(ServiceError, match=r"not JSON: b'<html>Welcome'"):
        _sync(script, lambda client: client.streams())


def test_a_redirect_is_not_followed_with_the_token(script: Script) -> None:
    script.tell(Reply(307, b"", (("Location", script.url + "/elsewhere"),)))
    with pytest.raises(ServiceError):
        _sync(script, lambda client: client.streams(), token=TOKEN)
    assert len(script.asked) == 1


@both
def test_a_deletion_whose_answer_was_lost_is_done(run: Ask, script: Script) -> None:
    script.tell(LOST, reply(PROBLEM, 404))
    assert run(script, lambda client: client.stream("a").delete()) == {}


def nobody() -> Script:
    """An address at which nobody listens."""
    gone = Script()
    gone.url = f"http://127.0.0.1:{free_port()}"
    return gone


@both
def test_nobody_at_the_address_is_one_sentence(run: Ask) -> None:
    with pytest.raises(ServiceError, match=r"GET /v1/me .* 2 tries") as caught:
        run(nobody(), lambda client: client.me(), retries=1)
    assert (caught.value.status, caught.value.kind) == (None, "unreachable")


@both
def test_a_service_that_refuses_connections_is_tried_for_half_a_minute(run: Ask) -> None:
    with pytest.raises(ServiceError) as caught:
        run(nobody(), lambda client: client.me(), retries=0)
    refused = caught.value.__cause__
    assert isinstance(refused, httpx.ConnectError)
    tries, call = Retries(None), make_call("me")
    pauses = [tries.pause(call, refused) or 0.0 for _ in range(23)]
    with pytest.raises(ServiceError, match="got no answer in 24 tries"):
        tries.pause(call, refused)
    assert 30 <= sum(pauses) <= 60
    assert max(pauses) <= 2.5


def test_an_answer_may_be_lost_and_late_after_connections_were_refused() -> None:
    refused, lost = httpx.ConnectError("refused"), httpx.ReadError("lost")
    refused.__cause__ = ConnectionRefusedError()
    tries, call = Retries(None), make_call("me")
    for _ in range(10):
        tries.pause(call, refused)
    for _ in range(5):
        tries.pause(call, lost)
    with pytest.raises(ServiceError, match="16 tries: lost"):
        tries.pause(call, lost)


@both
def test_the_token_is_sent_and_never_shown(
    run: Ask, script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DRIFTQUILT_TOKEN", "dq_from_the_environment")
    script.tell(reply({}), reply({}))
    run(script, lambda client: client.me())
    run(script, lambda client: client.me(), token=TOKEN)
    sent = [asked.headers["authorization"] for asked in script.asked]
    assert sent == ["Bearer dq_from_the_environment", f"Bearer {TOKEN}"]
    for client in (Client(script.url, TOKEN), AsyncClient(script.url, TOKEN)):
        assert repr(client) == f"{type(client).__name__}('{script.url}')"
        assert repr(client.stream("a")) == f"<stream 'a' of {client!r}>"
        assert TOKEN not in repr(vars(client))


@pytest.mark.parametrize(
    "url",
    ["127.0.0.1:8321", "ftp://x", "http://", "http://me:pw@x", "http://[", 7, "http://a\x00b"],
)
def test_an_invalid_address_is_refused_without_repeating_it(url: Any) -> None:
    with pytest.raises(InputError, match=r"like http://127.0.0.1:8321") as caught:
        Client(url)
    assert "pw" not in str(caught.value)


@pytest.mark.parametrize("options", [{"timeout": 0}, {"timeout": float("nan")}, {"retries": -1}])
def test_limits_that_make_no_sense_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="timeout is more than 0 seconds"):
        Client(**options)


def test_ids_and_labels_come_in_pairs() -> None:
    with pytest.raises(InputError, match="2 ids came with 1 labels"):
        Client().stream("a").label(iter(["1", "2"]), ["yes"])


# Events


def event(number: int) -> dict[str, Any]:
    return {"number": number, "event": "DriftFound", "row": number, "text": "a\u2028b\x85c"}


def frames(*numbers: int) -> bytes:
    sent = [
        f"id: {n}\r\nevent: DriftFound\r\ndata: {json.dumps(event(n), ensure_ascii=False)}\r\n\r\n"
        for n in numbers
    ]
    return ": here\n\n{}event: status\ndata: {{}}\n\n".format("".join(sent)).encode()


LIVE = (("Content-Type", "text/event-stream"),)


async def _all(events: Any) -> list[Any]:
    return [one async for one in events]


async def _some(events: Any, n: int) -> list[Any]:
    found = []
    async with aclosing(events):
        async for one in events:
            found.append(one)
            if len(found) == n:
                break
    return found


def test_events_are_read_page_by_page(script: Script) -> None:
    pages = [reply({"events": [event(1), event(2)], "next": 2}),
             reply({"events": [event(3)], "next": None})]  # fmt: skip
    script.tell(*pages, *pages)
    with Client(script.url) as client:
        assert [one["number"] for one in client.stream("a").events()] == [1, 2, 3]
    found = _async(script, lambda client: _all(client.stream("a").events()))
    assert [one["number"] for one in found] == [1, 2, 3]
    afters = [asked.path.rpartition("?")[2] for asked in script.asked]
    assert afters == ["after=0", "after=2"] * 2


def test_live_events_go_on_where_the_connection_was_lost(script: Script) -> None:
    lives = [Reply(200, frames(5, 6), LIVE), LOST, reply({}, 503), Reply(200, frames(7), LIVE)]
    script.tell(*lives, *lives)
    with Client(script.url) as client:
        events = client.stream("a").events(after=4, live=True)
        assert [next(events) for _ in range(3)] == [event(5), event(6), event(7)]
        events.close()
    found = _async(script, lambda client: _some(client.stream("a").events(after=4, live=True), 3))
    assert found == [event(5), event(6), event(7)]
    afters = [asked.path for asked in script.asked]
    assert afters == [f"/v1/streams/a/events/live?after={n}" for n in (4, 6, 6, 6)] * 2


def test_live_events_end_when_the_service_refuses(script: Script) -> None:
    script.tell(reply(PROBLEM, 404), reply(PROBLEM, 404))
    with Client(script.url) as client, pytest.raises(ServiceError, match="no stream 'a'"):
        next(client.stream("a").events(live=True))
    with pytest.raises(ServiceError, match="no stream 'a'"):
        _async(script, lambda client: _some(client.stream("a").events(live=True), 1))


def test_live_events_end_when_nobody_answers_any_more(script: Script) -> None:
    script.tell(LOST, LOST)
    with Client(script.url, retries=1) as client, pytest.raises(ServiceError, match="2 tries"):
        next(client.stream("a").events(live=True))


@pytest.mark.parametrize("token", ["dq_a b", "dq_ü", "dq_a\nb", "\x7f"])
def test_a_token_that_is_none_is_refused_and_not_shown(token: str) -> None:
    for kind in (Client, AsyncClient):
        with pytest.raises(InputError, match="the token has a character") as refused:
            kind("http://127.0.0.1:1", token=token)
        assert token not in str(refused.value)


@both
def test_a_token_read_from_a_file_has_a_line_break_behind_it(run: Ask, script: Script) -> None:
    script.tell(reply({"status": "ok"}))
    run(script, lambda client: client.health(), token=f"{TOKEN}\n")
    [asked] = script.asked
    assert asked.headers["authorization"] == f"Bearer {TOKEN}"
