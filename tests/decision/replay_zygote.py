"""A warm process that forks replays to be killed, in the manner of `tests.stream.crash_zygote`.

python -m tests.decision.replay_zygote
"""

from __future__ import annotations

from pathlib import Path
from random import Random

import pyarrow as pa

from driftquilt.decision.replay import Replay
from driftquilt.store.disk import DiskStore
from driftquilt.stream.runner import QuiltStream
from tests.store.crash import zygote
from tests.stream.crash_zygote import N_ROWS, stream_rows
from tests.stream.crash_zygote import SETTINGS as SMALL
from tests.stream.streams import start

#: Each model goes when the next one comes, and must have been told of by then.
SETTINGS = {**SMALL, "max_models": 1}


def table() -> pa.Table:
    """The rows of every replay here; one in eleven has no label."""
    made = [{**x, "sold": y} for x, y in stream_rows()]
    unlabelled = [{**row, "sold": None} for row in made[::10]]
    rows = [
        row
        for k, row in enumerate(made)
        for row in ([unlabelled[k // 10], row] if k % 10 == 0 else [row])
    ]
    names = sorted({name for row in rows for name in row})
    return pa.table({name: [row.get(name) for row in rows] for name in names})


def work(folder: Path, rng: Random) -> None:  # noqa: ARG001 - the zygote gives one
    """Go on with the replay in the folder, and say how far it has come."""
    store = DiskStore(folder / "store")
    stream = QuiltStream.open(store, wait=True) if store.state else start(store, **SETTINGS)
    with stream:
        zygote.say(stream.n_rows)
        for progress in Replay(stream, folder).run(table(), "sold", report_every=100):
            zygote.say(progress.rows)
    zygote.say("done")


def main() -> None:
    warm = start(**SETTINGS)  # all is imported and compiled, kernels too
    warm.learn_many(*zip(*stream_rows()[:200], strict=True))
    assert warm.n_rows < N_ROWS
    zygote.work = work
    zygote.main()


if __name__ == "__main__":
    main()
