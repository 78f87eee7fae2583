"""What holds for every test: seeds are set, hypothesis repeats itself, Ctrl-C is heard."""

from __future__ import annotations

import random
import signal

import numpy as np
import pytest
from hypothesis import settings

settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile("repeatable")

# Started in the background by a shell, Ctrl-C is ignored, here and in every program started here.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def _seeds() -> None:
    random.seed(0)
    np.random.seed(0)  # noqa: NPY002  # for code that draws from the old global generator
