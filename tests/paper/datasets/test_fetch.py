"""Bytes over real sockets: whole, or an error that names the address."""

from __future__ import annotations

import threading

import pytest

from driftquilt.paper.datasets.real import FetchError, fetch
from tests.paper.datasets.conftest import Answer, Server


def test_the_body_comes_whole(server: Server) -> None:
    body = bytes(range(256)) * 1000
    server.serve("/a", body)
    assert fetch(f"{server.url}/a") == body


def test_a_body_of_unknown_length_comes_whole(server: Server) -> None:
    server.answers["/a"] = Answer(b"abc")
    assert fetch(f"{server.url}/a") == b"abc"


@pytest.mark.parametrize(
    "url", ["file:///etc/hostname", "ftp://127.0.0.1/a", "data:,a", "/etc/hostname", ""]
)
def test_only_http_and_https_are_followed(url: str) -> None:
    with pytest.raises(FetchError, match="http"):
        fetch(url)


@pytest.mark.parametrize("target", ["ftp://127.0.0.1:9/a", "file:///etc/hostname", "data:,a"])
def test_a_redirect_leads_to_no_other_scheme(server: Server, target: str) -> None:
    server.answers["/a"] = Answer(status=302, headers={"Location": target})
    with pytest.raises(FetchError, match="/a: "):
        fetch(f"{server.url}/a")


def test_a_redirect_to_http_is_followed(server: Server) -> None:
    server.answers["/a"] = Answer(status=302, headers={"Location": f"{server.url}/b"})
    server.serve("/b", b"abc")
    assert fetch(f"{server.url}/a") == b"abc"


def test_a_circle_of_redirects_ends(server: Server) -> None:
    server.answers["/a"] = Answer(status=302, headers={"Location": f"{server.url}/a"})
    with pytest.raises(FetchError, match="/a: "):
        fetch(f"{server.url}/a")


@pytest.mark.parametrize("status", [403, 404, 429, 500, 503])
def test_a_status_that_is_no_success_is_told(server: Server, status: int) -> None:
    server.answers["/a"] = Answer(b"no", status)
    with pytest.raises(FetchError, match=f"/a: HTTP Error {status}"):
        fetch(f"{server.url}/a")


def test_a_size_past_the_limit_is_refused_before_it_is_read(server: Server) -> None:
    server.serve("/a", b"x" * 11)
    with pytest.raises(FetchError, match=r"11 bytes.* 10 "):
        fetch(f"{server.url}/a", max_bytes=10)


def test_a_size_past_the_limit_is_refused_though_nobody_told_it(server: Server) -> None:
    server.answers["/a"] = Answer(b"x" * 11)
    with pytest.raises(FetchError, match="has more than the 10 bytes allowed"):
        fetch(f"{server.url}/a", max_bytes=10)


def test_a_body_that_breaks_off_is_told(server: Server) -> None:
    server.answers["/a"] = Answer(b"x" * 5, headers={"Content-Length": "1000"})
    with pytest.raises(FetchError, match="broke off after 5 of 1,000 bytes"):
        fetch(f"{server.url}/a")


def test_broken_chunks_are_told(server: Server) -> None:
    server.answers["/a"] = Answer(b"5\r\nab", headers={"Transfer-Encoding": "chunked"})
    with pytest.raises(FetchError, match="/a: "):
        fetch(f"{server.url}/a")


def test_a_server_that_falls_silent_is_given_up(server: Server) -> None:
    silence = threading.Event()
    server.answers["/a"] = Answer(wait=silence)
    with pytest.raises(FetchError, match="timed out"):
        fetch(f"{server.url}/a", timeout=0.1)
    silence.set()


def test_a_bar_is_drawn_on_stderr_if_that_is_a_terminal(
    server: Server, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    server.serve("/Spam/data.npy", b"x" * 1000)
    fetch(f"{server.url}/Spam/data.npy")
    assert capsys.readouterr() == ("", "")
    monkeypatch.setenv("FORCE_COLOR", "1")
    fetch(f"{server.url}/Spam/data.npy")
    out, err = capsys.readouterr()
    assert out == ""
    assert "Spam/data.npy" in err
