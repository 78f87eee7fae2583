"""What does not end by itself ends with the token that it was asked for with."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from tests.server.running import Running


def test_live_events_end_when_their_token_is_revoked(tmp_path: Path) -> None:
    with Running(tmp_path) as service:
        watcher = service.tokens.create("watcher", ["read"])
        admin = service.tokens.create("admin", ["admin"])
        with service.client(admin) as client:
            client.create_stream("s")
        url = f"{service.url}/v1/streams/s/events/live"
        headers = {"Authorization": f"Bearer {watcher}"}
        with httpx.stream("GET", url, headers=headers, timeout=30) as answer:
            lines = answer.iter_lines()
            assert next(lines) == ": driftquilt"
            assert any(line.startswith("event: status") for line in lines)
            service.tokens.revoke("watcher")
            list(lines)  # it ends


def test_a_second_service_for_a_store_is_refused(tmp_path: Path) -> None:
    with Running(tmp_path) as service:
        second = Running(tmp_path)
        with pytest.raises(AssertionError, match="ended by itself"), second:
            pytest.fail("it began")
        assert "is served by another process" in service.log
        with service.client() as client:
            assert client.ready()
