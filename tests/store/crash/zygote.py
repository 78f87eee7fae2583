"""A warm process that forks workers to be killed, because starting Python anew takes a second.

It reads lines "folder seed" and forks a worker for each. The worker writes its pid, then a line
for everything that the store has acknowledged. At the line "reap" the zygote waits until the
worker has died, and writes "dead" and how. All of it goes through one pipe, so nothing comes
after that, and a pid means the worker until then.

    python -m tests.store.crash.zygote
"""

from __future__ import annotations

import os
import sys
import traceback
from pathlib import Path
from random import Random

from driftquilt.store.disk import DiskStore
from tests.store.crash.work import do_something, look, rows


def work(folder: Path, rng: Random) -> None:
    """Work for ever, in groups or not, and say what is durable after every call."""
    groups = rng.random() < 0.5
    pace = {"commit_rows": 25, "commit_delay": 0.002} if groups else {}
    with DiskStore(folder, **pace) as store:  # type: ignore[arg-type]
        while True:
            say(*look(store))
            do_something(store, rng)


def say(*words: object) -> None:
    """One line in one write, which a kill cannot tear."""
    os.write(1, (" ".join(map(str, words)) + "\n").encode())


def start(folder: str, seed: str) -> int:
    pid = os.fork()
    if pid:
        return pid
    try:
        say("pid", os.getpid())
        work(Path(folder), Random(seed))  # noqa: S311
    except BaseException:
        traceback.print_exc()
        raise
    finally:
        os._exit(1)


def main() -> None:
    for first in (0, 40):  # whatever is loaded at the first batch is loaded now
        rows(first, 1).serialize()
    while order := sys.stdin.readline().split():
        pid = start(*order)
        sys.stdin.readline()
        _, status = os.waitpid(pid, 0)
        say("dead", os.waitstatus_to_exitcode(status))


if __name__ == "__main__":
    main()
