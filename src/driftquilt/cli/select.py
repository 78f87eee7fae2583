"""`driftquilt select`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from driftquilt.cli.console import (
    Address,
    AsJson,
    DataFiles,
    Decimal,
    Delimiter,
    Drop,
    Encoding,
    Engine,
    Label,
    Seed,
    check_detector,
    check_engine,
    check_writable,
    command_line,
    print_json,
    progress_bar,
    progress_task,
    read_data,
    render_report,
    say,
    say_notes,
    split,
    table_console,
)
from driftquilt.data.source import TextFormat
from driftquilt.decision.cutting import Cut, CutBy, cut
from driftquilt.decision.data_check import Finding
from driftquilt.decision.deciding import decide
from driftquilt.decision.decision import (
    MODEL,
    REPORT,
    ROWS,
    SELECTION,
    Decision,
    Origin,
    unwritable_columns,
    write_decision,
)
from driftquilt.decision.measure import MethodScore
from driftquilt.quilt.classifier import QuiltClassifier
from driftquilt.quilt.explanation import percent
from driftquilt.report.page import page_of_decision
from driftquilt.report.svg import clean
from driftquilt.text import listing, plural

_MAX_ALIKE = 3  # findings of one kind in a terminal


def select(
    data: DataFiles,
    label: Label,
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
        str, typer.Option(help="Drift detector that cuts the rows if no column does; see the docs.")
    ] = "adwin",
    current: Annotated[
        str | None, typer.Option(help="Segment to train for; default: the last.")
    ] = None,
    holdout: Annotated[
        float, typer.Option(help="Share of the current segment held out to measure, below 1.")
    ] = 0.3,
    drop: Drop = None,
    seed: Seed = 0,
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
    """Decide which past segments to train on: a table, the model, and a report.

    Three models are trained and compared on held-out rows of the current segment: on the past
    that agrees with the present (Quilt), on all data, on the current segment only. Rows are in
    order of time. Without --segment-by or --time a drift detector cuts them into segments.

    Example: driftquilt select history.csv --label churned --segment-by month --out churn

    Example: driftquilt select 'log-*.parquet' --label fraud --time ts --every 30d
    """
    by, dropped = CutBy(segment_by, time, every, detector), split(drop)
    by.check(label)
    if not 0 <= holdout < 1:
        raise typer.BadParameter(f"{holdout:g} is not from 0 to below 1", param_hint="--holdout")
    form = TextFormat(delimiter, decimal, encoding)
    check_detector(detector)
    check_engine(engine, address)
    check_writable(out)
    with read_data(data, form, needed=[label, segment_by, time, *dropped]) as rows:
        with progress_task("Looking for drifts") as watch:
            segmented = cut(rows.table, label, by, drop=dropped, seed=seed, watch=watch)
        decision = _decide(segmented, label, current, holdout, seed, dropped, engine)
        notes = (*rows.notes, *segmented.notes, *decision.warnings, *_missing(segmented.table))
        origin = Origin.of(command_line(), rows.files)
        decision = replace(decision, warnings=notes, cut=segmented.description, origin=origin)
        files = _write(decision, segmented.table, out)
    if as_json:
        print_json("select", _document(decision, files))
    else:
        _print(decision, files)


def _decide(
    segmented: Cut,
    label: str,
    current: str | None,
    holdout: float,
    seed: int,
    drop: list[str],
    engine: str,
) -> Decision:
    with progress_bar() as bar:
        task = bar.add_task("Deciding", total=None)

        def watch(step: str, done: int, total: int) -> None:
            bar.update(task, description=step.capitalize(), completed=done, total=total)

        return decide(
            segmented.table,
            label,
            segmented.segments,
            current=current,
            holdout=holdout,
            seed=seed,
            drop=[*drop, *segmented.drop],
            watch=watch,
            estimator=QuiltClassifier(engine=engine),
        )


def _missing(table: Any) -> list[str]:
    names = unwritable_columns(table)
    return [f"{ROWS} lacks columns of types that Parquet lacks: {listing(names)}"] if names else []


def _write(decision: Decision, table: Any, out: Path) -> dict[str, str]:
    with progress_bar() as bar:
        bar.add_task("Writing", total=None)
        report = render_report(page_of_decision(decision))
        folder = write_decision(decision, table, out, report)
    files = {"model": MODEL, "rows": ROWS, "reasons": SELECTION}
    if report:
        files["report"] = REPORT
    return {kind: str(folder / name) for kind, name in files.items()}


def _document(decision: Decision, files: dict[str, str]) -> dict[str, Any]:
    """Return what is in selection.json, but for the curves of every epoch."""
    record = decision.to_json()
    keys = (
        "label", "classes", "current", "n_rows", "n_current", "n_held_out", "holdout", "seed",
        "cut", "sentences", "blend", "disparity_max", "past", "methods", "constant", "columns",
        "checks", "warnings", "origin",
    )  # fmt: skip
    return {key: record[key] for key in keys} | {"files": files}


def _print(decision: Decision, files: dict[str, str]) -> None:
    console = table_console()
    for line in _checks(decision.checks):
        say(line)
    console.print(_segments(decision))
    console.print(_methods(decision))
    for sentence in decision.sentences():
        say(sentence)
    say_notes(decision.warnings, err=False)
    for path in files.values():
        typer.echo(path)


def _checks(findings: Sequence[Finding]) -> Iterator[str]:
    """Yield what the data check found, of each kind a few."""
    yield "Data check:" if findings else "Data check: nothing found."
    for _, group in groupby(findings, lambda finding: finding.kind):
        alike = list(group)
        yield from (f"- {finding.sentence}." for finding in alike[:_MAX_ALIKE])
        names = [finding.column for finding in alike[_MAX_ALIKE:]]
        if names:
            yield f"- The same of {listing(names)}; the report has all."


def _segments(decision: Decision) -> Table:
    table = Table(
        title=clean(f"Past segments, for {decision.current}"),
        title_justify="left",
        caption=_explain_scores(decision.selection.disparity_max),
        caption_justify="left",
    )
    for name in ("segment", "rows", "accuracy", "disparity", "gain", "weight", ""):
        table.add_column(name, justify="left" if name in ("segment", "") else "right")
    for record, use in zip(decision.past(), decision.selection, strict=True):
        accuracy = "" if record["correct"] is None else f"{record['correct']:.3f}"
        numbers = (f"{record['disparity']:.2f}", f"{record['gain']:+.4f}", percent(use.weight))
        style = None if use.used else "dim"
        name, n_rows = clean(use.name), f"{use.n_rows:,}"
        table.add_row(name, n_rows, accuracy, *numbers, use.fate, style=style)
    return table


def _explain_scores(bound: float) -> str:
    return (
        "accuracy: share of the segment's rows that the new model gets right. disparity and gain "
        "are medians over epochs; a segment is selected in an epoch if its disparity is below "
        f"{bound:.2f} and its gain above 0. weight: what one of its rows counts in the model, "
        "where a current row counts 100%."
    )


def _methods(decision: Decision) -> Table:
    n_rows = decision.methods[0].n_rows
    title = f"Accuracy on {plural(n_rows, 'held-out row')}"
    if not n_rows:
        title = "No rows were held out: accuracy on validation rows only"
    table = Table(title=title, title_justify="left")
    for name in ("trained on", "validation", "held out", "95 % interval", "Quilt is"):
        table.add_column(name, justify="left" if name in ("trained on", "Quilt is") else "right")
    for method in decision.methods:
        table.add_row(*_method_cells(method))
    return table


def _method_cells(method: MethodScore) -> tuple[str, ...]:
    validation = f"{method.validation:.3f}"
    if method.accuracy is None:
        return method.name, validation, "", "", ""
    low, high = method.interval
    verdict = "" if method.name == "Quilt" else method.verdict
    return method.name, validation, f"{method.accuracy:.3f}", f"{low:.3f} to {high:.3f}", verdict
