"""When to try again, and what an answer means.

Lost connections, 503, and 429 that says when to come back are tried again: after as long as
`Retry-After` says, else after 0.2 s, 0.4 s, 0.8 s and so on, a little spread. A POST carries a
key, so that the service does once what was sent twice. A service that restarts refuses connections
for a while, so that those are tried more often, for half a minute at least.
"""

from __future__ import annotations

import json
import random
from email.utils import parsedate_to_datetime
from time import time
from typing import Any

import httpx

from driftquilt.client.operations import Call
from driftquilt.errors import ServiceError

__all__ = ["Tries", "as_answer"]

_TOO_MANY, _UNAVAILABLE = 429, 503
_LONGEST = 60.0  # seconds
_GONE = 404
_RETRIES = 5
_REFUSALS = 23  # with pauses of 0.2, 0.4, 0.8, 1.6, 2, 2, ... s that is 41 s, spread 31 s or more


class Tries:
    """The tries of one call; `n_retries` of None is what suits most."""

    def __init__(self, n_retries: int | None) -> None:
        self._n_retries = n_retries
        self.begin_anew()

    def begin_anew(self) -> None:
        """Forget what was tried: the service was heard again."""
        self._n_refused = self._n_others = 0

    def pause(self, call: Call, outcome: httpx.Response | Exception) -> float | None:
        """Seconds to wait before the next try; None if the answer is good. Raises the last word."""
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
    """The dict that the service answered; an empty one for nothing."""
    try:
        answer: dict[str, Any] = json.loads(content or b"{}")
    except ValueError as error:
        raise ServiceError(
            f"the answer is no JSON: {content[:40]!r}; is this driftquilt's address?",
            kind="foreign",
        ) from error
    return answer


def _is_passing(response: httpx.Response) -> bool:
    told = "Retry-After" in response.headers
    return response.status_code == _UNAVAILABLE or (response.status_code == _TOO_MANY and told)


def _was_refused(error: BaseException | None) -> bool:
    """Whether nobody listened, at none of the addresses that were tried."""
    if isinstance(error, BaseExceptionGroup):
        return all(map(_was_refused, error.exceptions))
    if error is None or isinstance(error, ConnectionRefusedError):
        return error is not None
    return _was_refused(error.__cause__ or error.__context__)  # httpcore hides the cause


def _backoff(n_tried: int, longest: float = 10.0) -> float:
    spread = random.uniform(0.75, 1.25)  # noqa: S311  # callers apart, no secret
    return float(min(0.1 * 2**n_tried, longest) * spread)


def _asked_for(response: httpx.Response) -> float | None:
    told = response.headers.get("Retry-After", "")
    if told.isdigit():
        return min(float(told), _LONGEST)
    try:
        seconds = parsedate_to_datetime(told).timestamp() - time()
    except ValueError:
        return None
    return min(max(seconds, 0.0), _LONGEST)


def _unreachable(call: Call, n_tried: int, error: Exception) -> ServiceError:
    said = str(error) or type(error).__name__
    return ServiceError(
        f"{call.method} {call.path} got no answer in {n_tried} tries: {said}; "
        "see whether the service runs, and its address"
    )


def _refusal(response: httpx.Response) -> ServiceError:
    """The problem that the service told of; something between may have answered otherwise."""
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
