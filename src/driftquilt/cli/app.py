"""The commands by name, and what becomes of an error.

    exit code   0  done
                1  it could not be done: bad input, a missing column, a damaged file, a full
                   disk; also, without a word, when the reader of the output has gone away
                2  wrong usage: an unknown command or option
              130  stopped by Ctrl-C

Results go to standard output, progress and errors to standard error.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from driftquilt import __version__
from driftquilt.cli.datasets import datasets
from driftquilt.cli.demo import demo
from driftquilt.cli.export import export
from driftquilt.cli.predict import predict
from driftquilt.cli.report import report
from driftquilt.cli.reproduce import reproduce
from driftquilt.cli.run import run
from driftquilt.cli.select import select
from driftquilt.cli.serve import serve
from driftquilt.cli.token import token
from driftquilt.errors import DriftquiltError
from driftquilt.files import describe_os_error
from driftquilt.quilt.executor import has_joined_ray

__all__ = ["app", "main"]

_STOPPED = 130


class _Commands(TyperGroup):
    """Commands that Ctrl-C ends with one line; a note on it says what a command has to add."""

    def make_context(self, *given: Any, **named: Any) -> Any:
        with _stopping():
            return super().make_context(*given, **named)

    def invoke(self, ctx: Any) -> Any:
        with _stopping():
            return super().invoke(ctx)


@contextlib.contextmanager
def _stopping() -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt as stop:
        told = "; ".join(["stopped", *getattr(stop, "__notes__", [])])
        typer.echo(f"driftquilt: {told}", err=True)
        if has_joined_ray():  # which may crash at a regular end, amid its works (2.60)
            os._exit(_STOPPED)  # what it started here ends with this process
        raise typer.Exit(_STOPPED) from stop


app = typer.Typer(cls=_Commands, no_args_is_help=True, pretty_exceptions_enable=False)
for command in (
    select, run, predict, export, report, demo, datasets, reproduce, serve, token,
):  # fmt: skip
    app.command()(command)


def main() -> None:
    """Run a command; an error is a line or two and exit code 1."""
    try:
        try:
            app()
        finally:
            sys.stdout.flush()  # here, where a reader who has gone away can still be dealt with
    except BrokenPipeError:
        _let_go_of_output()
        sys.exit(1)
    except DriftquiltError as error:
        _fail(str(error))
    except OSError as error:
        _let_go_of_output()
        where = "" if error.filename is None else f"{error.filename}: "
        _fail(f"cannot read or write: {where}{describe_os_error(error)}")


def _let_go_of_output() -> None:
    """What standard output cannot take goes nowhere, so that it does not fail again at the end."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _fail(message: str) -> None:
    typer.echo(f"driftquilt: {message}", err=True)
    sys.exit(1)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option("--version", help="Print the version.", callback=_show_version, is_eager=True),
    ] = False,
) -> None:
    """Concept drift: choose which past data to retrain on."""
