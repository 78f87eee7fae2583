"""Where the figures come from: the machine, its load, and the versions of what ran."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from driftquilt import __version__

__all__ = ["Machine", "look_at_machine"]

_PACKAGES = ("numpy", "numba", "river", "torch")


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
    """The facts as they are now."""
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
