"""Bytes from a public address, whole or not at all.

Only http and https, redirects included; a limit on the size; a bar on stderr if that is a
terminal. Whatever goes wrong comes as a `FetchError` that names the address.

>>> fetch("file:///etc/hostname")
Traceback (most recent call last):
driftquilt.paper.datasets.fetch.FetchError: file:///etc/hostname is neither http nor https
"""

from __future__ import annotations

import http.client
import urllib.error
import urllib.request
from typing import Protocol
from urllib.parse import urlsplit

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

from driftquilt.errors import InputError

__all__ = ["MAX_BYTES", "FetchError", "fetch"]

MAX_BYTES = 64 * 2**20
_CHUNK = 2**16
_TIMEOUT = 30.0  # seconds without a byte


class FetchError(InputError):
    """The address, and why its bytes could not be had."""


class _Body(Protocol):
    def read(self, size: int, /) -> bytes: ...


def fetch(url: str, *, max_bytes: int = MAX_BYTES, timeout: float = _TIMEOUT) -> bytes:
    """The body of the answer to a GET."""
    if urlsplit(url).scheme not in ("http", "https"):
        raise FetchError(f"{url} is neither http nor https")
    try:
        with _opener().open(url, timeout=timeout) as answer:
            length = answer.headers.get("Content-Length")
            n_bytes = int(length) if length and length.isdigit() else None
            return _read(answer, url, n_bytes, max_bytes)
    except FetchError:
        raise
    except urllib.error.HTTPError as error:
        error.close()  # it holds the connection
        raise FetchError(f"{url}: {error}") from error
    except (OSError, http.client.HTTPException, ValueError) as error:
        # OSError covers an unknown host, a refused or broken connection, a timeout.
        raise FetchError(f"{url}: {error or type(error).__name__}") from error


def _opener() -> urllib.request.OpenerDirector:
    """Urllib's own, without the handlers for ftp, files and data that a redirect could reach."""
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler(),
        urllib.request.UnknownHandler(),
        urllib.request.HTTPHandler(),
        urllib.request.HTTPSHandler(),
        urllib.request.HTTPDefaultErrorHandler(),
        urllib.request.HTTPRedirectHandler(),
        urllib.request.HTTPErrorProcessor(),
    ):
        opener.add_handler(handler)
    return opener


def _read(body: _Body, url: str, n_bytes: int | None, max_bytes: int) -> bytes:
    if n_bytes is not None and n_bytes > max_bytes:
        raise FetchError(f"{url} has {n_bytes:,} bytes, more than the {max_bytes:,} allowed")
    read = bytearray()
    with _bar() as bar:
        task = bar.add_task("/".join(url.split("/")[-2:]), total=n_bytes)
        while chunk := body.read(_CHUNK):
            read += chunk
            if len(read) > max_bytes:
                raise FetchError(f"{url} has more than the {max_bytes:,} bytes allowed")
            bar.update(task, completed=len(read))
    if n_bytes is not None and len(read) < n_bytes:
        raise FetchError(f"{url} broke off after {len(read):,} of {n_bytes:,} bytes")
    return bytes(read)


def _bar() -> Progress:
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn())
    return Progress(
        *columns, TransferSpeedColumn(), console=console, disable=not console.is_terminal
    )
