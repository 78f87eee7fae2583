"""Workers that are killed; a warm process starts them, as `tests.store.crash.zygote` describes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import IO, NamedTuple, Self

ROOT = Path(__file__).parents[1]


class Killed(NamedTuple):
    """What a worker said before it died, and whether it had come to its end."""

    said: list[str]
    done: bool


class Zygote:
    """Starts workers of a module, and kills them."""

    def __init__(self, module: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", module],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
        )

    @property
    def pipes(self) -> tuple[IO[str], IO[str]]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        return self.process.stdin, self.process.stdout

    def kill(self, folder: Path, seed: float, *, n_words: int, seconds: float) -> Killed:
        """Kill a worker so long after it has said so many things, or "done"."""
        orders, answers = self.pipes
        orders.write(f"{folder} {seed}\n")
        word, pid = answers.readline().split()
        assert word == "pid"
        said: list[str] = []
        while len(said) < n_words and "done" not in said:
            said.append(answers.readline().strip())
        time.sleep(seconds)
        os.kill(int(pid), signal.SIGKILL)
        orders.write("reap\n")
        while not (line := answers.readline()).startswith("dead"):
            said.append(line.strip())
        done = "done" in said
        assert line == f"dead {-signal.SIGKILL}\n" or done  # else it fell, and said why
        return Killed([word for word in said if word != "done"], done)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for pipe in self.pipes:
            pipe.close()
        self.process.wait(timeout=30)
