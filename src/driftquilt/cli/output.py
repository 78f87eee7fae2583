"""What commands print and write: one JSON document, tables, progress, and the report.

The documents are described in docs/schemas, one schema per command. Progress and notes go to
standard error.
"""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from driftquilt import __version__
from driftquilt.data.files import Data, open_data
from driftquilt.data.source import TextFormat
from driftquilt.errors import InputError, MissingExtraError
from driftquilt.files import atomic_write
from driftquilt.report.html import render
from driftquilt.report.page import Page
from driftquilt.report.svg import clean
from driftquilt.text import json_safe, suggest

__all__ = [
    "command_line",
    "print_json",
    "progress_bar",
    "progress_task",
    "read_data",
    "render_report",
    "say",
    "say_notes",
    "table_console",
    "write_report",
]


def print_json(command: str, document: Mapping[str, Any]) -> None:
    """Print a document with command and version first; numbers that JSON lacks become null."""
    full = {"command": command, "version": __version__, **document}
    typer.echo(json.dumps(json_safe(full), allow_nan=False))


def say(text: object, *, err: bool = False) -> None:
    """Print a line without control characters, which a terminal would obey."""
    typer.echo(clean(text), err=err)


def say_notes(notes: Sequence[str], *, err: bool = True) -> None:
    """Print notes."""
    for note in notes:
        say(f"Note: {note}", err=err)


def table_console() -> Console:
    """Return a console for tables of data, in which brackets and colons mean nothing special."""
    return Console(markup=False, emoji=False, highlight=False)


def command_line() -> str:
    """Return what was typed."""
    return shlex.join(["driftquilt", *sys.argv[1:]])


def progress_bar() -> Progress:
    """Return a bar on standard error with a description, the progress and the time left.

    It is for people: if standard error is a file or a pipe there is none.
    """
    console = Console(stderr=True)
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )


@contextmanager
def progress_task(description: str) -> Iterator[Callable[[int, int], None]]:
    """Show a bar, and yield the function that moves it: `(done, total)`, 0 for an unknown total."""
    with progress_bar() as bar:
        task = bar.add_task(description, total=None)

        def watch(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total or None)

        yield watch


@contextmanager
def read_data(
    paths: Sequence[str], form: TextFormat, needed: Sequence[str | None] = ()
) -> Iterator[Data]:
    """Read the table with a progress bar, and check that it has the columns needed."""
    with ExitStack() as stack:
        with progress_task("Reading") as watch:
            data = stack.enter_context(open_data(paths, watch, form))
        names = data.table.column_names
        for name in needed:
            if name is not None and name not in names:
                raise InputError(f"no column {name!r}; {suggest(name, names)}")
        yield data


def render_report(page: Page) -> str | None:
    """Return the report as HTML; without the extra print a hint and return None."""
    try:
        return render(page)
    except MissingExtraError as error:
        typer.echo(f"no report was written: {error}", err=True)
        return None


def write_report(page: Page, path: Path) -> dict[str, str]:
    """Write the report, or remove an earlier one; return its path by its kind, if there is one."""
    text = render_report(page)
    if text is None:
        path.unlink(missing_ok=True)
        return {}
    with atomic_write(path) as file:
        file.write(text.encode())
    return {"report": str(path)}
