"""Processes that tests start: a free port for one, waiting for it, finding what it left behind."""

from __future__ import annotations

import os
import secrets
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]

#: Seconds after which a condition is given up: enough for a machine that is busy with other work.
PATIENCE = 120.0

# Below the ports that systems hand out by themselves, of which another process may take one
# between the moment it was found free and the moment it is used.
_FIRST, _LAST = 20_000, 32_000


def wait_for(
    condition: Callable[[], Any], timeout: float = PATIENCE, what: str = "the condition"
) -> Any:
    """Return what `condition` returns, as soon as it is true."""
    end = time.monotonic() + timeout
    while not (value := condition()):
        assert time.monotonic() < end, f"{what} did not hold within {timeout:g} s"
        time.sleep(0.01)
    return value


def free_port() -> int:
    """Return a port of this machine that nobody listens at."""
    while True:
        port = _FIRST + secrets.randbelow(_LAST - _FIRST)
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        return port


def find_processes(mark: str, name: str = "") -> list[int]:
    """Return live processes with `mark` in their environment and `name` in their command."""
    pids = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            marked = mark.encode() in (folder / "environ").read_bytes()
            named = name.encode() in (folder / "cmdline").read_bytes()
            ended = (folder / "stat").read_text().rpartition(")")[2].split()[0] in "ZX"
            if marked and named and not ended:
                pids.append(int(folder.name))
    return pids


def cpu_seconds(pid: int) -> float:
    """Return the time that a process has computed for; 0 if it is gone."""
    with suppress(OSError):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return 0.0


def expect_gone(mark: str, name: str = "") -> None:
    """Wait until no such process is left."""
    wait_for(lambda: not find_processes(mark, name), what=f"the end of {name or 'all processes'}")
