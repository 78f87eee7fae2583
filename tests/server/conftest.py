"""A service that bad requests are sent to, and a browser to open its page in."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.chromium import browser
from tests.server.attacked import Attacked
from tests.server.running import Running

__all__ = ["attacked", "browser"]


@pytest.fixture
def anyio_backend() -> str:
    """Async tests run on asyncio, as the service does."""
    return "asyncio"


@pytest.fixture(scope="session")
def attacked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Attacked]:
    """A service with a stream `s` that knows some rows, and a stream `declared` with a schema."""
    with Running(tmp_path_factory.mktemp("attacked"), max_rows=1_000, rate=1e9) as running:
        yield Attacked.with_streams(running)
        running.end()
        assert "Traceback" not in running.log
