"""A small Ray of the tests' own, with a token that nobody else has."""

from __future__ import annotations

import os
from collections.abc import Iterator
from uuid import uuid4

import pytest

os.environ["RAY_AUTH_MODE"] = "token"  # before Ray is imported
os.environ["RAY_AUTH_TOKEN"] = uuid4().hex
os.environ.pop("RAY_ADDRESS", None)

from tests.integrations.ray.processes import MARK


@pytest.fixture(scope="module")
def cluster() -> Iterator[str]:
    """Two workers on this machine; gives the address."""
    import ray  # noqa: PLC0415  # it takes a second, and most tests do without

    os.environ[MARK] = uuid4().hex
    ray.init(
        address="local",
        num_cpus=2,
        object_store_memory=200_000_000,
        include_dashboard=False,
        log_to_driver=False,
    )
    yield ray.get_runtime_context().gcs_address
    ray.shutdown()
    os.environ.pop(MARK)
