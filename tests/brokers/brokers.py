"""Brokers for the tests: real servers, started on free ports and killed as need be.

Redis and NATS are the servers that Debian installs; Kafka is librdkafka's own cluster, because a
real one needs more than a test can bring.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import socket
import ssl
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import nats
import pytest
import redis
from confluent_kafka import Producer
from nats.js.api import StreamConfig

from tests.processes import ROOT, free_port, wait_for

PASSWORD = "rosebud-42"  # noqa: S105


def server(name: str) -> str:
    """Where a server is installed; without it a test fails under CI, and is skipped elsewhere."""
    found = shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin")
    if found is None:
        miss = pytest.fail if os.environ.get("DRIFTQUILT_DATA") else pytest.skip
        miss(f"needs {name}; install it with: apt install {name}")
    return found


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


class Broker(Protocol):
    """What the tests do to any of them."""

    url: str

    def send(self, bodies: Sequence[bytes]) -> None:
        """Add messages, in order."""

    def lose_first(self) -> None:
        """Forget messages that the broker had, as retention does; ten or more are there."""

    def stop(self) -> None: ...

    def start(self) -> None: ...


class Server:
    """A process that listens on a port and keeps its data in a folder."""

    def __init__(self, command: Sequence[str], port: int) -> None:
        self._command, self.port = command, port
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    def start(self) -> None:
        quiet = subprocess.DEVNULL
        self._process = subprocess.Popen(self._command, stdout=quiet, stderr=quiet)
        wait_for(lambda: listens(self.port))

    def stop(self) -> None:
        """Kill it."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


@dataclass(frozen=True)
class Certificate:
    """What a broker shows for itself, which nobody trusts unless told to."""

    cert: Path
    key: Path

    @classmethod
    def make(cls, folder: Path) -> Certificate:
        made = cls(folder / "cert.pem", folder / "key.pem")
        names = "-subj /CN=localhost -addext subjectAltName=IP:127.0.0.1"
        subprocess.run(
            f"openssl req -x509 -newkey rsa:2048 -nodes -days 2 {names} "
            f"-out {made.cert} -keyout {made.key}".split(),
            check=True,
            capture_output=True,
        )
        return made


class RedisBroker(Server):
    def __init__(
        self, folder: Path, *, password: str | None = None, tls: Certificate | None = None
    ) -> None:
        port = free_port()
        options = f"--port {port} --dir {folder} --appendonly yes --appendfsync always --save ''"
        if tls is not None:
            options = options.replace("--port", "--port 0 --tls-port") + (
                f" --tls-cert-file {tls.cert} --tls-key-file {tls.key} "
                f"--tls-ca-cert-file {tls.cert} --tls-auth-clients no"
            )
        options += f" --requirepass {password}" if password else ""
        user = f":{password}@" if password else ""
        self.url = f"redis://{user}127.0.0.1:{port}/0?stream=rows"
        self._options: dict[str, Any] = {"port": port, "password": password}
        if tls is not None:
            self._options |= {"host": "127.0.0.1", "ssl": True, "ssl_ca_certs": str(tls.cert)}
        super().__init__([server("redis-server"), *options.replace("''", "").split()], port)
        self._wait_until_loaded()

    def start(self) -> None:
        super().start()
        self._wait_until_loaded()

    def client(self) -> contextlib.AbstractContextManager[Any]:
        return contextlib.closing(redis.Redis(**self._options))

    def send(self, bodies: Sequence[bytes]) -> None:
        with self.client() as client, client.pipeline() as pipe:
            for body in bodies:
                pipe.xadd("rows", {"body": body})
            pipe.execute()

    def lose_first(self) -> None:
        with self.client() as client:
            client.xtrim("rows", maxlen=9, approximate=False)

    def _wait_until_loaded(self) -> None:
        def ready() -> bool:
            with self.client() as client, contextlib.suppress(redis.BusyLoadingError):
                return bool(client.ping())
            return False

        wait_for(ready)


