"""The page of a folder that `driftquilt run` wrote."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from driftquilt.errors import InputError
from driftquilt.files import atomic_write

if TYPE_CHECKING:
    from driftquilt.decision.columns import ColumnFacts
    from driftquilt.decision.origin import Origin
    from driftquilt.decision.replayed import Replayed
    from driftquilt.report.page import Page

__all__ = ["ABOUT", "forget_about", "replay_page", "write_about"]

ABOUT = "run.json"


def write_about(
    folder: Path,
    origin: Origin,
    warnings: Sequence[str],
    baselines: dict[str, Any],
    columns: Sequence[ColumnFacts],
) -> None:
    """Keep what a report tells beside the events."""
    told = {
        "origin": origin.to_json(), "warnings": list(warnings), "baselines": baselines,
        "columns": [asdict(column) for column in columns],
    }  # fmt: skip
    with atomic_write(folder / ABOUT) as file:
        file.write(json.dumps(told, indent=1).encode())


def forget_about(folder: Path) -> None:
    """Remove what tells of an earlier run, its page too, so that no two runs are mixed."""
    from driftquilt.decision.folder import PAGE  # noqa: PLC0415

    for name in (ABOUT, PAGE):
        (folder / name).unlink(missing_ok=True)


def replay_page(folder: Path) -> tuple[Page, Replayed]:
    """The page, and the values behind it; beside the baselines if they were trained."""
    from driftquilt.decision.columns import ColumnFacts  # noqa: PLC0415
    from driftquilt.decision.origin import Origin  # noqa: PLC0415
    from driftquilt.decision.replayed import read_replay  # noqa: PLC0415
    from driftquilt.report.from_decision import page_of_replay  # noqa: PLC0415

    replayed, told = read_replay(folder), _read(folder / ABOUT)
    found = {
        name: {int(row): float(share) for row, share in counts.items()}
        for name, counts in told.get("baselines", {}).items()
    }
    origin = Origin.from_json(told["origin"]) if told else None
    page = page_of_replay(
        replayed,
        found,
        origin=origin,
        warnings=told.get("warnings", []),
        columns=[ColumnFacts(**column) for column in told.get("columns", [])],
    )
    return page, replayed


def _read(path: Path) -> dict[str, Any]:
    if not path.exists():
        return {}
    try:
        told: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise InputError(f"{path} is damaged: {error}; remove it or run again") from error
    return told
