"""`driftquilt select`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.table import Table

from driftquilt.cli.console import (
    Address,
    AnyLabel,
    AsJson,
    ClassWeights,
    Costs,
    DataFiles,
    Decimal,
    Delimiter,
    Drop,
    Encoding,
    Engine,
    MetricName,
    Overwrite,
    Params,
    Seed,
    TaskOption,
    check_detector,
    check_engine,
    check_writable,
    command_line,
    json_document,
    progress_bar,
    progress_task,
    read_class_weight,
    read_data,
    read_params,
    read_scoring,
    refuse_overwriting,
    render_report,
    say,
    say_notes,
    split,
    table_console,
)
from driftquilt.cli.webhook import UNDELIVERED, Webhook, WebhookError, without_query
from driftquilt.data.source import TextFormat
from driftquilt.decision.advice import Action
from driftquilt.decision.cutting import CutBy, cut
from driftquilt.decision.data_check import Finding
from driftquilt.decision.deciding import Watch, decide
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
from driftquilt.decision.measure import QUILT, MethodScore
from driftquilt.decision.task import NUMBERS, TASKS
from driftquilt.quilt.explanation import EXPLAINED_SETS, percent
from driftquilt.quilt.metrics import Scoring, figure, find_metric, metric_words, shown_value
from driftquilt.quilt.model_file import NET
from driftquilt.quilt.models import check_model, check_params
from driftquilt.report.page import page_of_decision
from driftquilt.report.svg import clean, number
from driftquilt.text import listing, plural

#: The exit codes of --exit-code; errors have 1 and 2, a webhook that failed 3.
ADVICE_CODES: dict[Action, int] = {
    "promote": 0,
    "keep-incumbent": 10,
    "use-all": 11,
    "use-current": 12,
    "collect-more": 13,
    "check-data": 14,
}
_MAX_ALIKE = 3  # findings of one kind in a terminal


def select(
    data: DataFiles,
    label: AnyLabel,
    segment_by: Annotated[
        str | None, typer.Option(help="Column with the segment, such as the month.")
    ] = None,
    time: Annotated[
        str | None, typer.Option(help="Column with a date or time; cut into spans of --every.")
    ] = None,
    every: Annotated[
        str | None, typer.Option(help="Length of a span: 30d, 12h, 15min, 1w, 1mo, 1q, 1y.")
    ] = None,
    task: TaskOption = None,
    detector: Annotated[
        str,
        typer.Option(
            help="Drift detector that cuts the rows if no column does; not experts, which compares "
            "models that `run` trains on its way."
        ),
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
    model: Annotated[
        Literal["net", "lightgbm", "xgboost", "catboost", "hgb", "auto"],
        typer.Option(help="What to train; auto is the better of net and hgb on held-out rows."),
    ] = "net",
    param: Params = None,
    engine: Engine = "local",
    address: Address = None,
    metric: MetricName = None,
    cost: Costs = None,
    class_weight: ClassWeights = None,
    incumbent: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="Column with today's predictions: labels, or probabilities of the second class.",
        ),
    ] = None,
    accept_data: Annotated[
        bool,
        typer.Option("--accept-data", help="Advise in spite of what the data check found."),
    ] = False,
    exit_code: Annotated[
        bool, typer.Option("--exit-code", help="Exit with a code for the advice; 0 is promote.")
    ] = False,
    overwrite: Overwrite = False,
    dated: Annotated[
        bool, typer.Option("--dated", help="Write to a new folder in --out, named by the time.")
    ] = False,
    webhook: Annotated[
        str | None, typer.Option(metavar="URL", help="Address to send the JSON document to.")
    ] = None,
    webhook_secret_env: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Environment variable with the secret that signs it."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Decide which past segments to train on: a table, the model, and a report.

    The label is a class or a number; which of them is found out, unless --task says so. Three
    models are trained and compared on held-out rows of the current segment: on the past that
    agrees with the present (Quilt), on all data, on the current segment only. Rows are in order
    of time. Without --segment-by or --time a drift detector cuts them into segments. With
    --incumbent, today's model is compared as well.

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
    check_model(model)
    params = read_params(param)
    check_params(model, params, is_regression=None if task is None else task == NUMBERS.name)
    scoring, weights = _read_scoring(metric, cost), read_class_weight(class_weight)
    hook = None if webhook is None else Webhook.of(webhook, webhook_secret_env)
    out = out / datetime.now(UTC).strftime("%Y-%m-%dT%H-%M-%S") if dated else out
    check_writable(out)
    refuse_overwriting(out / SELECTION, overwrite=overwrite)
    with read_data(data, form, needed=[label, segment_by, time, incumbent, *dropped]) as rows:
        with progress_task("Looking for drifts") as watch:
            unused = [*dropped, *([] if incumbent is None else [incumbent])]
            segmented = cut(rows.table, label, by, drop=unused, seed=seed, watch=watch)
        with _steps() as watch_steps:
            decision = decide(
                segmented.table,
                label,
                segmented.segments,
                current=current,
                holdout=holdout,
                seed=seed,
                drop=[*dropped, *segmented.drop],
                watch=watch_steps,
                model=model,
                scoring=scoring,
                incumbent=incumbent,
                task=task,
                accept_data=accept_data,
                params=params,
                engine=engine,
                class_weight=weights,
            )
        notes = (*rows.notes, *segmented.notes, *decision.warnings, *_missing(segmented.table))
        # The query of a URL may have a token in it.
        command = command_line(webhook, without_query(webhook)) if webhook else command_line()
        origin = Origin.of(command, rows.files)
        decision = replace(decision, warnings=notes, cut=segmented.description, origin=origin)
        files = _write(decision, segmented.table, out)
    document = json_document("select", _document(decision, files))
    if as_json:
        typer.echo(document)
    else:
        _print(decision, files)
    _finish(decision, document, hook, exit_code=exit_code)


def _read_scoring(metric: str | None, cost: Sequence[str] | None) -> Scoring | None:
    """Return the metric of the options, which is looked up when the task is known."""
    if cost or metric is None:
        return read_scoring(metric, cost) if cost else None
    if not NUMBERS.has(metric):
        find_metric(metric)  # refuses an unknown one before a file is read
    return metric


def _finish(decision: Decision, document: str, hook: Webhook | None, *, exit_code: bool) -> None:
    """Send the document, and end with the exit code for the advice, if that is wanted."""
    if hook is not None:
        try:
            hook.send(document)
        except WebhookError as error:
            say(f"driftquilt: {error}", err=True)
            raise typer.Exit(UNDELIVERED) from error
    if exit_code:
        raise typer.Exit(ADVICE_CODES[decision.advice.action])


@contextmanager
def _steps() -> Iterator[Watch]:
    """Show the steps of a decision."""
    with progress_bar() as bar:
        task = bar.add_task("Deciding", total=None)

        def watch(step: str, done: int, total: int) -> None:
            bar.update(task, description=step.capitalize(), completed=done, total=total)

        yield watch


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
        "label", "task", "task_reason", "classes", "current", "n_rows", "n_current", "n_held_out",
        "holdout", "seed", "cut", "advice", "metric", "incumbent", "threshold", "kind", "choice",
        "sentences", "blend", "disparity_max", "sets", "past", "methods", "constant", "columns",
        "checks", "accept_data", "warnings", "origin",
    )  # fmt: skip
    return {key: record[key] for key in keys} | {"files": files}


def _print(decision: Decision, files: dict[str, str]) -> None:
    console = table_console()
    say(f"Task: {decision.task}. {decision.task_reason}.")
    for line in _checks(decision.checks):
        say(line)
    console.print(_segments(decision))
    if len(decision.selection.sets) > 1:
        console.print(_sets(decision))
    console.print(_methods(decision))
    used, gained, reason = decision.sentences()
    for line in (used, gained, f"Advice: {decision.advice.action}. {reason}"):
        say(line)
    say_notes(decision.warnings, err=False)
    for path in files.values():
        typer.echo(path)


def _checks(findings: Sequence[Finding] | None) -> Iterator[str]:
    """Yield what the data check found, of each kind a few."""
    if findings is None:
        return
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
        caption=_explain_scores(decision),
        caption_justify="left",
    )
    measured = TASKS[decision.task].of_segment
    scores = ("rank",) if decision.selection.sets else ("disparity", "gain")
    for name in ("segment", "rows", measured, *scores, "weight", ""):
        table.add_column(name, justify="left" if name in ("segment", "") else "right")
    for record, use in zip(decision.past(), decision.selection, strict=True):
        of_past = decision.of_past.get(str(use.name))
        value = "" if of_past is None else figure(TASKS[decision.task].metric_of_segment, of_past)
        numbers = [f"{record['disparity']:.2f}", f"{record['gain']:+.4f}"]
        if use.rank is not None:
            numbers = [str(use.rank)]
        style = None if use.used else "dim"
        cells = (clean(use.name), f"{use.n_rows:,}", value, *numbers, percent(use.weight))
        table.add_row(*cells, use.fate, style=style)
    return table


def _sets(decision: Decision) -> Table:
    """Return the training sets that a model other than the net was tried on."""
    selection = decision.selection
    table = Table(
        title=f"Training sets that {decision.kind} was tried on",
        title_justify="left",
        caption=EXPLAINED_SETS,
        caption_justify="left",
    )
    table.add_column("trained on", overflow="fold")
    for name in ("rows", metric_words(selection.metric), "judged by", "share"):
        table.add_column(name, justify="right")
    for one in selection.sets:
        score = figure(selection.metric, shown_value(selection.metric, one.score))
        cells = (clean(selection.name_set(one)), f"{one.n_rows:,}", score, f"{one.n_judged:,}")
        table.add_row(*cells, percent(one.share), style=None if one.share else "dim")
    return table


def _explain_scores(decision: Decision) -> str:
    weight = "weight: how much of the model was trained on it."
    if decision.selection.sets:
        rank = "rank: the order in which the net would use the segments, 1 being the best."
        return f"{TASKS[decision.task].explains} {rank} {weight}"
    return (
        f"{TASKS[decision.task].explains} disparity and gain are medians over epochs; a segment is "
        f"selected in an epoch if its disparity is below {decision.selection.disparity_max:.2f} "
        f"and its gain above 0. {weight}"
    )


def _methods(decision: Decision) -> Table:
    """Return the methods: the metric that decides, its interval, and then other figures."""
    words, first = metric_words(decision.metric), decision.methods[0]
    if not first.n_rows:
        return _validation(decision)
    kind = "" if decision.kind == NET else f" ({decision.kind})"
    table = Table(title=f"{_capital(words)} on {plural(first.n_rows, 'held-out row')}{kind}")
    table.title_justify = "left"
    others = [metric_words(metric) for metric in first.figures if metric != decision.metric]
    heads = ["method", words, "95 % interval", *others, "Quilt is"]
    widest = max(len(word) for m in decision.methods[1:] for word in m.verdict.split())
    for head in heads:
        is_text = head in ("method", "Quilt is")
        width = widest if head == "Quilt is" else None
        table.add_column(head, justify="left" if is_text else "right", min_width=width)
    for method in decision.methods:
        figures = {metric_words(m): _cell(m, value) for m, value in method.figures.items()}
        cells = {"method": method.name, **figures, **_score_cells(method, words)}
        table.add_row(*(cells.get(head, "") for head in heads))
    return table


def _validation(decision: Decision) -> Table:
    metric = TASKS[decision.task].metric_of_segment
    title = f"No rows were held out: {metric_words(metric)} on validation rows only"
    table = Table("method", title=title, title_justify="left")
    table.add_column("validation", justify="right")
    for method in decision.methods:
        table.add_row(method.name, _cell(metric, method.validation))
    return table


def _score_cells(method: MethodScore, words: str) -> dict[str, str]:
    score, compared = method.shown_score, method.comparison
    ends = [_cell(score.metric, end) for end in score.interval or ()]
    other = f" by {metric_words(compared.metric)}" if compared.metric != score.metric else ""
    return {
        words: _cell(score.metric, score.value),
        "95 % interval": " to ".join(ends),
        "Quilt is": "" if method.name == QUILT else f"{method.verdict}{other}",
    }


def _cell(metric: str, value: float | None) -> str:
    return number(None, 0) if value is None else figure(metric, value)


def _capital(words: str) -> str:
    return f"{words[0].upper()}{words[1:]}"
