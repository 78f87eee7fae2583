"""Heads that are wrong, as no honest client would send them: over raw sockets."""

from __future__ import annotations

import os
import socket
import time
from pathlib import Path

import pytest

from tests.processes import wait_for
from tests.server.attacked import JSON, MARK, PREDICT, Attacked
from tests.server.running import Running
from tests.server.serving import send_raw

BODY = f'{{"rows": [{{"age": 1, "city": "{MARK}"}}]}}'.encode()
LENGTH = f"Content-Length: {len(BODY)}"


def head(*lines: str, first: str = f"POST {PREDICT} HTTP/1.1", host: str = "127.0.0.1") -> bytes:
    hosts = [f"Host: {host}"] if host else []
    return "\r\n".join([first, *hosts, f"Content-Type: {JSON}", *lines, "", ""]).encode("latin-1")


HEADS = {
    "two hosts": (400, head("Host: localhost", LENGTH)),
    "no host": (421, head(LENGTH, host="")),
    "another host": (421, head(LENGTH, host="example.org")),
    "a host that begins like ours": (421, head(LENGTH, host="127.0.0.1.example.org")),
    "a host with a line of its own": (421, head(LENGTH, host="127.0.0.1:80@example.org")),
    "another site's page": (403, head(LENGTH, "Origin: https://example.org")),
    "a page without a site": (403, head(LENGTH, "Origin: null")),
    "two lengths": (400, head(LENGTH, LENGTH)),
    "two lengths that differ": (400, head(LENGTH, "Content-Length: 0")),
    "two lengths in one": (400, head(f"Content-Length: {len(BODY)}, 0")),
    "a negative length": (400, head("Content-Length: -1")),
    "a length with a sign": (400, head(f"Content-Length: +{len(BODY)}")),
    "a length in hexadecimal": (400, head("Content-Length: 0x20")),
    "a length of 100 digits": (400, head(f"Content-Length: {'9' * 100}")),
    "a length and chunks": (400, head(LENGTH, "Transfer-Encoding: chunked")),
    "chunks and a length": (400, head("Transfer-Encoding: chunked", LENGTH)),
    "unknown chunks": (400, head(f"Transfer-Encoding: {MARK}")),
    "chunks of no size": (400, head("Transfer-Encoding: chunked") + b"zz\r\n"),
    "chunks of a huge size": (400, head("Transfer-Encoding: chunked") + b"f" * 40 + b"\r\n"),
    "200 headers": (431, head(*[f"X-{k}: {MARK}" for k in range(200)], LENGTH)),
    "a header of 64 KB": (431, head(f"X-Long: {'x' * 65536}", LENGTH)),
    "a header without an end": (431, head()[:-2] + b"X-Long: " + b"x" * (1 << 20)),
    "a path without an end": (431, b"GET /" + b"x" * (1 << 20)),
    "two types": (400, head("Content-Type: text/plain", LENGTH)),
    "two tokens": (400, head("Authorization: Bearer a", "Authorization: Bearer b", LENGTH)),
    "two keys": (400, head("Idempotency-Key: a", "Idempotency-Key: b", LENGTH)),
    "a line break in a header": (400, head(f"X-Split: a\n {MARK}", LENGTH)),
    "a null byte in a header": (400, head(f"X-Null: a\0{MARK}", LENGTH)),
    "a blank before the colon": (400, head(f"X-Blank : {MARK}", LENGTH)),
    "no name before the colon": (400, head(f": {MARK}", LENGTH)),
    "a name that is none": (400, head(f"X({MARK}): a", LENGTH)),
    "no HTTP": (400, f"{MARK}\r\n\r\n".encode()),
    "an unknown method": (400, head(LENGTH, first=f"{MARK.upper()} / HTTP/1.1")),
    "an unknown version": (400, head(LENGTH, first=f"POST {PREDICT} HTTP/9.9")),
    "a path that is none": (400, head(LENGTH, first=f"POST {MARK} HTTP/1.1")),
    "a null byte in the path": (400, head(LENGTH, first="POST /\0 HTTP/1.1")),
    "a blank in the path": (400, head(LENGTH, first="POST /v1/ streams HTTP/1.1")),
    "letters that are not ASCII in the path": (400, head(LENGTH, first="GET /é HTTP/1.1")),
    "HTTP/2": (400, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
    "TLS": (400, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(32)),
}


@pytest.mark.parametrize("name", HEADS)
def test_a_bad_head_is_refused(attacked: Attacked, name: str) -> None:
    status, sent = HEADS[name]
    attacked.expect_refusal(send_raw(attacked.running.port, sent + BODY), status)


def test_chunks_are_read_like_any_body(attacked: Attacked) -> None:
    sent = head("Transfer-Encoding: chunked") + b"%x\r\n%s\r\n0\r\n\r\n" % (len(BODY), BODY)
    assert send_raw(attacked.running.port, sent).status == 200


def test_a_web_socket_is_not_opened(attacked: Attacked) -> None:
    key = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="
    upgrade = head("Connection: Upgrade", "Upgrade: websocket", key, first="GET /v1/x HTTP/1.1")
    attacked.expect_refusal(send_raw(attacked.running.port, upgrade), 404)


def test_who_hangs_up_within_a_body_leaves_no_traceback(attacked: Attacked) -> None:
    for n_bytes in (0, 1, 20):
        with socket.create_connection(("127.0.0.1", attacked.running.port)) as connection:
            connection.sendall(head(LENGTH) + BODY[:n_bytes])
    time.sleep(0.2)
    attacked.expect_alive()


def test_a_head_that_takes_too_long_is_refused_and_silence_is_hung_up_on(tmp_path: Path) -> None:
    with Running(tmp_path, body_seconds=0.5) as running:
        slow = send_raw(running.port, head()[:-2])
        assert slow.status == 408
        assert b"urn:driftquilt:request-slow" in slow.body
        assert send_raw(running.port).status == 0
        body = send_raw(running.port, head(LENGTH, first="POST /v1/streams HTTP/1.1"), BODY[:5])
        assert body.status == 408
        assert b"urn:driftquilt:body-slow" in body.body
        running.end()
        assert "Traceback" not in running.log


def test_a_request_that_the_end_cuts_short_is_told_to_come_again(tmp_path: Path) -> None:
    with Running(tmp_path, drain_seconds=1) as running:
        begun = socket.create_connection(("127.0.0.1", running.port), timeout=30)
        with begun as connection, connection.makefile("rb") as answer:
            create = head("Expect: 100-continue", LENGTH, first="POST /v1/streams HTTP/1.1")
            connection.sendall(create + BODY[:5])
            assert answer.readline() == b"HTTP/1.1 100 Continue\r\n"  # its body is awaited
            running.end()
            told = answer.read().lower()
        assert b"http/1.1 503" in told
        assert b"retry-after: 5" in told
        assert b"urn:driftquilt:stopping" in told
        assert "Traceback" not in running.log


def test_empty_lines_do_not_hold_a_connection_open(tmp_path: Path) -> None:
    with Running(tmp_path, body_seconds=0.5) as running:
        with socket.create_connection(("127.0.0.1", running.port), timeout=30) as connection:
            connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            assert b"200 OK" in connection.recv(4096)
            connection.sendall(b"\r\n")
            assert connection.recv(4096) == b""
        running.end()


def test_requests_that_are_sent_without_end_and_never_read_are_hung_up_on(tmp_path: Path) -> None:
    request = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    with Running(tmp_path) as running:
        send_raw(running.port, request)
        before = memory(running.pid)
        for _ in range(6):
            with pytest.raises(ConnectionError):
                send_forever(running.port, request * 10_000)
        assert send_raw(running.port, request).status == 200
        assert memory(running.pid) - before < 50 << 20
        running.end()
        assert "Traceback" not in running.log


def test_some_requests_may_wait_on_a_connection(tmp_path: Path) -> None:
    request = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    with Running(tmp_path) as running:
        with socket.create_connection(("127.0.0.1", running.port), timeout=60) as connection:
            connection.sendall(request * 16)
            answers = b""
            while answers.count(b"200 OK") < 16:
                answers += connection.recv(1 << 16)
            connection.sendall(request * 100)
            while chunk := connection.recv(1 << 16):
                answers += chunk
        assert b"HTTP/1.1 429" in answers
        assert b"urn:driftquilt:rate-exceeded" in answers
        running.end()


def test_who_does_not_read_an_answer_is_hung_up_on(tmp_path: Path) -> None:
    page = b"GET /openapi.json HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    with Running(tmp_path, body_seconds=0.5) as running:
        with pytest.raises(ConnectionError):
            send_forever(running.port, page)
        running.end()
        assert "Traceback" not in running.log


def send_forever(port: int, sent: bytes) -> None:
    """Ask again and again on one connection, and read no answer."""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        while True:
            connection.sendall(sent)
            time.sleep(0.02)


def memory(pid: int) -> int:
    """The resident bytes of a process."""
    n_pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
    return n_pages * os.sysconf("SC_PAGE_SIZE")


def test_connections_beyond_the_most_are_refused_until_others_are_gone(tmp_path: Path) -> None:
    with Running(tmp_path, max_connections=5) as running:
        held = [socket.create_connection(("127.0.0.1", running.port)) for _ in range(5)]
        ask = head(first="GET /healthz HTTP/1.1")
        wait_for(lambda: send_raw(running.port, ask).status == 503)
        refused = send_raw(running.port, ask)
        assert b"urn:driftquilt:too-many-connections" in refused.body
        assert refused.headers["retry-after"] == "5"
        for connection in held:
            connection.close()
        wait_for(lambda: send_raw(running.port, ask).status == 200)
        running.end()
