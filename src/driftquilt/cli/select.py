"""`driftquilt select`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer
from rich.table import Table

from driftquilt.cli.data import DataFiles, Decimal, Delimiter, Encoding, reading, text_form
from driftquilt.cli.detector import check_detector
from driftquilt.cli.engine import Address, Engine, check_engine
from driftquilt.cli.output import (
    AsJson,
    check_place,
    command_line,
    print_json,
    progress_bar,
    say,
    split,
    table_console,
)
from driftquilt.cli.page import render_page
from driftquilt.errors import InputError
from driftquilt.report.escape import clean
from driftquilt.text import listing, plural

if TYPE_CHECKING:
    from driftquilt.decision.values import Decision, Method

__all__ = ["select"]


def select(
    data: DataFiles,
    label: Annotated[str, typer.Option(help="Column with the class to predict.")],
    segment_by: Annotated[
        str | None, typer.Option(help="Column with the segment, such as the month.")
    ] = None,
    time: Annotated[
        str | None, typer.Option(help="Column with a date or time; cut into spans of --every.")
    ] = None,
    every: Annotated[
        str | None, typer.Option(help="Length of a span: 30d, 12h, 15min, 1w, 1mo, 1q, 1y.")
    ] = None,
    detector: Annotated[
        str, typer.Option(help="What cuts the rows where no column does; see the docs.")
    ] = "adwin",
    current: Annotated[
        str | None, typer.Option(help="Segment to train for; default: the last.")
    ] = None,
    holdout: Annotated[
        float, typer.Option(help="Share of the current segment kept to measure with, below 1.")
    ] = 0.3,
    drop: Annotated[
        str | None, typer.Option(help="Columns not to learn from, by comma, such as an id.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Of everything random.", min=0)] = 0,
    out: Annotated[
        Path, typer.Option(help="Folder for model, rows, reasons and report.", file_okay=False)
    ] = Path("select-out"),
    delimiter: Delimiter = None,
    decimal: Decimal = ".",
    encoding: Encoding = "utf-8",
    engine: Engine = "local",
    address: Address = None,
    as_json: AsJson = False,
) -> None:
    """Decide which past segments to train on: a table, the model, and a report to look at.

    Three models are trained and asked about rows of the current segment that none has seen: on
    the past that agrees with the present (Quilt), on all data, on the current segment only.
    Rows stand in order of time. Without --segment-by or --time a drift detector cuts them.

    Example: driftquilt select history.csv --label churned --segment-by month --out churn

    Example: driftquilt select 'log-*.parquet' --label fraud --time ts --every 30d
    """
    from driftquilt.decision.origin import trace  # noqa: PLC0415

    _check_options(label, segment_by, time, every)
    if not 0 <= holdout < 1:
        raise typer.BadParameter(f"{holdout:g} is not from 0 to below 1", param_hint="--holdout")
    dropped = split(drop) or []
    named = [label, segment_by, time, *dropped]
    form = text_form(delimiter, decimal, encoding)
    check_detector(detector)
    check_engine(engine, address)
    check_place(out)
    with reading(data, form, needed=named) as rows:
        cut = _cut(rows.table, _How(label, segment_by, time, every, detector, seed, dropped))
        decision = _decide(cut, label, current, holdout, seed, [*dropped, *cut.drop], engine)
        noted = (*rows.notes, *cut.notes, *decision.warnings, *_unwritten(cut.table))
        origin = trace(command_line(), data)
        decision = replace(decision, warnings=noted, cut=cut.words, origin=origin)
        files = _write(decision, cut, out)
    if as_json:
        print_json("select", _document(decision, files))
        return
    console = table_console()
    console.print(_segments(decision))
    console.print(_methods(decision))
    for sentence in decision.sentences():
        say(sentence)
    for note in decision.warnings:
        say(f"Note: {note}")
    for path in files.values():
        typer.echo(path)


class _How(NamedTuple):
    """How to cut."""

    label: str
    segment_by: str | None
    time: str | None
    every: str | None
    detector: str
    seed: int
    drop: list[str]


class _Cut(NamedTuple):
    """The table in order, the segment of each row, what segments are, the column they came from."""

    table: Any
    segments: Any
    words: str
    drop: list[str]
    notes: list[str]


def _check_options(label: str, segment_by: str | None, time: str | None, every: str | None) -> None:
    if label in (segment_by, time):
        raise InputError(f"{label!r} is the label; segments are cut by another column")
    if segment_by and time:
        raise InputError(
            f"got --segment-by {segment_by} and --time {time}; give one of them, or none to let a "
            "detector cut the rows"
        )
    if bool(time) != bool(every):
        raise InputError("--time and --every belong together, as in --time ts --every 30d")
    if every:
        from driftquilt.decision.spans import Span  # noqa: PLC0415

        Span.parse(every)


def _cut(table: Any, how: _How) -> _Cut:
    from driftquilt.decision.cutting import (  # noqa: PLC0415
        by_column,
        by_detector,
        by_time,
        sort_by_time,
    )

    if how.segment_by:
        words = f"the values of the column {how.segment_by!r}"
        return _Cut(table, by_column(table, how.segment_by), words, [how.segment_by], [])
    if how.time and how.every:
        ordered = sort_by_time(table, how.time)
        sorted_ = f"the rows were not in order of {how.time!r} and have been sorted"
        notes = [] if ordered is table else [sorted_]
        words = f"spans of {how.every} of the column {how.time!r}"
        return _Cut(ordered, by_time(ordered, how.time, how.every), words, [how.time], notes)
    with progress_bar() as bar:
        task = bar.add_task("Looking for drifts", total=table.num_rows)

        def watch(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        segments = by_detector(
            table, how.label, how.detector, drop=how.drop, seed=how.seed, watch=watch
        )
    words = f"the rows from drift to drift, as {how.detector} finds them"
    return _Cut(table, segments, words, [], [])


def _decide(
    cut: _Cut,
    label: str,
    current: str | None,
    holdout: float,
    seed: int,
    drop: list[str],
    engine: str,
) -> Decision:
    from driftquilt.decision.decide import decide  # noqa: PLC0415
    from driftquilt.quilt.classifier import QuiltClassifier  # noqa: PLC0415

    with progress_bar() as bar:
        task = bar.add_task("Deciding", total=None)

        def watch(step: str, done: int, total: int) -> None:
            bar.update(task, description=step.capitalize(), completed=done, total=total)

        return decide(
            cut.table,
            label,
            cut.segments,
            current=current,
            holdout=holdout,
            seed=seed,
            drop=drop,
            watch=watch,
            estimator=QuiltClassifier(engine=engine),
        )


def _unwritten(table: Any) -> list[str]:
    from driftquilt.decision.folder import ROWS, unwritten  # noqa: PLC0415

    names = unwritten(table)
    return (
        [f"{ROWS} lacks columns of kinds that Parquet has not: {listing(names)}"] if names else []
    )


def _write(decision: Decision, cut: _Cut, out: Path) -> dict[str, str]:
    from driftquilt.decision.folder import MODEL, PAGE, ROWS, WHY, write_decision  # noqa: PLC0415
    from driftquilt.report.from_decision import page_of_decision  # noqa: PLC0415

    with progress_bar() as bar:
        bar.add_task("Writing", total=None)
        page = render_page(page_of_decision(decision))
        folder = write_decision(decision, cut.table, cut.segments, out, page)
    files = {"model": MODEL, "rows": ROWS, "reasons": WHY} | ({"report": PAGE} if page else {})
    return {kind: str(folder / name) for kind, name in files.items()}


def _document(decision: Decision, files: dict[str, str]) -> dict[str, Any]:
    """What is in selection.json, but for the curves of every epoch."""
    told = decision.to_json()
    keys = (
        "label", "classes", "current", "n_rows", "n_current", "n_held_out", "holdout", "seed",
        "cut", "sentences", "disparity_max", "past", "methods", "constant", "columns",
        "warnings", "origin",
    )  # fmt: skip
    return {key: told[key] for key in keys} | {"files": files}


def _segments(decision: Decision) -> Table:
    from driftquilt.quilt.explanation import percent  # noqa: PLC0415

    table = Table(
        title=clean(f"Past segments, for {decision.current}"),
        title_justify="left",
        caption=_told_of_scores(decision.selection.disparity_max),
        caption_justify="left",
    )
    for name in ("segment", "rows", "right", "disparity", "gain", "epochs", ""):
        table.add_column(name, justify="left" if name in ("segment", "") else "right")
    for line, use in zip(decision.past(), decision.selection, strict=True):
        right = "" if line["correct"] is None else f"{line['correct']:.3f}"
        numbers = (f"{line['disparity']:.2f}", f"{line['gain']:+.4f}", percent(line["share"]))
        style = None if use.kept else "dim"
        name, n_rows = clean(use.name), f"{use.n_rows:,}"
        table.add_row(name, n_rows, right, *numbers, use.fate, style=style)
    return table


def _told_of_scores(bound: float) -> str:
    return (
        "right: share of its rows that the model has right. disparity, gain: medians over epochs; "
        f"an epoch uses what is below {bound:.2f} (the bound) and above 0 in that very epoch. "
        "epochs: share that used it."
    )


def _methods(decision: Decision) -> Table:
    asked = decision.methods[0].n_rows
    title = f"Accuracy on {plural(asked, 'row')} that no model has seen"
    if not asked:
        title = "No rows were held out: accuracy on validation rows alone"
    table = Table(title=title, title_justify="left")
    for name in ("trained on", "validation", "held out", "95 % interval", "Quilt is"):
        table.add_column(name, justify="left" if name in ("trained on", "Quilt is") else "right")
    for method in decision.methods:
        table.add_row(*_method_cells(method))
    return table


def _method_cells(method: Method) -> tuple[str, ...]:
    validation = f"{method.validation:.3f}"
    if method.accuracy is None:
        return method.name, validation, "", "", ""
    low, high = method.interval
    verdict = "" if method.name == "Quilt" else method.verdict
    return method.name, validation, f"{method.accuracy:.3f}", f"{low:.3f} to {high:.3f}", verdict
