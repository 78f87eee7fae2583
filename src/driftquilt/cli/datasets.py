"""`driftquilt datasets`, which loads nothing that trains."""

from __future__ import annotations

import typer
from rich.table import Table

from driftquilt.cli.console import AsJson, print_json, table_console
from driftquilt.paper.datasets import Description, describe, names


def datasets(as_json: AsJson = False) -> None:
    """List the nine streams, where they come from, and whether they are intact.

    Example: driftquilt datasets
    """
    streams = [describe(name) for name in names()]
    if as_json:
        print_json("datasets", {"datasets": [_document(stream) for stream in streams]})
        return
    table_console().print(_table(streams))
    typer.echo("\nThe synthetic streams are made in code, the real ones are at")
    for stream in streams:
        if stream.kind == "real":
            typer.echo(f"  {stream.name}: {stream.place}")


def _state(stream: Description) -> str:
    states = {True: "intact", False: "damaged", None: "not here yet"}
    return stream.problem or states[stream.is_intact]


def _document(stream: Description) -> dict[str, object]:
    counts = {
        key: getattr(stream, key) for key in ("n_rows", "n_features", "n_classes", "n_segments")
    }
    return {
        "name": stream.name, "kind": stream.kind, **counts, "state": _state(stream),
        "intact": stream.is_intact, "place": str(stream.place) if stream.kind == "real" else None,
    }  # fmt: skip


def _table(streams: list[Description]) -> Table:
    table = Table(box=None, pad_edge=False)
    for column in ("stream", "kind", "rows", "features", "classes", "segments"):
        is_number = column not in ("stream", "kind")
        table.add_column(column, no_wrap=True, justify="right" if is_number else "left")
    table.add_column("state", overflow="fold")
    for stream in streams:
        counts = (stream.n_rows, stream.n_features, stream.n_classes, stream.n_segments)
        table.add_row(stream.name, stream.kind, *map(str, counts), _state(stream))
    return table
