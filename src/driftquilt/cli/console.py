"""What commands have in common: options, checks before work begins, progress, and output.

The JSON documents are described in docs/schemas, one schema per command. Progress and notes go to
standard error.
"""

from __future__ import annotations

import errno
import json
import math
import os
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from driftquilt import __version__
from driftquilt.data.files import Data, open_data
from driftquilt.data.source import TextFormat
from driftquilt.detectors.named import BY_NAME, NEED_SETTINGS
from driftquilt.errors import InputError, MissingExtraError
from driftquilt.files import atomic_write
from driftquilt.quilt.estimator import check_parameters
from driftquilt.quilt.metrics import Metric, find_metric
from driftquilt.report.html import render
from driftquilt.report.page import Page
from driftquilt.report.svg import clean
from driftquilt.text import json_safe, suggest


def print_json(command: str, document: Mapping[str, Any]) -> None:
    """Print a document with command and version first; numbers that JSON lacks become null."""
    typer.echo(json_document(command, document))


def json_document(command: str, document: Mapping[str, Any]) -> str:
    """Return the document that `print_json` prints."""
    full = {"command": command, "version": __version__, **document}
    return json.dumps(json_safe(full), allow_nan=False)


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


def command_line(secret: str = "", shown: str = "") -> str:
    """Return what was typed, with `shown` in place of a secret."""
    words = [word.replace(secret, shown) if secret else word for word in sys.argv[1:]]
    return shlex.join(["driftquilt", *words])


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
    """Read the table with a progress bar, and check that it has the columns needed.

    One of them is never suggested for another.
    """
    with ExitStack() as stack:
        with progress_task("Reading") as watch:
            data = stack.enter_context(open_data(paths, watch, form))
        names = data.table.column_names
        for name in needed:
            if name is not None and name not in names:
                raise InputError(f"no column {name!r}; {suggest(name, names, taken=needed)}")
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
    write_whole(path, text.encode())
    return {"report": str(path)}


def write_whole(path: Path, content: bytes) -> None:
    """Write a file, completely or not at all."""
    with atomic_write(path) as file:
        file.write(content)


AsJson: TypeAlias = Annotated[
    bool, typer.Option("--json", help="Print one JSON document and nothing else.")
]
DataFiles: TypeAlias = Annotated[
    list[str],
    typer.Argument(
        metavar="DATA...",
        help="CSV, Parquet, Arrow or JSON lines: paths, globs, or - for standard input.",
    ),
]
Delimiter: TypeAlias = Annotated[
    str | None, typer.Option(help="CSV delimiter; default: detected from the header.")
]
Decimal: TypeAlias = Annotated[
    str, typer.Option(help="Decimal mark of numbers in CSV files: . or ,")
]
Encoding: TypeAlias = Annotated[
    str, typer.Option(help="Encoding of text files, such as latin-1, cp1252 or utf-16.")
]
Label: TypeAlias = Annotated[str, typer.Option(help="Column with the class to predict.")]
AnyLabel: TypeAlias = Annotated[str, typer.Option(help="Column to predict: a class or a number.")]
TaskOption: TypeAlias = Annotated[
    Literal["classes", "numbers"] | None,
    typer.Option(help="What the label holds; default: what it looks like, which is printed."),
]
Drop: TypeAlias = Annotated[
    str | None, typer.Option(help="Columns not to learn from, by comma, such as an id.")
]
MetricName: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Metric to compare by: log_loss (default), roc_auc, f1 ...; of numbers mae (default), "
        "rmse, r2, pinball ...",
    ),
]
Costs: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        metavar="TRUTH,ANSWER=COST",
        help="Cost of an answer instead of a metric, such as yes,no=5; repeat for more.",
    ),
]
ClassWeights: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        metavar="LABEL=WEIGHT",
        help="What errors on a class cost in training: balanced, or yes=5; repeat for more.",
    ),
]
Params: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--param",
        metavar="NAME=VALUE",
        help="Parameter of the model's estimator, such as max_epochs=500; repeat for more.",
    ),
]
Overwrite: TypeAlias = Annotated[
    bool, typer.Option("--overwrite", help="Replace an earlier outcome in --out.")
]
Seed: TypeAlias = Annotated[int, typer.Option(help="Random seed.", min=0)]
Engine: TypeAlias = Annotated[
    Literal["local", "processes", "ray", "auto"],
    typer.Option(help="Where to train: on this machine or a Ray cluster; same results."),
]
Address: TypeAlias = Annotated[
    str | None,
    typer.Option(help="Address of the Ray cluster: host:port, or auto for a local one."),
]


