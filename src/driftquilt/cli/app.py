"""The commands by name, and how errors end the program.

    exit code   0  success
                1  failure: bad input, a missing column, a damaged file, a full disk; also,
                   silently, on a broken pipe
                2  wrong usage: an unknown command or option
                3  a webhook was not delivered; everything else was done
         10 to 13  the advice of `select --exit-code`
              130  stopped by Ctrl-C

Results go to standard output, progress and errors to standard error. The module of a command is
imported when the command is run, and only then: it may import what it likes at the top.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from driftquilt import __version__
from driftquilt.errors import DriftquiltError
from driftquilt.files import describe_os_error

#: What each command does, as the first line of its docstring says; `--help` loads no command.
COMMANDS = {
    "select": "Decide which past segments to train on: a table, the model, and a report.",
    "run": "Replay a file as a stream: predict every row, then learn it, and find drifts.",
    "predict": "Predict every row of a file: the most probable label, and all probabilities.",
    "export": "Write a model as ONNX, for runtimes without driftquilt: columns in, answers out.",
    "report": "Write the report of a folder again, from its selection.json or events.jsonl.",
    "demo": "Follow a drifting stream with Quilt, all data, and the current segment only.",
    "datasets": "List the nine streams, where they come from, and whether they are intact.",
    "reproduce": "Run the paper's evaluation and write its tables and figures, theirs beside ours.",
    "serve": "Serve streams over HTTP: predict, learn, adapt, and a page to watch them.",
    "token": "Create, list and revoke the tokens that callers of the service show.",
}
#: Where a command is, if not in the module of its name.
_MODULES = {"export": "predict", "report": "run", "token": "serve"}
_MODULES |= {"demo": "paper", "reproduce": "paper"}
_STOPPED = 130


def load_command(name: str) -> Any:
    """Import a command, and return it as typer's."""
    module = import_module(f"driftquilt.cli.{_MODULES.get(name, name)}")
    single = typer.Typer(add_completion=False)
    single.command(name)(getattr(module, name))
    return typer.main.get_command(single)


class _Commands(TyperGroup):
    """Commands that are loaded when they are run, and that Ctrl-C ends with one line.

    A note on the `KeyboardInterrupt` is what a command has to add.
    """

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = {name: TyperCommand(name, help=text) for name, text in COMMANDS.items()}

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, command, rest = super().resolve_command(ctx, args)
        return name, load_command(name) if name and command else command, rest

    def make_context(self, *args: Any, **settings: Any) -> Any:
        with _report_stop():
            return super().make_context(*args, **settings)

    def invoke(self, ctx: Any) -> Any:
        with _report_stop():
            return super().invoke(ctx)


@contextlib.contextmanager
def _report_stop() -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt as stop:
        message = "; ".join(["stopped", *getattr(stop, "__notes__", [])])
        typer.echo(f"driftquilt: {message}", err=True)
        ray = sys.modules.get("ray")
        if ray is not None and ray.is_initialized():  # a regular exit may crash amid tasks (2.60)
            os._exit(_STOPPED)  # what it started here ends with this process
        raise typer.Exit(_STOPPED) from stop


app = typer.Typer(cls=_Commands, no_args_is_help=True, pretty_exceptions_enable=False)


def main() -> None:
    """Run a command; an error is a line or two and exit code 1."""
    try:
        try:
            app()
        finally:
            sys.stdout.flush()  # here, where a broken pipe can still be handled
    except BrokenPipeError:
        _discard_output()
        sys.exit(1)
    except DriftquiltError as error:
        _fail(str(error))
    except OSError as error:
        _discard_output()
        where = "" if error.filename is None else f"{error.filename}: "
        _fail(f"cannot read or write: {where}{describe_os_error(error)}")


def _discard_output() -> None:
    """Discard what standard output cannot take, so that it does not fail again at the end."""
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
