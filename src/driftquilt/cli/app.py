"""The commands by name, and what becomes of an error.

    exit code   0  done
                1  it could not be done: bad input, a missing column, a damaged file, a full
                   disk; also, without a word, when the reader of the output has gone away
                2  wrong usage: an unknown command or option
              130  stopped by Ctrl-C

Results go to standard output, progress and errors to standard error.
"""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from driftquilt import __version__
from driftquilt.cli.bench import bench
from driftquilt.cli.datasets import datasets
from driftquilt.cli.demo import demo
from driftquilt.cli.predict import predict
from driftquilt.cli.report import report
from driftquilt.cli.reproduce import reproduce
from driftquilt.cli.run import run
from driftquilt.cli.select import select
from driftquilt.errors import DriftquiltError

__all__ = ["app", "main"]

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False)
for command in (select, run, predict, report, demo, datasets, reproduce, bench):
    app.command()(command)


def main() -> None:
    """Run a command; an error is a line or two and exit code 1."""
    try:
        try:
            app()
        finally:
            sys.stdout.flush()  # here, where a reader who has gone away can still be dealt with
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except DriftquiltError as error:
        _fail(str(error))
    except OSError as error:
        _fail(f"cannot read or write: {error}")


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
