"""`driftquilt report`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from driftquilt.cli.options import AsJson
from driftquilt.cli.output import print_json
from driftquilt.decision.backtest import RunRecord
from driftquilt.decision.decision import REPORT, SELECTION, read_decision
from driftquilt.decision.journal import EVENTS, Replayed, read_replay
from driftquilt.errors import InputError
from driftquilt.report.html import write_report
from driftquilt.report.page import Page, page_of_decision, page_of_replay

__all__ = ["page_of_run", "report"]


def report(
    folder: Annotated[
        Path,
        typer.Argument(help="Folder written by `select` or `run`.", exists=True, file_okay=False),
    ],
    out: Annotated[
        Path | None, typer.Option(help="The HTML file; default: report.html in the folder.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write the report of a folder again, from its selection.json or events.jsonl.

    Example: driftquilt report select-out
    """
    page = _page(folder)
    path = str(write_report(page, out or folder / REPORT))
    if as_json:
        sentences = list(page.sentences)
        print_json(
            "report", {"title": page.title, "sentences": sentences, "files": {"report": path}}
        )
    else:
        typer.echo(path)


def page_of_run(replayed: Replayed, record: RunRecord) -> Page:
    """Return the page of a run, compared with the baselines if they were trained."""
    return page_of_replay(
        replayed,
        record.baselines,
        origin=record.origin,
        warnings=record.warnings,
        columns=record.columns,
    )


def _page(folder: Path) -> Page:
    if (folder / SELECTION).exists():
        return page_of_decision(read_decision(folder))
    if (folder / EVENTS).exists():
        return page_of_run(read_replay(folder), RunRecord.read(folder))
    raise InputError(
        f"{folder} has neither {SELECTION} nor {EVENTS}; name a folder that `driftquilt select` or "
        "`driftquilt run` wrote"
    )
