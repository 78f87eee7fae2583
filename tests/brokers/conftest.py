"""A source on the broker that each file starts."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest

from driftquilt.brokers import Source, open_source


@pytest.fixture
def source(broker: Any) -> Iterator[Source]:
    with contextlib.closing(open_source(broker.url)) as opened:
        yield opened
