"""A warm process that forks streams to be killed, in the manner of `tests.store.crash.zygote`.

It reads lines "folder seed" and forks a worker for each, which goes on with the stream in the
folder until all rows are learned, and says how many rows are durable after every call.

    python -m tests.stream.crash_zygote
"""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

from driftquilt.store.disk import DiskStore
from driftquilt.stream.runner import QuiltStream
from tests.store.crash import zygote
from tests.stream.streams import TURN, LabelledRow, learn, rows, start

N_ROWS = 900
SETTINGS: dict[str, Any] = {
    "checkpoint_rows": 40,
    "max_segments": 4,
    "max_models": 3,
    "refresh": 1.7,
    "segment_rows": 160,
}


def stream_rows() -> list[LabelledRow]:
    """The rows that every stream here is made of."""
    return rows(N_ROWS, seed=7)


def go_on(folder: Path) -> QuiltStream:
    """The stream of the folder; a kill may have come before there was one."""
    store = DiskStore(folder)
    return QuiltStream.open(store, wait=True) if store.state else start(store, **SETTINGS)


def work(folder: Path, rng: Random) -> None:
    """Learn what is left, by single rows and in batches, and say what is durable."""
    some = stream_rows()
    with go_on(folder) as stream:
        zygote.say(stream.n_durable)
        while stream.n_rows < N_ROWS:
            n_rows = rng.choice([1, 1, 1, 1, 5, 60])
            batch = some[stream.n_rows : stream.n_rows + n_rows]
            stream.learn_many([x for x, _ in batch], [y for _, y in batch])
            zygote.say(stream.n_durable)
    zygote.say("done")


def main() -> None:
    warm = learn(start(), rows(2 * TURN))  # all is imported and compiled, kernels too
    assert warm.model is not None
    zygote.work = work
    zygote.main()


if __name__ == "__main__":
    main()
