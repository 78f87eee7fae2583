"""Encrypted connections: a broker that is trusted is read, another is refused aloud."""

from __future__ import annotations

import contextlib
import socket
import threading
from pathlib import Path

import pytest

from driftquilt.brokers import open_source
from driftquilt.errors import SourceError
from tests.brokers.brokers import PASSWORD, Certificate, running
from tests.brokers.test_brokers import BODIES, bodies, read


@pytest.mark.parametrize("kind", ["redis", "nats"])
def test_a_broker_is_read_if_its_certificate_is_trusted_and_refused_if_not(
    kind: str, tmp_path: Path
) -> None:
    certificate = Certificate.make(tmp_path)
    with running(kind, tmp_path / "broker", password=PASSWORD, tls=certificate) as broker:
        broker.send(BODIES)
        url = f"{broker.url}{'&' if '?' in broker.url else '?'}"
        with contextlib.closing(open_source(f"{url}ca={certificate.cert}")) as source:
            assert bodies(read(source, len(BODIES))) == BODIES
        with (
            contextlib.closing(open_source(f"{url}tls=true")) as source,
            pytest.raises(SourceError, match="not trusted") as no,
        ):
            source.read(None, 10, 0.5)
        assert PASSWORD not in f"{no.value} {no.value.__cause__} {no.value.__context__}"


def test_kafkas_client_distrusts_a_certificate_too(tmp_path: Path) -> None:
    """That is all it can be asked here: what it meets is the door of a Redis."""
    certificate = Certificate.make(tmp_path)
    with (
        running("redis", tmp_path / "broker", tls=certificate) as broker,
        contextlib.closing(open_source(f"kafka://127.0.0.1:{broker.port}/rows?tls=true")) as source,
        pytest.raises(SourceError, match="not trusted"),
    ):
        read(source, 1)


@pytest.mark.parametrize("path", ["kafka://{}/rows", "redis://{}/0?stream=rows", "nats://{}/S/s"])
def test_a_broker_in_the_clear_hears_no_password_if_the_url_says_tls(path: str) -> None:
    heard = list[bytes]()
    with socket.create_server(("127.0.0.1", 0)) as server:
        listening = threading.Thread(target=_listen, args=(server, heard))
        listening.start()
        url = path.format(f"me:{PASSWORD}@127.0.0.1:{server.getsockname()[1]}")
        url += f"{'&' if '?' in url else '?'}tls=true"
        with contextlib.closing(open_source(url)) as source, contextlib.suppress(SourceError):
            assert [*source.read(None, 10, 1.0)] == []
        listening.join()
    assert PASSWORD.encode() not in b"".join(heard)


def _listen(server: socket.socket, heard: list[bytes]) -> None:
    client, _ = server.accept()
    with client, contextlib.suppress(OSError):
        client.settimeout(2.0)
        client.sendall(b'INFO {"auth_required": true, "max_payload": 1048576}\r\n')
        while heard[-1:] != [b""]:
            heard.append(client.recv(1000))
