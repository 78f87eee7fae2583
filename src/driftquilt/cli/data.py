"""DATA on the command line: files, globs or a pipe, opened with a progress bar."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from driftquilt.cli.output import progress_bar
from driftquilt.errors import InputError

if TYPE_CHECKING:
    from driftquilt.sources.files import Data

__all__ = ["DataFiles", "reading"]

DataFiles: TypeAlias = Annotated[
    list[str],
    typer.Argument(
        metavar="DATA...",
        help="CSV, Parquet, Arrow or JSON lines: paths, globs, or - for standard input.",
    ),
]


@contextmanager
def reading(paths: Sequence[str], needed: Sequence[str | None] = ()) -> Iterator[Data]:
    """The table, checked to have the columns needed."""
    from driftquilt.sources.files import open_data  # noqa: PLC0415
    from driftquilt.sources.names import suggest  # noqa: PLC0415

    with ExitStack() as stack:
        with progress_bar() as bar:
            task = bar.add_task("Reading", total=None)

            def watch(done: int, total: int) -> None:
                bar.update(task, completed=done, total=total or None)

            data = stack.enter_context(open_data(paths, watch))
        names = data.table.column_names
        for name in needed:
            if name is not None and name not in names:
                raise InputError(f"no column {name!r}; {suggest(name, names)}")
        yield data
