"""What holds for every test: seeds are set, and hypothesis repeats itself."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import settings

settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile("repeatable")


@pytest.fixture(autouse=True)
def _seeds() -> None:
    random.seed(0)
    np.random.seed(0)  # noqa: NPY002  # for code that draws from the old global generator
