"""The command line: parse, call, print. Results go to standard output, progress to stderr."""

from __future__ import annotations

import os
import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn, track
from rich.table import Table

from driftquilt import __version__
from driftquilt.errors import DriftquiltError

if TYPE_CHECKING:
    from driftquilt.experiments.plan import Plan
    from driftquilt.report.quilt_rows import QuiltRow

__all__ = ["app", "run"]

app = typer.Typer(no_args_is_help=True)


def run() -> None:
    """Run a command; one of our errors is one line and exit code 1, Ctrl-C is 130."""
    try:
        app()
    except DriftquiltError as error:
        typer.echo(f"driftquilt: {error}", err=True)
        sys.exit(1)
    except OSError as error:
        typer.echo(f"driftquilt: cannot read or write: {error}", err=True)
        sys.exit(1)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool,
        typer.Option("--version", help="Print the version.", callback=_show_version, is_eager=True),
    ] = False,
) -> None:
    """Concept drift: choose which past data to retrain on."""


@app.command()
def demo(
    out: Annotated[
        Path, typer.Option(help="Folder for the picture; made if there is none.", file_okay=False)
    ] = Path("demo-out"),
    seed: Annotated[int, typer.Option(help="Of everything random.", min=0)] = 0,
) -> None:
    """Follow a drifting stream with Quilt, with all data, and with the current segment only.

    The stream is sine: eight segments of 2,000 rows, four concepts that come twice in the same
    order, two of them the others with their labels flipped. Each segment in turn is the current
    one: 200 of its rows are labelled, the rest is the test.

    Example: driftquilt demo --out demo-out
    """
    # Imported here, so that `driftquilt --help` answers at once.
    from driftquilt.datasets.synthetic import sine  # noqa: PLC0415
    from driftquilt.experiments.compare import compare  # noqa: PLC0415
    from driftquilt.methods.base import Method  # noqa: PLC0415
    from driftquilt.methods.naive import CurrentSegment, FullData  # noqa: PLC0415
    from driftquilt.methods.quilt import DEFAULT  # noqa: PLC0415
    from driftquilt.report.figures import quilt_svg  # noqa: PLC0415
    from driftquilt.report.quilt_rows import quilt_rows  # noqa: PLC0415

    out.mkdir(parents=True, exist_ok=True)
    stream = sine()
    methods: dict[str, Method] = {
        "Quilt": replace(DEFAULT, seed=seed),
        "all data": FullData(n_folds=2, seed=seed),
        "current only": CurrentSegment(n_folds=2, seed=seed),
    }
    outcomes = track(
        compare(stream, methods),
        "Adapting to 8 segments",
        total=stream.n_segments * len(methods),
        console=Console(stderr=True),
    )
    rows = quilt_rows(outcomes)
    picture = out / "demo.svg"
    picture.write_text(quilt_svg(rows, "Which past segments each model was trained on"))
    Console().print(_accuracy_table(rows))
    typer.echo(f"Picture: {picture}")


@app.command()
def datasets() -> None:
    """List the nine streams, where they come from, and whether they are intact.

    Example: driftquilt datasets
    """
    from driftquilt.datasets import describe, names  # noqa: PLC0415

    table = Table(box=None, pad_edge=False)
    for column in ("stream", "kind", "rows", "features", "classes", "segments"):
        is_number = column not in ("stream", "kind")
        table.add_column(column, no_wrap=True, justify="right" if is_number else "left")
    table.add_column("state", overflow="fold")
    places = []
    for name in names():
        told = describe(name)
        state = (
            told.problem or {True: "intact", False: "damaged", None: "not here yet"}[told.is_intact]
        )
        counts = (told.n_rows, told.n_features, told.n_classes, told.n_segments)
        table.add_row(name, told.kind, *map(str, counts), state)
        if told.kind == "real":
            places.append(f"{name}: {told.place}")
    Console().print(table)
    typer.echo("\nThe synthetic streams are made in code, the real ones are at")
    for place in places:
        typer.echo(f"  {place}")


@app.command()
def reproduce(
    experiment: Annotated[
        Literal[
            "accuracy",
            "selection",
            "ablation",
            "initialization",
            "scalability",
            "case-study",
            "all",
        ],
        typer.Argument(help="A table or figure of the paper, or all of them."),
    ] = "all",
    datasets: Annotated[
        str | None, typer.Option(help="Streams, by comma; also paths of CSV or Parquet files.")
    ] = None,
    label: Annotated[str, typer.Option(help="Column of your file with the class.")] = "label",
    segment: Annotated[
        str, typer.Option(help="Column of your file with the segment, such as the month.")
    ] = "segment",
    methods: Annotated[str | None, typer.Option(help="Methods, by comma.")] = None,
    seeds: Annotated[int, typer.Option(help="How many seeds, from 0 on.", min=1)] = 5,
    protocol: Annotated[
        Literal["honest", "paper"],
        typer.Option(help="honest: scale and encode by the rows seen; paper: by all rows."),
    ] = "honest",
    jobs: Annotated[int | None, typer.Option(help="Processes; default: all cores.", min=1)] = None,
    quick: Annotated[bool, typer.Option("--quick", help="One seed, the small streams.")] = False,
    out: Annotated[
        Path, typer.Option(help="Folder for results, tables and figures.", file_okay=False)
    ] = Path("reproduce-out"),
) -> None:
    """Run the paper's evaluation and write its tables and figures, theirs beside ours.

    Or run it on a file of yours: a row per line, one column with the class and one with the
    segment. It can be stopped at any moment; the same command goes on where it stopped.

    Example: driftquilt reproduce accuracy --datasets usenet1,usenet2 --seeds 1 --out out

    Example: driftquilt reproduce accuracy --datasets my.csv --label churned --segment month
    """
    try:
        from driftquilt.experiments.plan import EXPERIMENTS, make_plan  # noqa: PLC0415
        from driftquilt.experiments.results import read_results  # noqa: PLC0415
        from driftquilt.report.reproduce import write_report  # noqa: PLC0415

        wanted = list(EXPERIMENTS) if experiment == "all" else [experiment]
        if quick:
            wanted = [name for name in wanted if name != "scalability"]
            seeds, datasets = 1, datasets or "usenet1,usenet2"
        plan = make_plan(
            wanted,
            datasets=_split(datasets),
            methods=_split(methods),
            n_seeds=seeds,
            protocol=protocol,
            label=label,
            segment=segment,
        )
        _run_plan(plan, out, jobs or os.cpu_count() or 1)
        command = shlex.join(["driftquilt", *sys.argv[1:]])
        for path in write_report(read_results(out / "results.jsonl"), wanted, out, command=command):
            typer.echo(path)
    except KeyboardInterrupt as interrupt:
        typer.echo("driftquilt: stopped; the same command goes on where it stopped", err=True)
        raise typer.Exit(130) from interrupt


