"""The process that forks workers, one for each module of tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.crash.killing import Workers

pytest.register_assert_rewrite("tests.crash.numbered")


@pytest.fixture(scope="module")
def workers(request: pytest.FixtureRequest) -> Iterator[Workers]:
    """Workers that run the module's `work`, to be killed."""
    with Workers(request.module.__name__) as started:
        yield started
