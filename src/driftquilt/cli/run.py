"""`driftquilt run`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.live import Live

from driftquilt.cli.data import (
    DataFiles,
    Decimal,
    Delimiter,
    Encoding,
    reading,
    text_form,
)
from driftquilt.cli.detector import check_detector
from driftquilt.cli.engine import Address, Engine, check_engine
from driftquilt.cli.live import Pace, tell_plainly, view
from driftquilt.cli.output import (
    AsJson,
    check_place,
    command_line,
    print_json,
    progress_bar,
    say,
    split,
)
from driftquilt.cli.page import write_page
from driftquilt.cli.replay_page import forget_about, replay_page, write_about
from driftquilt.cli.stored import Asked, opened, typed_options
from driftquilt.errors import InputError
from driftquilt.text import listing, plural

if TYPE_CHECKING:
    from driftquilt.decision.columns import ColumnFacts
    from driftquilt.decision.replay import Progress
    from driftquilt.decision.replayed import Replayed
    from driftquilt.stream import QuiltStream

__all__ = ["run"]


def run(
    context: typer.Context,
    data: DataFiles,
    label: Annotated[str, typer.Option(help="Column with the class to predict.")],
    time: Annotated[
        str | None, typer.Option(help="Column with the time: rows are replayed in its order.")
    ] = None,
    detector: Annotated[str, typer.Option(help="What tells a drift, by name.")] = "adwin",
    n_wait: Annotated[
        int, typer.Option(help="Rows to gather after a drift before a model is trained.", min=8)
    ] = 100,
    store: Annotated[
        Path | None,
        typer.Option(help="Folder that keeps the stream; go on from it later.", file_okay=False),
    ] = None,
    drop: Annotated[
        str | None, typer.Option(help="Columns not to learn from, by comma, such as an id.")
    ] = None,
    baselines: Annotated[
        bool, typer.Option(help="Also train on all data and on the last segment, to compare.")
    ] = True,
    seed: Annotated[int, typer.Option(help="Of everything random.", min=0)] = 0,
    out: Annotated[
        Path, typer.Option(help="Folder for events.jsonl and the report.", file_okay=False)
    ] = Path("run-out"),
    delimiter: Delimiter = None,
    decimal: Decimal = ".",
    encoding: Encoding = "utf-8",
    engine: Engine = "local",
    address: Address = None,
    as_json: AsJson = False,
) -> None:
    """Replay a file as a stream: every row is predicted, then learned; drifts are found.

    With --store it can be stopped at any moment, even killed; the same command goes on where it
    stopped. Rows without a label are skipped. Rows come as they stand in the file, or by --time.

    Example: driftquilt run sensor.csv --label failed --store state --out run-out
    """
    from driftquilt.decision.origin import trace  # noqa: PLC0415
    from driftquilt.decision.replay import Replay  # noqa: PLC0415

    form = text_form(delimiter, decimal, encoding)
    check_detector(detector)
    check_engine(engine, address)
    check_place(out)
    dropped = [*(split(drop) or []), *([time] if time else [])]
    asked = Asked(detector, n_wait, seed, engine, typed_options(context))
    if time == label:
        raise InputError(f"{label!r} is the label; --time takes another column")
    with reading(data, form, needed=[label, *dropped]) as rows:
        table, notes = _in_order(rows.table, time)
        notes = [*rows.notes, *notes]
        _tell(*(f"Note: {note}" for note in notes))
        with opened(store, asked) as (stream, said), _told_of_stop(store):
            steps = Replay(stream, out, anew=store is None).run(
                table, label, drop=dropped, report_every=200, name=listing(data)
            )
            _tell(*said)
            if store is not None:  # then its events are added to as it goes
                forget_about(out)
            _watch(steps, stream)
            forget_about(out)
            seed, n_rows = stream.seed, stream.n_rows
        command = "  # ".join([command_line(), *said[:1]])  # what was typed may not be what holds
        notes += _unlabelled_end(table, label, n_rows)
        columns, told = _look_at_columns(table, label, dropped, out)
        _tell(*(f"Note: {note}" for note in told))
        notes += told
        found = _compare(table, label, dropped, seed, out) if baselines else {}
        write_about(out, trace(command, data), notes, found, columns)
    page, replayed = replay_page(out)
    files = {"events": str(out / "events.jsonl")} | write_page(page, out / "report.html")
    if as_json:
        print_json("run", _document(replayed, page.warnings, files))
        return
    for sentence in page.sentences:
        say(sentence)
    for warning in page.warnings:
        say(f"Note: {warning}")
    for path in files.values():
        typer.echo(path)


def _tell(*lines: str) -> None:
    for line in lines:
        say(line, err=True)


def _in_order(table: Any, time: str | None) -> tuple[Any, list[str]]:
    """The table, sorted if a column tells the order, and what to note."""
    from driftquilt.decision.cutting import sort_by_time  # noqa: PLC0415

    if time is None:
        return table, []
    ordered = sort_by_time(table, time)
    sorted_ = f"the rows were not in order of {time!r} and have been sorted"
    return ordered, [] if ordered is table else [sorted_]


@contextmanager
def _told_of_stop(store: Path | None) -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt as stop:
        again = "the same command goes on where it stopped"
        hint = again if store else "begun with --store, a replay can go on"
        stop.add_note(hint)
        raise


def _watch(steps: Iterator[Progress], stream: QuiltStream) -> None:
    """Learn what is left, with a live view on a terminal and plain lines elsewhere."""
    console = Console(stderr=True)
    if not console.is_terminal:
        tell_plainly(steps, stream, _tell, Pace())
        return
    with Live(console=console, transient=True, auto_refresh=False) as live:
        for progress in steps:
            live.update(view(progress, stream.events), refresh=True)


def _unlabelled_end(table: Any, label: str, n_rows: int) -> list[str]:
    """A note on rows that come after the last one learned, of so many."""
    from driftquilt.decision.labelled import LabelledPlaces  # noqa: PLC0415

    left = table.num_rows - LabelledPlaces(table, label).place(n_rows)
    of_all = f"the last {left:,} of {plural(table.num_rows, 'row')}"
    return [f"no {label!r} in {of_all}, not replayed"] if left else []


def _look_at_columns(
    table: Any, label: str, drop: list[str], out: Path
) -> tuple[tuple[ColumnFacts, ...], list[str]]:
    """What there is to know of the columns, and notes: which were left out, which tell segments."""
    from driftquilt.decision.columns import describe, leave_out, unfit_warning  # noqa: PLC0415
    from driftquilt.decision.replayed import read_replay  # noqa: PLC0415
    from driftquilt.decision.telling import (  # noqa: PLC0415
        find_telling_in_stream,
        remark,
        warning,
    )

    names = find_telling_in_stream(table, label, read_replay(out).seals, drop)
    facts = remark(describe(table), names)
    notes = unfit_warning(fact for fact in facts if fact.name not in (label, *drop))
    return leave_out(facts, label, drop), notes + ([warning(names)] if names else [])


def _compare(
    table: Any, label: str, drop: list[str], seed: int, out: Path
) -> dict[str, dict[int, float]]:
    """Train what the stream is compared with."""
    from driftquilt.decision.baselines import baselines  # noqa: PLC0415
    from driftquilt.decision.replayed import read_replay  # noqa: PLC0415

    trainings = read_replay(out).trainings
    if not trainings:
        return {}
    doing, pace = "Training what to compare with", Pace()
    with progress_bar() as bar:
        task = bar.add_task(doing, total=len(trainings))

        def watch(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)
            if bar.disable and pace.due():
                _tell(f"{doing}: {done} of {total}")

        return baselines(table, label, trainings, drop=drop, seed=seed, watch=watch)


def _document(replayed: Replayed, warnings: Sequence[str], files: dict[str, str]) -> dict[str, Any]:
    return {
        "label": replayed.label,
        "n_rows": replayed.n_rows,
        "n_right": replayed.n_right,
        "n_skipped": replayed.n_skipped,
        "accuracy": replayed.n_right / replayed.n_rows if replayed.n_rows else None,
        "n_drifts": replayed.n_drifts,
        "models": [
            {
                "row": drift.row,
                "model": drift.model,
                "segment": f"rows from {replayed.begin_of(drift)} on",
                "kept": [str(use.name) for use in drift.selection if use.kept],
                "dropped": [str(use.name) for use in drift.selection if not use.kept],
                "shares": {str(use.name): use.share for use in drift.selection},
            }
            for drift in replayed.drifts
        ],
        "warnings": list(warnings),
        "files": files,
    }
