"""Send a decision to a URL: signed, with retries and an idempotency key.

    POST URL
    Content-Type: application/json
    Idempotency-Key: 64 hex digits, the same for the same decision
    Driftquilt-Signature: sha256=HMAC-SHA256(secret, body), if there is a secret

The key comes from the decision without the time and the folder, so the same data, options and
version give the same key: a job that is run again is recognised. Answers of 2xx are success;
connection errors, 429 and 5xx are tried again; everything else is final. Redirects are not
followed, so that the document goes nowhere else.

>>> hook = Webhook("http://127.0.0.1:9/hook", b"secret")
>>> hook.headers('{"n": 1}')["Driftquilt-Signature"][:15]
'sha256=a66b071b'
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import time
from dataclasses import dataclass
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from driftquilt import __version__
from driftquilt.errors import DriftquiltError, InputError

#: The exit code of a command whose document was not delivered.
UNDELIVERED = 3

_PAUSES = (1.0, 2.0, 4.0)  # seconds before another attempt
_TIMEOUT = 10.0  # seconds of one attempt
_TOO_MANY, _SERVER_ERROR = 429, 500


class WebhookError(DriftquiltError):
    """A document that could not be delivered; everything else was done."""


@dataclass(frozen=True)
class Webhook:
    """Where to send documents, and the secret that signs them."""

    url: str
    secret: bytes | None = None

    @classmethod
    def of(cls, url: str, secret_env: str | None = None) -> Webhook:
        """Check the address, and read the secret from an environment variable."""
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise InputError(f"--webhook is {url!r}; it takes a URL such as https://host/path")
        if secret_env is None:
            return cls(url)
        secret = os.environ.get(secret_env, "")
        if not secret:
            raise InputError(f"the environment variable {secret_env} is not set; it has the secret")
        return cls(url, secret.encode())

    def headers(self, document: str) -> dict[str, str]:
        """Return the headers of a request with this document."""
        headers = {
            "Content-Type": "application/json",
            "User-Agent": f"driftquilt/{__version__}",
            "Idempotency-Key": idempotency_key(document),
        }
        if self.secret is not None:
            digest = hmac.new(self.secret, document.encode(), hashlib.sha256).hexdigest()
            headers["Driftquilt-Signature"] = f"sha256={digest}"
        return headers

    def send(self, document: str) -> None:
        """Deliver a document; `WebhookError` if no attempt succeeds."""
        request = Request(self.url, document.encode(), self.headers(document))  # noqa: S310
        for wait in [*_PAUSES, None]:
            reason, is_final = _attempt(request)
            if reason is None:
                return
            if is_final or wait is None:
                raise WebhookError(
                    f"the webhook {without_query(self.url)} was not delivered: {reason}; the "
                    "outcome is written all the same"
                )
            time.sleep(wait)


def idempotency_key(document: str) -> str:
    """Return a key that is the same for the same decision, whenever and wherever it is written."""
    record: dict[str, Any] = json.loads(document)
    record.pop("files", None)
    record["origin"] = {**(record.get("origin") or {}), "made": None}
    return hashlib.sha256(json.dumps(record, sort_keys=True).encode()).hexdigest()


class _NoRedirects(HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        return None


def _attempt(request: Request) -> tuple[str | None, bool]:
    """Return why a request failed, None if it did not, and whether to give up."""
    try:
        with build_opener(_NoRedirects).open(request, timeout=_TIMEOUT):
            return None, True
    except HTTPError as error:
        error.close()
        again = error.code == _TOO_MANY or error.code >= _SERVER_ERROR
        return f"it answered {error.code} {error.reason}", not again
    except (OSError, HTTPException) as error:
        return f"{getattr(error, 'reason', None) or error}", False


def without_query(url: str) -> str:
    """Return a URL without what may be secret in it."""
    parts = urlsplit(url)
    port = "" if parts.port is None else f":{parts.port}"
    return f"{parts.scheme}://{parts.hostname}{port}{parts.path}"
