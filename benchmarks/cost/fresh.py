"""Python code in a process of its own, so that nothing is loaded yet and memory is its own.

>>> int(run_fresh("print(6 * 7)"))
42
"""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path

from driftquilt.errors import DriftquiltError

__all__ = ["peak_bytes", "run_fresh"]

_STATUS = Path("/proc/self/status")


def run_fresh(code: str, *arguments: str) -> str:
    """What the code wrote to standard output; `arguments` are its `sys.argv[1:]`."""
    command = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
        raise DriftquiltError(
            f"a process that was to be measured ended with code {done.returncode}: {last}; if "
            "memory ran out, leave this part out with --only"
        )
    return done.stdout


def peak_bytes() -> int:
    """The most memory this process has held.

    Linux hands `ru_maxrss` on from the process that started this one, so its own count is taken
    where there is one.
    """
    if _STATUS.exists():
        for line in _STATUS.read_text(encoding="utf-8").splitlines():
            if line.startswith("VmHWM:"):
                return 1024 * int(line.split()[1])
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else 1024 * most
