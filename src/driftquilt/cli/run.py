"""`driftquilt run`."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.live import Live

from driftquilt.cli.data import DataFiles, reading
from driftquilt.cli.live import view
from driftquilt.cli.output import AsJson, command_line, print_json, progress_bar, split
from driftquilt.cli.page import write_page
from driftquilt.cli.replay_page import BASELINES, replay_page

if TYPE_CHECKING:
    from driftquilt.decision.replayed import Replayed
    from driftquilt.stream.runner import QuiltStream

__all__ = ["run"]


def run(
    data: DataFiles,
    label: Annotated[str, typer.Option(help="Column with the class to predict.")],
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
    as_json: AsJson = False,
) -> None:
    """Replay a file as a stream: every row is predicted, then learned; drifts are found.

    With --store it can be stopped at any moment, even killed; the same command goes on where it
    stopped. Rows without a label are skipped.

    Example: driftquilt run sensor.csv --label failed --store state --out run-out
    """
    out.mkdir(parents=True, exist_ok=True)
    dropped = split(drop) or []
    with reading(data, needed=[label, *dropped]) as rows:
        with _stream(store, seed, detector, n_wait) as stream, _told_of_stop(store):
            _replay(stream, rows.table, label, dropped, out)
        _compare(rows.table, label, dropped, seed, out, wanted=baselines)
    page, replayed = replay_page(out)
    files = {"events": str(out / "events.jsonl")} | write_page(page, out / "report.html")
    if as_json:
        print_json("run", _document(replayed, files))
        return
    for sentence in page.sentences:
        typer.echo(sentence)
    for warning in page.warnings:
        typer.echo(f"Note: {warning}")
    for path in files.values():
        typer.echo(path)


@contextmanager
def _stream(store: Path | None, seed: int, detector: str, n_wait: int) -> Iterator[QuiltStream]:
    from driftquilt.estimator import QuiltClassifier  # noqa: PLC0415
    from driftquilt.store.disk import DiskStore  # noqa: PLC0415
    from driftquilt.stream.runner import QuiltStream  # noqa: PLC0415

    place = None if store is None else DiskStore(store)
    if place is not None and "stream" in place.state:
        typer.echo(f"Going on with the stream in {store}, set up as it was", err=True)
        stream = QuiltStream.open(place, wait=True)
    else:
        estimator = QuiltClassifier(random_state=seed)
        stream = QuiltStream(estimator, detector, n_wait, store=place, wait=True)
    try:
        yield stream
    finally:
        stream.close()


@contextmanager
def _told_of_stop(store: Path | None) -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        hint = "the same command goes on where it stopped" if store else "with --store it can go on"
        typer.echo(f"driftquilt: stopped; {hint}", err=True)
        raise


def _replay(stream: QuiltStream, table: Any, label: str, drop: list[str], out: Path) -> None:
    """Learn what is left, with a live view on a terminal."""
    from driftquilt.decision.replay import Replay  # noqa: PLC0415

    console = Console(stderr=True)
    steps = Replay(stream, out).run(table, label, drop=drop, report_every=200)
    if not console.is_terminal:
        deque(steps, maxlen=0)
        return
    with Live(console=console, transient=True, auto_refresh=False) as live:
        for progress in steps:
            live.update(view(progress, stream.events), refresh=True)


def _compare(
    table: Any, label: str, drop: list[str], seed: int, out: Path, *, wanted: bool
) -> None:
    """Train what the stream is compared with, and keep the outcome beside the events."""
    from driftquilt.decision.baselines import baselines  # noqa: PLC0415
    from driftquilt.decision.replayed import read_replay  # noqa: PLC0415

    path, trainings = out / BASELINES, read_replay(out).trainings
    path.unlink(missing_ok=True)
    if not wanted or not trainings:
        return
    with progress_bar() as bar:
        task = bar.add_task("Training what to compare with", total=len(trainings))

        def watch(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        found = baselines(table, label, trainings, drop=drop, seed=seed, watch=watch)
    path.write_text(json.dumps({"command": command_line(), "baselines": found}), encoding="utf-8")


def _document(replayed: Replayed, files: dict[str, str]) -> dict[str, Any]:
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
                "segment": str(drift.selection.current),
                "kept": [str(use.name) for use in drift.selection if use.kept],
                "dropped": [str(use.name) for use in drift.selection if not use.kept],
            }
            for drift in replayed.drifts
        ],
        "files": files,
    }
