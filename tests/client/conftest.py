"""A server on a real socket that answers as a test scripts it, for the clients to cope with."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

import pytest


class Reply(NamedTuple):
    """One answer; a status of 0 hangs up instead."""

    status: int = 200
    body: bytes = b"{}"
    headers: tuple[tuple[str, str], ...] = ()


class Asked(NamedTuple):
    """One request that came."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


class Script:
    """Answers in order, and what was asked."""

    def __init__(self) -> None:
        self.answers: list[Reply] = []
        self.asked: list[Asked] = []
        self.url = ""

    def tell(self, *answers: Reply) -> None:
        self.answers += answers


def reply(document: Any, status: int = 200, **headers: str) -> Reply:
    named = tuple((name.replace("_", "-"), value) for name, value in headers.items())
    return Reply(status, json.dumps(document).encode(), named)


def _handler(script: Script) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            headers = {name.lower(): value for name, value in self.headers.items()}
            script.asked.append(Asked(self.command, self.path, headers, body))
            answer = script.answers.pop(0)
            self.close_connection = True
            if answer.status == 0:
                return
            self.send_response(answer.status)
            for name, value in answer.headers:
                self.send_header(name, value)
            if ("Content-Type", "text/event-stream") not in answer.headers:
                self.send_header("Content-Length", str(len(answer.body)))
            self.end_headers()
            self.wfile.write(answer.body)

        do_GET = do_POST = do_DELETE = _answer  # noqa: N815

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            pass

    return Handler


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Iterator[Script]:
    """A server that has nothing to say yet."""
    monkeypatch.delenv("DRIFTQUILT_TOKEN", raising=False)
    script = Script()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(script))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    script.url = f"http://127.0.0.1:{server.server_port}"
    yield script
    server.shutdown()
    thread.join()
    server.server_close()