_WORDS = {"None": None, "True": True, "False": False}  # as Python writes them


def split(names: str | None) -> list[str]:
    """Return the names between commas."""
    return [name.strip() for name in (names or "").split(",") if name.strip()]


def read_scoring(metric: str | None, costs: Sequence[str] | None) -> Metric:
    """Return the metric that the options name; costs are a metric of their own."""
    if not costs:
        return find_metric(metric)
    if metric is not None:
        raise InputError("--metric and --cost both say what to compare by; give one of them")
    takes = "TRUTH,ANSWER=COST, such as yes,no=5 for answering no where yes is true"
    pairs = dict[tuple[str, str], float]()
    for text in costs:
        (truth, answer), cost = _read_labels(text, 2, "--cost", takes)
        pairs[truth, answer] = cost
    return find_metric(pairs)


def read_class_weight(texts: Sequence[str] | None) -> dict[str, float] | str | None:
    """Return the class weights that the options name, by the text of a label."""
    if not texts:
        return None
    if [*texts] == ["balanced"]:
        return "balanced"
    weights = dict[str, float]()
    for text in texts:
        takes = "balanced, or LABEL=WEIGHT, such as yes=5"
        (label,), weights[label] = _read_labels(text, 1, "--class-weight", takes)
    check_parameters({"class_weight": weights})
    return weights


def read_params(texts: Sequence[str] | None) -> dict[str, Any]:
    """Return the parameters that the options name; a value is JSON, None, True, False or text."""
    params = dict[str, Any]()
    for text in texts or ():
        name, mark, value = (part.strip() for part in text.partition("="))
        if not (name and mark and value):
            raise InputError(f"--param is {text!r}; it takes NAME=VALUE, such as max_epochs=500")
        if name in params:
            raise InputError(f"--param gives {name!r} twice; give it once")
        params[name] = _read_value(value)
    return params


def _read_value(text: str) -> Any:
    if text in _WORDS:
        return _WORDS[text]
    try:
        return json.loads(text)
    except ValueError:
        return text


def _read_labels(text: str, n_labels: int, option: str, takes: str) -> tuple[list[str], float]:
    """Return the labels before the last = of an option's value, and the number after it."""
    before, _, after = text.rpartition("=")
    labels = [label.strip() for label in (before.split(",") if n_labels > 1 else [before])]
    try:
        number = float(after)
    except ValueError:
        number = math.nan
    if len(labels) != n_labels or not all(labels) or math.isnan(number):
        raise InputError(f"{option} is {text!r}; it takes {takes}")
    return labels, number


def refuse_overwriting(path: Path, *, overwrite: bool) -> None:
    """Refuse to replace an earlier outcome, of which `path` is a file, if that is not wanted."""
    if path.exists() and not overwrite:
        raise InputError(
            f"{path.parent} holds an earlier outcome, {path.name}; add --overwrite to replace it, "
            "or name another folder with --out"
        )


def check_detector(name: str) -> None:
    """Refuse a detector that takes settings, for which there is no option."""
    if name in NEED_SETTINGS:
        raise InputError(
            f"--detector {name} needs settings, such as {NEED_SETTINGS[name]}, which only Python "
            f"can give; name one of {', '.join(BY_NAME)}"
        )


def check_engine(engine: str, address: str | None) -> None:
    """Pass the address of its cluster to Ray; refuse one that is not for Ray."""
    if address is None:
        return
    if engine not in ("ray", "auto"):
        raise InputError(f"--address belongs to --engine ray or auto, but the engine is {engine}")
    os.environ["RAY_ADDRESS"] = address


def check_writable(path: Path) -> None:
    """Raise `OSError` if nothing can be written at `path`, before work is spent.

    Missing folders can be made in the nearest one that exists.
    """
    place = next((folder for folder in [path, *path.absolute().parents] if folder.exists()), path)
    if place != path and not place.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(path))
    if not os.access(place, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