@app.command()
def bench(
    only: Annotated[
        str | None, typer.Option(help="Parts, by comma: drift, kernels, growth, online, startup.")
    ] = None,
    datasets: Annotated[
        str | None, typer.Option(help="Streams to measure drifts on, by comma; default: all here.")
    ] = None,
    segments: Annotated[
        str, typer.Option(help="Segments to adapt to: last, all, or numbers by comma.")
    ] = "last",
    repeats: Annotated[
        int, typer.Option(help="Of drifts, kernels and online; medians count.", min=1)
    ] = 3,
    torch_repeats: Annotated[int, typer.Option(help="Of the torch procedure.", min=1)] = 1,
    quick: Annotated[bool, typer.Option("--quick", help="A smoke run on small sizes.")] = False,
    out: Annotated[
        Path, typer.Option(help="Folder for bench.json and bench.md.", file_okay=False)
    ] = Path("bench-out"),
) -> None:
    """Measure what it costs, beside the published procedure in torch.

    That procedure is benchmarks/torch_quilt.py of the checkout you stand in. Nothing is fetched:
    real streams count if they are on this machine. What --out holds of an earlier run is replaced.

    Example: driftquilt bench --only drift,online --datasets sine,usenet1 --out bench-out
    """
    from driftquilt.bench.machine import look_at_machine  # noqa: PLC0415
    from driftquilt.bench.run import Bench, Scope, plan_steps  # noqa: PLC0415
    from driftquilt.bench.text import to_markdown, write_bench  # noqa: PLC0415

    out.mkdir(parents=True, exist_ok=True)
    scope = Scope(_split(only), _split(datasets), segments, repeats, torch_repeats, quick)
    steps, notes = plan_steps(scope)
    for note in notes:
        typer.echo(note, err=True)
    done = Bench(look_at_machine(), tuple(notes))
    with Progress(console=Console(stderr=True)) as progress:
        bar = progress.add_task("", total=len(steps))
        for step in steps:
            progress.update(bar, description=step.label)
            done = done.plus(step)
            write_bench(done, out)
            progress.advance(bar)
    typer.echo(to_markdown(done))


def _split(names: str | None) -> list[str] | None:
    return [name.strip() for name in names.split(",") if name.strip()] if names else None


def _run_plan(plan: Plan, out: Path, jobs: int) -> None:
    """Run what is left, and show on stderr how far it is and how long it will take."""
    from driftquilt.experiments.results import read_results  # noqa: PLC0415
    from driftquilt.experiments.run import effort, run_plan, split_tasks  # noqa: PLC0415

    work = run_plan(plan, out, jobs=jobs)
    done = {result.cell for result in read_results(out / "results.jsonl")}
    tasks = split_tasks(plan, done)
    n_left = sum(cell not in done for task in tasks for cell in task)
    if plan.cells and not n_left:
        typer.echo(f"All {len(plan.cells)} results are in {out} already", err=True)
    n_done = len(plan.cells) - n_left
    columns = (
        TextColumn("{task.fields[n_done]}/{task.fields[n_all]}"),
        BarColumn(),
        TextColumn("time left"),
        TimeRemainingColumn(),
    )
    with Progress(
        *columns,
        console=Console(stderr=True),
        speed_estimate_period=86_400,  # a task may take hours
        disable=not n_left,
    ) as progress:
        bar = progress.add_task(
            "",
            total=sum(effort(plan, task) for task in tasks),
            n_done=n_done,
            n_all=len(plan.cells),
        )
        for results in work:
            n_done += len(results)
            spent = effort(plan, tuple(result.cell for result in results))
            progress.update(bar, advance=spent, n_done=n_done)


def _accuracy_table(rows: list[QuiltRow]) -> Table:
    from driftquilt.methods.explanation import percent  # noqa: PLC0415
    from driftquilt.report.quilt_rows import mean_accuracies  # noqa: PLC0415

    means = mean_accuracies(rows)
    columns = ("segment", *means, "segments kept (epochs)")
    table = Table(*columns, title="Accuracy on the rest of the segment")
    for row in rows:
        kept = ", ".join(f"{s} ({percent(row.shares[s])})" for s in row.kept) or "none"
        table.add_row(str(row.name), *(f"{row.accuracies[m]:.3f}" for m in means), kept)
    table.add_section()
    table.add_row("mean", *(f"{value:.3f}" for value in means.values()))
    return table
