"""`driftquilt run`, and `driftquilt report` to draw a folder again."""

from __future__ import annotations

import time as clock
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.text import Text

from driftquilt.cli.console import (
    Address,
    AsJson,
    ClassWeights,
    Costs,
    DataFiles,
    Decimal,
    Delimiter,
    Drop,
    Encoding,
    Engine,
    Label,
    MetricName,
    Params,
    Seed,
    check_detector,
    check_engine,
    check_writable,
    command_line,
    print_json,
    progress_bar,
    read_class_weight,
    read_data,
    read_params,
    read_scoring,
    say,
    say_notes,
    split,
    write_report,
)
from driftquilt.data.source import TextFormat
from driftquilt.decision.backtest import (
    RunRecord,
    StreamSetup,
    baselines,
    check_class_weight,
    examine_columns,
    note_one_sided,
    note_unlabelled_end,
    open_stream,
    params_of,
)
from driftquilt.decision.cutting import sort_rows
from driftquilt.decision.decision import REPORT, SELECTION, Origin, read_decision
from driftquilt.decision.journal import EVENTS, Replayed, read_replay
from driftquilt.decision.labels import note_blanks
from driftquilt.decision.replay import Progress, Replay
from driftquilt.errors import InputError
from driftquilt.quilt.metrics import find_metric, metric_words
from driftquilt.quilt.model_file import NET
from driftquilt.quilt.models import check_params
from driftquilt.report.html import write_report as write_html
from driftquilt.report.page import Page, page_of_decision, page_of_replay
from driftquilt.stream import QuiltStream
from driftquilt.stream.events import DriftFound, Event, ModelTrained
from driftquilt.text import listing, plural

_SHADES = "·░▒▓█"
_MAX_LINES, _MAX_PATCHES = 12, 60
_SECONDS = 10.0  # from one plain line to the next


def run(
    context: typer.Context,
    data: DataFiles,
    label: Label,
    time: Annotated[
        str | None, typer.Option(help="Column with the time: rows are replayed in its order.")
    ] = None,
    detector: Annotated[
        str,
        typer.Option(
            help="Drift detector, by name; experts compares the models that are trained on the way."
        ),
    ] = "experts",
    n_wait: Annotated[
        int, typer.Option(help="Rows to gather after a drift before a model is trained.", min=8)
    ] = 25,
    store: Annotated[
        Path | None,
        typer.Option(help="Folder that keeps the stream, to continue it later.", file_okay=False),
    ] = None,
    drop: Drop = None,
    metric: MetricName = None,
    cost: Costs = None,
    compare: Annotated[
        bool,
        typer.Option(
            "--baselines/--no-baselines",
            help="Also train on all data and on the last segment, to compare.",
        ),
    ] = True,
    seed: Seed = 0,
    out: Annotated[
        Path, typer.Option(help="Folder for events.jsonl and the report.", file_okay=False)
    ] = Path("run-out"),
    delimiter: Delimiter = None,
    decimal: Decimal = ".",
    encoding: Encoding = "utf-8",
    engine: Engine = "local",
    address: Address = None,
    class_weight: ClassWeights = None,
    param: Params = None,
    as_json: AsJson = False,
) -> None:
    """Replay a file as a stream: predict every row, then learn it, and find drifts.

    With --store it can be stopped at any moment, even killed; the same command continues where
    it stopped. Rows without a label are skipped. Rows come in the order of the file, or of --time.
    With --metric or --cost the stream is scored by it over time, beside accuracy.

    Example: driftquilt run sensor.csv --label failed --store state --out run-out
    """
    form = TextFormat(delimiter, decimal, encoding)
    check_detector(detector)
    check_engine(engine, address)
    check_writable(out)
    dropped = [*split(drop), *([time] if time else [])]
    weights, chosen = read_class_weight(class_weight), _typed_options(context)
    scoring = read_scoring(metric, cost) if metric or cost else None
    params = read_params(param)
    check_params(NET, params, is_regression=False)
    if time == label:
        raise InputError(f"{label!r} is the label; give --time another column")
    with read_data(data, form, needed=[label, *dropped]) as rows:
        table, sort_notes = sort_rows(rows.table, time)
        one_sided = note_one_sided(table, label)
        notes = [*rows.notes, *sort_notes, *note_blanks(table, label), *one_sided]
        say_notes(notes)
        if scoring is None and one_sided:
            scoring = find_metric("balanced_accuracy")
        setup = StreamSetup(detector, n_wait, seed, engine, weights, chosen, scoring, params)
        check_class_weight(setup, table, label)
        with open_stream(store, setup) as (stream, messages), _explain_stop(store):
            n_before = stream.n_rows
            earlier = RunRecord.read(out) if n_before else RunRecord()
            replay = Replay(stream, out, overwrite=store is None)
            steps = replay.run(table, label, drop=dropped, report_every=200, name=listing(data))
            for message in messages:
                say(message, err=True)
            if store is not None:  # then events are added to the file as it goes
                RunRecord.remove(out)
            _watch(steps, stream)
            RunRecord.remove(out)
            settings: dict[str, Any] = {"seed": stream.seed, "class_weight": stream.class_weight}
            settings["params"] = params_of(stream.estimator)
        replayed = read_replay(out)
        notes += note_unlabelled_end(table, label, replayed.n_rows)
        columns, column_notes = examine_columns(table, label, dropped, replayed)
        say_notes(column_notes)
        settings["drop"] = dropped
        accuracies = earlier.baselines if compare and n_before == replayed.n_rows else {}
        if compare and not accuracies:
            accuracies = _train_baselines(table, label, replayed, settings)
        command = "  # ".join([command_line(), *messages[:1]])  # a stored stream has its own setup
        origin = Origin.of(command, rows.files)
        record = RunRecord(origin, [*notes, *column_notes], accuracies, columns)
        record.write(out)
    _report(replayed, record, out, as_json=as_json)


