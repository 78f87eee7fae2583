"""What the commands share: one JSON document for machines, progress on standard error.

The documents are described in docs/schemas, one schema per command.
"""

from __future__ import annotations

import errno
import json
import os
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from driftquilt import __version__
from driftquilt.report.escape import clean
from driftquilt.text import json_safe

__all__ = [
    "AsJson",
    "check_place",
    "command_line",
    "print_json",
    "progress_bar",
    "say",
    "split",
    "table_console",
]

AsJson: TypeAlias = Annotated[
    bool, typer.Option("--json", help="Print one JSON document and nothing else.")
]


def print_json(command: str, document: Mapping[str, Any]) -> None:
    """The document, with the command and the version first; numbers that JSON lacks are null."""
    whole = {"command": command, "version": __version__, **document}
    typer.echo(json.dumps(json_safe(whole), allow_nan=False))


def progress_bar() -> Progress:
    """A bar on standard error with a description, how far it is and the time left.

    It is for people: where standard error is a file or a pipe there is none.
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


def table_console() -> Console:
    """For tables of what the data holds: brackets and colons in it are nothing but themselves."""
    return Console(markup=False, emoji=False, highlight=False)


def say(text: object, *, err: bool = False) -> None:
    """A line; letters in it that a terminal would obey are left out."""
    typer.echo(clean(text), err=err)


def command_line() -> str:
    """What was typed."""
    return shlex.join(["driftquilt", *sys.argv[1:]])


def split(names: str | None) -> list[str] | None:
    """Names by comma."""
    return [name.strip() for name in names.split(",") if name.strip()] if names else None


def check_place(path: Path) -> None:
    """Raise `OSError` if nothing can be written at `path`, before work is spent on what would be.

    Folders that are not there yet can be made in the nearest one that is.
    """
    place = next((folder for folder in [path, *path.absolute().parents] if folder.exists()), path)
    if place != path and not place.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(path))
    if not os.access(place, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
