"""`driftquilt report`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from driftquilt.cli.output import AsJson, print_json
from driftquilt.cli.replay_page import replay_page
from driftquilt.errors import InputError

if TYPE_CHECKING:
    from driftquilt.report.page import Page

__all__ = ["report"]


def report(
    folder: Annotated[
        Path, typer.Argument(help="What `select` or `run` wrote.", exists=True, file_okay=False)
    ],
    out: Annotated[
        Path | None, typer.Option(help="The HTML file; default: report.html in the folder.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write the report of a folder anew, from its selection.json or events.jsonl.

    Example: driftquilt report select-out
    """
    from driftquilt.report.html import write_report  # noqa: PLC0415

    page = _page(folder)
    path = str(write_report(page, out or folder / "report.html"))
    if as_json:
        told = {"title": page.title, "sentences": list(page.sentences), "files": {"report": path}}
        print_json("report", told)
    else:
        typer.echo(path)


def _page(folder: Path) -> Page:
    from driftquilt.decision.folder import WHY, read_decision  # noqa: PLC0415
    from driftquilt.decision.replay import EVENTS  # noqa: PLC0415
    from driftquilt.report.from_decision import page_of_decision  # noqa: PLC0415

    if (folder / WHY).exists():
        return page_of_decision(read_decision(folder))
    if (folder / EVENTS).exists():
        return replay_page(folder)[0]
    raise InputError(
        f"{folder} has neither {WHY} nor {EVENTS}; name a folder that `driftquilt select` or "
        "`driftquilt run` wrote"
    )
