"""Go on after a crash: a process is killed without warning, and another takes over.

With a folder as its store a stream has every row on disk when `learn_one` returns. The state in
between (weights, detector, counts) follows from the rows, so `QuiltStream.open` gets to where
the dead process stood by itself. `n_rows` says from which row of the source to read on: none is
lost, none is learned twice.

Run it as a script: it starts a process that learns, kills it (SIGKILL, as the kernel does when
memory is out), goes on in its place, and compares the outcome with a run that was never disturbed.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import numpy as np

from driftquilt import QuiltClassifier, QuiltStream

N_ROWS, N_BEFORE_THE_CRASH, TURNED = 500, 330, range(200, 400)


def source(after: int) -> Iterator[tuple[dict[str, float], bool]]:
    """Yield a source that can be read from any row on, as a file or a message queue can."""
    rng = np.random.default_rng(0)
    for row, (a, b) in enumerate(rng.normal(size=(N_ROWS, 2)).tolist()):
        if row >= after:
            yield {"a": a, "b": b}, (a > b) != (row in TURNED)


def begin(folder: str) -> None:
    """Learn, and say how far it is, in the process that will be killed."""
    stream = QuiltStream(QuiltClassifier(random_state=0), n_wait=50, store=folder, wait=True)
    for x, y in source(after=0):
        stream.learn_one(x, y)
        print(stream.n_rows, flush=True)  # noqa: T201


def begin_and_crash(folder: str) -> int:
    """Return how many rows the other process reported as learned before it was killed."""
    command = [sys.executable, __file__, folder]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:  # noqa: S603
        counts = [int(line) for line in islice(process.stdout or (), N_BEFORE_THE_CRASH)]
        process.kill()
    return counts[-1]


def main() -> None:
    """Crash, go on, compare."""
    with tempfile.TemporaryDirectory() as folder:
        n_reported = begin_and_crash(str(Path(folder) / "state"))
        with QuiltStream.open(Path(folder) / "state", wait=True) as stream:
            n_found = stream.n_rows
            assert n_found >= n_reported  # noqa: S101
            for x, y in source(after=n_found):
                stream.learn_one(x, y)
            resumed = (stream.n_rows, stream.accuracy, stream.predict_proba_one({"a": 1, "b": 0}))
    undisturbed = QuiltStream(QuiltClassifier(random_state=0), n_wait=50, wait=True)
    undisturbed.learn_many(*map(list, zip(*source(after=0), strict=True)))
    assert resumed == (  # noqa: S101
        undisturbed.n_rows,
        undisturbed.accuracy,
        undisturbed.predict_proba_one({"a": 1, "b": 0}),
    )
    print(  # noqa: T201
        f"killed after row {n_reported}, found {n_found} rows, went on to {resumed[0]}: "
        f"{resumed[1]:.1%} right, the same as undisturbed"
    )


if __name__ == "__main__":
    begin(sys.argv[1]) if sys.argv[1:] else main()
