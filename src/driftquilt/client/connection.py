r"""What both clients need: the address and the token, when to try again, events off the wire.

Lost connections, 503, and 429 with a `Retry-After` are tried again: after as long as that says,
else after 0.2 s, 0.4 s, 0.8 s and so on, with some jitter. A POST carries a key, so that the
service carries it out once even if it is sent twice. A service that restarts refuses connections
for a while, so those are tried more often, for half a minute at least.

>>> reader = EventReader()
>>> reader.feed(b': still here\n\nid: 5\nevent: DriftFound\ndata: {"row"')
[]
>>> reader.feed(b": 20}\n\n")
[{'row': 20}]
"""

from __future__ import annotations

import json
import os
import random
import re
from dataclasses import dataclass, field, replace
from email.utils import parsedate_to_datetime
from time import time
from typing import Any
from urllib.parse import urlsplit

import httpx

from driftquilt.client.operations import Call
from driftquilt.errors import InputError, ServiceError

__all__ = [
    "Connection",
    "EventReader",
    "Retries",
    "as_answer",
    "connection_lost",
    "resume_after",
]

_TOKEN = re.compile(r"[\x21-\x7e]+")
_SILENCE = 45.0  # seconds; the service says something every 15
_TOO_MANY, _UNAVAILABLE = 429, 503
_LONGEST = 60.0  # seconds
_GONE = 404
_RETRIES = 5
_REFUSALS = 23  # with pauses of 0.2, 0.4, 0.8, 1.6, 2, 2, ... s that is 41 s, spread 31 s or more


@dataclass(frozen=True)
class Connection:
    """Where the service is and how to speak to it. The token is not shown."""

    url: str
    token: str | None = field(default=None, repr=False)
    timeout: float = 30.0
    retries: int | None = None

    def __post_init__(self) -> None:
        if not _is_address(self.url):
            raise InputError(
                "the service's address is like http://127.0.0.1:8321, without a user or password"
            )
        if not _TOKEN.fullmatch(self._token or "dq"):
            raise InputError(
                "the token has a character that tokens never have, such as a line break; give "
                "it as `driftquilt token create` printed it"
            )
        if not self.timeout > 0 or (self.retries is not None and self.retries < 0):
            raise InputError(
                "timeout is more than 0 seconds and retries are 0 or more, "
                f"but got {self.timeout!r} and {self.retries!r}"
            )

    def options(self) -> dict[str, Any]:
        """Return the arguments of httpx's clients."""
        headers = {"Authorization": f"Bearer {self._token}"} if self._token else {}
        return {"base_url": self.url, "headers": headers, "timeout": self.timeout}

    @property
    def _token(self) -> str | None:
        token = self.token or os.environ.get("DRIFTQUILT_TOKEN")
        return token.strip() if token else None  # files end with a line break

    def live_request(self, call: Call) -> dict[str, Any]:
        """Return a call's arguments for an endless answer, which may be silent for a while."""
        return {**call.request(), "timeout": httpx.Timeout(self.timeout, read=_SILENCE)}


def _is_address(text: str) -> bool:
    try:
        url, _ = httpx.URL(text), urlsplit(text)  # each refuses what the other takes
    except (httpx.InvalidURL, TypeError, ValueError):
        return False
    return url.scheme in ("http", "https") and bool(url.host) and not url.userinfo


def resume_after(call: Call, number: int) -> Call:
    """Return the call that resumes after this event."""
    return replace(call, params={**call.params, "after": number})


def connection_lost() -> Exception:
    """Return the error of an endless answer that ended."""
    return httpx.RemoteProtocolError("the service ended the connection")