def _report(replayed: Replayed, record: RunRecord, out: Path, *, as_json: bool) -> None:
    """Write the report, and print what it says."""
    page = page_of_run(replayed, record)
    files = {"events": str(out / EVENTS)} | write_report(page, out / REPORT)
    if as_json:
        print_json("run", _document(replayed, page.warnings, files))
        return
    for sentence in page.sentences:
        say(sentence)
    say_notes(page.warnings, err=False)
    for path in files.values():
        typer.echo(path)


def _typed_options(context: typer.Context) -> frozenset[str]:
    """Return the names of the options on the command line."""
    sources = {name: context.get_parameter_source(name) for name in context.params}
    typed = {n for n, source in sources.items() if source and source.name == "COMMANDLINE"}
    return frozenset("metric" if name == "cost" else name for name in typed)


@contextmanager
def _explain_stop(store: Path | None) -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt as stop:
        stop.add_note(
            "the same command continues where it stopped"
            if store
            else "a replay with --store can be continued"
        )
        raise


def _watch(steps: Iterator[Progress], stream: QuiltStream) -> None:
    """Learn what is left, with a live view on a terminal and plain lines elsewhere."""
    console = Console(stderr=True)
    if not console.is_terminal:
        print_progress(steps, stream, lambda line: say(line, err=True), Timer())
        return
    with Live(console=console, transient=True, auto_refresh=False) as live:
        for progress in steps:
            live.update(_view(progress, stream.events), refresh=True)


class Timer:
    """Says when it is time for another plain line."""

    def __init__(self, now: Callable[[], float] = clock.monotonic) -> None:
        self._now, self._last = now, now()

    def is_due(self) -> bool:
        """Return whether enough seconds have passed since it last was."""
        now = self._now()
        is_due = now - self._last >= _SECONDS
        self._last = now if is_due else self._last
        return is_due


def print_progress(
    steps: Iterable[Progress], stream: QuiltStream, write: Callable[[str], None], timer: Timer
) -> None:
    """Go through a replay, with a line for each new drift and now and then for the progress."""
    n_before = stream.n_rows
    for progress in steps:
        for event in stream.events:
            if isinstance(event, DriftFound) and event.row > n_before:
                write(str(event))
        n_before = stream.n_rows
        if timer.is_due():
            write(_headline(progress))


def _view(progress: Progress, events: Sequence[Event]) -> RenderableType:
    """Return what a terminal shows: the progress, the quilt so far and the last event."""
    n_read = progress.rows + progress.skipped
    bar = ProgressBar(total=progress.n_rows, completed=n_read, width=60)
    quilt = Text("\n".join(quilt_lines(events)))
    return Group(Text(_headline(progress)), bar, quilt, Text(progress.last_event, style="dim"))


