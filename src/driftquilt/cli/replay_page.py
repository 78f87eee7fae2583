"""The page of a folder that `driftquilt run` wrote."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from driftquilt.errors import InputError

if TYPE_CHECKING:
    from driftquilt.decision.replayed import Replayed
    from driftquilt.report.page import Page

__all__ = ["BASELINES", "replay_page"]

BASELINES = "baselines.json"


def replay_page(folder: Path) -> tuple[Page, Replayed]:
    """The page, and the values behind it; beside the baselines if they were trained."""
    from driftquilt.decision.replayed import read_replay  # noqa: PLC0415
    from driftquilt.report.from_decision import page_of_replay  # noqa: PLC0415

    replayed, told = read_replay(folder), _read(folder / BASELINES)
    found = {
        name: {int(row): float(share) for row, share in counts.items()}
        for name, counts in told.get("baselines", {}).items()
    }
    return page_of_replay(replayed, found, command=told.get("command", "")), replayed


def _read(path: Path) -> dict[str, Any]:
    if not path.exists():
        return {}
    try:
        told: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise InputError(f"{path} is damaged: {error}; remove it or run again") from error
    return told
