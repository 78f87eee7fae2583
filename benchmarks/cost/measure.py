"""How it is measured: CPU and wall seconds, fresh processes, and facts about the machine.

CPU time is what counts on a machine that others use too.

>>> measure(lambda: sum(range(1000)), repeats=3)[0] == sum(range(1000))
True
>>> int(run_fresh("print(6 * 7)"))
42
"""

from __future__ import annotations

import os
import platform
import resource
import statistics
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TypeVar

from driftquilt import __version__
from driftquilt.core.training import Time
from driftquilt.errors import DriftquiltError
from driftquilt.quilt.method import read_clock

__all__ = ["Machine", "look_at_machine", "measure", "peak_bytes", "run_fresh"]

T = TypeVar("T")

_STATUS = Path("/proc/self/status")

_PACKAGES = ("numpy", "numba", "river", "torch")


def measure(work: Callable[[], T], repeats: int) -> tuple[T, Time]:
    """Return what the last call gave, and the medians over all calls."""
    spent = list[Time]()
    for _ in range(repeats):
        started = read_clock()
        answer = work()
        spent.append(read_clock().since(started))
    wall, cpu = (statistics.median(values) for values in zip(*spent, strict=True))
    return answer, Time(wall, cpu)


def run_fresh(code: str, *arguments: str) -> str:
    """Return what the code wrote to standard output; `arguments` are its `sys.argv[1:]`."""
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
    """Return the most memory this process has held.

    Linux hands `ru_maxrss` on from the process that started this one, so its own count is taken
    where there is one.
    """
    if _STATUS.exists():
        for line in _STATUS.read_text(encoding="utf-8").splitlines():
            if line.startswith("VmHWM:"):
                return 1024 * int(line.split()[1])
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else 1024 * most


@dataclass(frozen=True)
class Machine:
    """`load` is the mean number of busy processes in the minute before, None if unknown."""

    driftquilt: str
    python: str
    packages: dict[str, str]
    system: str
    cpu: str
    cores: int
    load: float | None


def look_at_machine() -> Machine:
    """Return the facts as they are now."""
    return Machine(
        driftquilt=__version__,
        python=platform.python_version(),
        packages={name: found for name in _PACKAGES if (found := _version(name))},
        system=f"{platform.system()} {platform.machine()}",
        cpu=_cpu_model(),
        cores=os.cpu_count() or 1,
        load=round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None,
    )


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def _cpu_model() -> str:
    facts = Path("/proc/cpuinfo")
    if facts.exists():
        for line in facts.read_text(encoding="utf-8").splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "model name":
                return value.strip()
    return platform.processor() or platform.machine()
