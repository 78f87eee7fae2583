"""`driftquilt datasets`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer
from rich.table import Table

from driftquilt.cli.output import AsJson, print_json, table_console

if TYPE_CHECKING:
    from driftquilt.paper.datasets import Description

__all__ = ["datasets"]


def datasets(as_json: AsJson = False) -> None:
    """List the nine streams, where they come from, and whether they are intact.

    Example: driftquilt datasets
    """
    from driftquilt.paper.datasets import describe, names  # noqa: PLC0415

    told = [describe(name) for name in names()]
    if as_json:
        print_json("datasets", {"datasets": [_document(one) for one in told]})
        return
    table_console().print(_table(told))
    typer.echo("\nThe synthetic streams are made in code, the real ones are at")
    for one in told:
        if one.kind == "real":
            typer.echo(f"  {one.name}: {one.place}")


def _state(told: Description) -> str:
    states = {True: "intact", False: "damaged", None: "not here yet"}
    return told.problem or states[told.is_intact]


def _document(told: Description) -> dict[str, object]:
    counts = {
        key: getattr(told, key) for key in ("n_rows", "n_features", "n_classes", "n_segments")
    }
    return {
        "name": told.name, "kind": told.kind, **counts, "state": _state(told),
        "intact": told.is_intact, "place": str(told.place) if told.kind == "real" else None,
    }  # fmt: skip


def _table(told: list[Description]) -> Table:
    table = Table(box=None, pad_edge=False)
    for column in ("stream", "kind", "rows", "features", "classes", "segments"):
        is_number = column not in ("stream", "kind")
        table.add_column(column, no_wrap=True, justify="right" if is_number else "left")
    table.add_column("state", overflow="fold")
    for one in told:
        counts = (one.n_rows, one.n_features, one.n_classes, one.n_segments)
        table.add_row(one.name, one.kind, *map(str, counts), _state(one))
    return table