def quilt_lines(events: Sequence[Event]) -> list[str]:
    """Return the last trainings: a patch per past segment, the fuller the larger its weight."""
    trained = [event for event in events if isinstance(event, ModelTrained)][-_MAX_LINES:]
    return [
        f"row {event.row:>9,}  {''.join(map(_shade, list(event.weights.values())[-_MAX_PATCHES:]))}"
        for event in trained
    ]


def _shade(weight: float) -> str:
    return _SHADES[0] if weight <= 0 else _SHADES[min(4, 1 + int(4 * weight))]


def _headline(progress: Progress) -> str:
    n_read = progress.rows + progress.skipped
    return (
        f"{n_read:,} of {plural(progress.n_rows, 'row')}, {progress.rows_per_second:,.0f} per "
        f"second, recent accuracy {progress.accuracy:.3f}{_score_words(progress)}, "
        f"{plural(progress.n_drifts, 'drift')}"
    )


def _score_words(progress: Progress) -> str:
    if progress.metric is None:
        return ""
    figure = "not defined" if progress.score is None else f"{progress.score:.3f}"
    return f", recent {metric_words(progress.metric)} {figure}"


def _train_baselines(
    table: Any, label: str, replayed: Replayed, settings: dict[str, Any]
) -> dict[str, dict[int, float]]:
    """Train what the stream is compared with."""
    trainings = replayed.trainings
    if not trainings:
        return {}
    description, timer = "Training baselines", Timer()
    with progress_bar() as bar:
        task = bar.add_task(description, total=len(trainings))

        def watch(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)
            if bar.disable and timer.is_due():
                say(f"{description}: {done} of {total}", err=True)

        return baselines(table, label, trainings, watch=watch, **settings)


def _document(replayed: Replayed, warnings: Sequence[str], files: dict[str, str]) -> dict[str, Any]:
    return {
        "label": replayed.label,
        "n_rows": replayed.n_rows,
        "n_right": replayed.n_right,
        "n_skipped": replayed.n_skipped,
        "accuracy": replayed.n_right / replayed.n_rows if replayed.n_rows else None,
        "score": _score(replayed),
        "n_drifts": replayed.n_drifts,
        "models": [
            {
                "row": drift.row,
                "model": drift.model,
                "segment": f"rows from {replayed.begin_of(drift)} on",
                "blend": drift.selection.parts,
                "used": [str(use.name) for use in drift.selection if use.used],
                "weights": {str(use.name): use.weight for use in drift.selection},
            }
            for drift in replayed.drifts
        ],
        "warnings": list(warnings),
        "files": files,
    }


def _score(replayed: Replayed) -> dict[str, Any] | None:
    """Return the score by the metric, at the end and over time."""
    if replayed.metric is None:
        return None
    scores = replayed.scores
    return {
        "metric": replayed.metric,
        "value": scores[max(scores)] if scores else None,
        "window": replayed.window,
        "lower_is_better": replayed.lower_is_better,
        "over_time": [{"row": row, "value": value} for row, value in scores.items()],
    }


def report(
    folder: Annotated[
        Path,
        typer.Argument(help="Folder written by `select` or `run`.", exists=True, file_okay=False),
    ],
    out: Annotated[
        Path | None, typer.Option(help="The HTML file; default: report.html in the folder.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write the report of a folder again, from its selection.json or events.jsonl.

    Example: driftquilt report select-out
    """
    page = _page(folder)
    path = str(write_html(page, out or folder / REPORT))
    if as_json:
        sentences = list(page.sentences)
        print_json(
            "report", {"title": page.title, "sentences": sentences, "files": {"report": path}}
        )
    else:
        typer.echo(path)


def page_of_run(replayed: Replayed, record: RunRecord) -> Page:
    """Return the page of a run, compared with the baselines if they were trained."""
    return page_of_replay(
        replayed,
        record.baselines,
        origin=record.origin,
        warnings=record.warnings,
        columns=record.columns,
    )


def _page(folder: Path) -> Page:
    if (folder / SELECTION).exists():
        return page_of_decision(read_decision(folder))
    if (folder / EVENTS).exists():
        return page_of_run(read_replay(folder), RunRecord.read(folder))
    raise InputError(
        f"{folder} has neither {SELECTION} nor {EVENTS}; name a folder that `driftquilt select` or "
        "`driftquilt run` wrote"
    )
