"""A web server on this machine, and a toy stream that it can serve."""

from __future__ import annotations

import io
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from driftquilt.paper.datasets.real import RealStream


@dataclass(frozen=True)
class Answer:
    body: bytes = b""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    wait: threading.Event | None = None


class Quiet(ThreadingHTTPServer):
    def handle_error(self, *_: Any) -> None:
        """Say nothing of a client that hung up, as some tests do."""


class Server:
    """Serves `answers`, by path; counts what was asked."""

    def __init__(self) -> None:
        self.answers: dict[str, Answer] = {}
        self.asked: list[str] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:  # the name http.server calls
                outer.asked.append(self.path)
                answer = outer.answers.get(self.path, Answer(status=404))
                if answer.wait is not None:
                    answer.wait.wait(10)
                self.send_response(answer.status)
                for name, value in answer.headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(answer.body)

            def log_message(self, *_: Any) -> None:
                pass

        self._http = Quiet(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.01,))
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_port}"

    def serve(self, path: str, body: bytes) -> None:
        self.answers[path] = Answer(body, headers={"Content-Length": str(len(body))})

    def serve_arrays(self, folder: str, features: NDArray[Any], labels: NDArray[Any]) -> None:
        self.serve(f"/{folder}/data.npy", npy(features))
        self.serve(f"/{folder}/label.npy", npy(labels))

    def close(self) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()


def npy(array: NDArray[Any]) -> bytes:
    file = io.BytesIO()
    np.save(file, array, allow_pickle=True)
    return file.getvalue()


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    server = Server()
    yield server
    server.close()


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, and no folder of data: whatever is loaded has to be fetched."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("DRIFTQUILT_CACHE", str(folder))
    monkeypatch.delenv("DRIFTQUILT_DATA", raising=False)
    return folder


@dataclass(frozen=True)
class Toy:
    real: RealStream
    features: NDArray[np.int64]
    labels: NDArray[np.float64]


@pytest.fixture
def toy() -> Toy:
    """A stream of 2 segments of 3 rows, its arrays of other types than a stream's."""
    features = np.asfortranarray(np.arange(12).reshape(6, 2))
    labels = np.array([0.0, 1.0, 0.0, 1.0, 1.0, 0.0])
    real = RealStream(
        "toy",
        "Toy",
        n_segments=2,
        segment_size=3,
        feature_names=("a", "b"),
        class_names=("no", "yes"),
        citation="nobody",
        sha256="7eaefe495c75c619e84e5fa76e29f6df658aacc1ad5dffcb16382a738bc8a02c",
    )
    return Toy(real, features, labels)
