"""DATA on the command line: files, globs or a pipe, opened with a progress bar.

How text files are written is told by the same three options in every command that reads DATA.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from driftquilt.cli.output import progress_bar
from driftquilt.errors import InputError
from driftquilt.text import suggest

if TYPE_CHECKING:
    from driftquilt.data.files import Data
    from driftquilt.data.source import TextFormat

__all__ = ["DataFiles", "Decimal", "Delimiter", "Encoding", "reading", "tell_notes", "text_form"]

DataFiles: TypeAlias = Annotated[
    list[str],
    typer.Argument(
        metavar="DATA...",
        help="CSV, Parquet, Arrow or JSON lines: paths, globs, or - for standard input.",
    ),
]
Delimiter: TypeAlias = Annotated[
    str | None,
    typer.Option(help="What stands between fields of a CSV file; default: found from its header."),
]
Decimal: TypeAlias = Annotated[
    str, typer.Option(help="The decimal mark of numbers in a CSV file: . or ,")
]
Encoding: TypeAlias = Annotated[
    str, typer.Option(help="Of text files, such as latin-1, cp1252 or utf-16.")
]


def text_form(delimiter: str | None, decimal: str, encoding: str) -> TextFormat:
    """The three options as one value."""
    from driftquilt.data.source import TextFormat  # noqa: PLC0415

    return TextFormat(delimiter, decimal, encoding)


def tell_notes(data: Data) -> None:
    """What the reader noted, on standard error."""
    for note in data.notes:
        typer.echo(f"Note: {note}", err=True)


@contextmanager
def reading(
    paths: Sequence[str], form: TextFormat, needed: Sequence[str | None] = ()
) -> Iterator[Data]:
    """The table, checked to have the columns needed."""
    from driftquilt.data.files import open_data  # noqa: PLC0415

    with ExitStack() as stack:
        with progress_bar() as bar:
            task = bar.add_task("Reading", total=None)

            def watch(done: int, total: int) -> None:
                bar.update(task, completed=done, total=total or None)

            data = stack.enter_context(open_data(paths, watch, form))
        names = data.table.column_names
        for name in needed:
            if name is not None and name not in names:
                raise InputError(f"no column {name!r}; {suggest(name, names)}")
        yield data