class NatsBroker(Server):
    def __init__(
        self, folder: Path, *, password: str | None = None, tls: Certificate | None = None
    ) -> None:
        port = free_port()
        config = folder / "nats.conf"
        login = f"authorization {{ user: me, password: {password} }}\n" if password else ""
        login += f'tls {{ cert_file: "{tls.cert}", key_file: "{tls.key}" }}\n' if tls else ""
        # Debian's 2.9 cannot be told to sync; a kill does not lose what the kernel has.
        config.write_text(f'port: {port}\n{login}jetstream {{ store_dir: "{folder}" }}\n')
        self.url = f"nats://{f'me:{password}@' if password else ''}127.0.0.1:{port}/ROWS/rows"
        self._login: dict[str, Any] = {"user": "me", "password": password} if password else {}
        if tls is not None:
            self._login["tls"] = ssl.create_default_context(cafile=tls.cert)
        super().__init__([server("nats-server"), "-c", str(config)], port)
        self.add_stream("ROWS", ["rows"])

    def add_stream(self, name: str, subjects: Sequence[str], **settings: Any) -> None:
        config = StreamConfig(name, subjects=[*subjects], **settings)
        self._do(lambda jetstream: jetstream.add_stream(config))

    def send(self, bodies: Sequence[bytes]) -> None:
        async def publish(jetstream: Any) -> None:
            for first in range(0, len(bodies), 1000):
                some = bodies[first : first + 1000]
                await asyncio.gather(*(jetstream.publish("rows", body, 60) for body in some))

        self._do(publish)

    def lose_first(self) -> None:
        self._do(lambda jetstream: jetstream.purge_stream("ROWS", keep=9))

    def lose_all(self) -> None:
        self._do(lambda jetstream: jetstream.purge_stream("ROWS"))

    def _do(self, work: Callable[[Any], Any]) -> None:
        async def connected() -> None:
            client = await nats.connect(f"nats://127.0.0.1:{self.port}", **self._login)
            await work(client.jetstream())
            await client.close()

        asyncio.run(connected())


class KafkaBroker:
    def __init__(self, n_partitions: int = 1) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.brokers.mock_kafka"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            bufsize=1,
        )
        self.hosts = self._hear()
        self.order(f"topic rows {n_partitions}")
        self.url = f"kafka://{self.hosts}/rows"

    def send(self, bodies: Sequence[bytes], partition: int = 0) -> None:
        failed: list[Any] = []
        producer = Producer(
            {"bootstrap.servers": self.hosts, "acks": "all", "compression.type": "gzip"}
        )
        for body in bodies:
            producer.produce(
                "rows",
                body,
                partition=partition,
                on_delivery=lambda error, _: failed.extend([error] if error else []),
            )
            producer.poll(0)
            if len(producer) > 50_000:
                producer.flush()
        assert producer.flush(60) == 0
        assert failed == []

    def lose_first(self) -> None:
        """It keeps five megabytes of a partition."""
        for _ in range(8):
            self.send([os.urandom(900_000)])

    def stop(self) -> None:
        self.order("down")

    def start(self) -> None:
        self.order("up")

    def close(self) -> None:
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()
        self._process.wait(timeout=30)

    def _hear(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def order(self, line: str) -> None:
        """Have the cluster do something; `mock_kafka` says what it understands."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n")
        assert self._hear() == "0"


KINDS = ["kafka", "redis", "nats"]


@contextlib.contextmanager
def running(kind: str, folder: Path, **settings: Any) -> Iterator[Any]:
    """A broker with an empty topic or stream called rows."""
    if kind == "kafka":
        broker = KafkaBroker(**settings)
        try:
            yield broker
        finally:
            broker.close()
        return
    folder.mkdir(exist_ok=True)
    started = (RedisBroker if kind == "redis" else NatsBroker)(folder, **settings)
    try:
        yield started
    finally:
        started.stop()