class Retries:
    """How often one call was tried; `n_retries` of None is the default policy."""

    def __init__(self, n_retries: int | None) -> None:
        self._n_retries = n_retries
        self.reset()

    def reset(self) -> None:
        """Start counting again: the service answered."""
        self._n_refused = self._n_others = 0

    def pause(self, call: Call, outcome: httpx.Response | Exception) -> float | None:
        """Return the seconds until the next try, None if the answer is good; or raise."""
        if isinstance(outcome, Exception) and _was_refused(outcome):
            self._n_refused += 1
            return self._pause_unheard(call, outcome, _backoff(self._n_refused, longest=2.0))
        self._n_others += 1
        if isinstance(outcome, Exception):
            return self._pause_unheard(call, outcome, _backoff(self._n_others))
        if outcome.is_success:
            return None
        if call.method == "DELETE" and self._n_others > 1 and outcome.status_code == _GONE:
            return None  # a try whose answer was lost did it
        if _is_passing(outcome) and call.path != "/readyz" and self._may_go_on():
            return _asked_for(outcome) or _backoff(self._n_others)
        raise _refusal(outcome)

    def _pause_unheard(self, call: Call, error: Exception, pause: float) -> float:
        if not self._may_go_on():
            raise _unreachable(call, self._n_refused + self._n_others, error) from error
        return pause

    def _may_go_on(self) -> bool:
        if self._n_retries is not None:
            return self._n_refused + self._n_others <= self._n_retries
        return self._n_refused <= _REFUSALS and self._n_others <= _RETRIES


def as_answer(content: bytes) -> dict[str, Any]:
    """Return the answer as a dict; an empty one for nothing."""
    try:
        answer: dict[str, Any] = json.loads(content or b"{}")
    except ValueError as error:
        raise ServiceError(
            f"the answer is not JSON: {content[:40]!r}; is this driftquilt's address?",
            kind="foreign",
        ) from error
    return answer


def _is_passing(response: httpx.Response) -> bool:
    has_pause = "Retry-After" in response.headers
    return response.status_code == _UNAVAILABLE or (response.status_code == _TOO_MANY and has_pause)


def _was_refused(error: BaseException | None) -> bool:
    """Return whether nobody listened, at any of the addresses that were tried."""
    if isinstance(error, BaseExceptionGroup):
        return all(map(_was_refused, error.exceptions))
    if error is None or isinstance(error, ConnectionRefusedError):
        return error is not None
    return _was_refused(error.__cause__ or error.__context__)  # httpcore hides the cause


def _backoff(n_tried: int, longest: float = 10.0) -> float:
    spread = random.uniform(0.75, 1.25)  # noqa: S311  # callers apart, no secret
    return float(min(0.1 * 2**n_tried, longest) * spread)


def _asked_for(response: httpx.Response) -> float | None:
    pause = response.headers.get("Retry-After", "")
    if pause.isdigit():
        return min(float(pause), _LONGEST)
    try:
        seconds = parsedate_to_datetime(pause).timestamp() - time()
    except ValueError:
        return None
    return min(max(seconds, 0.0), _LONGEST)


def _unreachable(call: Call, n_tried: int, error: Exception) -> ServiceError:
    message = str(error) or type(error).__name__
    return ServiceError(
        f"{call.method} {call.path} got no answer in {n_tried} tries: {message}; "
        "see whether the service runs, and its address"
    )


def _refusal(response: httpx.Response) -> ServiceError:
    """Return the service's problem; a proxy may have answered otherwise."""
    try:
        problem = response.json()
    except ValueError:
        problem = None
    if not isinstance(problem, dict):
        problem = {"detail": response.text[:200] or response.reason_phrase}
    kind = str(problem.get("type", "urn:driftquilt:unknown")).rpartition(":")[2]
    detail = str(problem.get("detail") or problem.get("title") or response.reason_phrase)
    request_id = problem.get("request_id") or response.headers.get("X-Request-Id")
    return ServiceError(detail, status=response.status_code, kind=kind, request_id=request_id)


class EventReader:
    """Parses a stream's server-sent events; those without a number are its status.

    Lines end at line feeds only: data may hold anything else.
    """

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, chunk: bytes) -> list[dict[str, Any]]:
        """Return the events that these bytes complete."""
        text = (self._rest + chunk).replace(b"\r\n", b"\n")
        *blocks, self._rest = text.split(b"\n\n")
        fields = [
            dict(line.partition(": ")[::2] for line in block.decode().split("\n"))
            for block in blocks
        ]
        return [json.loads(event["data"]) for event in fields if "id" in event]
