"""What holds for every test: seeds, one thread for numpy and torch, repeatable hypothesis, Ctrl-C.

Numbers here are small. Two threads that share a busy machine take up to ten times as long for them
as one, because each spins while it waits for the other.
"""

from __future__ import annotations

import os
import random
import signal

os.environ["OMP_NUM_THREADS"] = "1"  # before numpy and torch are imported

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
