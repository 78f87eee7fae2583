"""The commands around the paper: `driftquilt reproduce` and `driftquilt demo`."""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from driftquilt import __version__
from driftquilt.cli.console import (
    Address,
    AsJson,
    Engine,
    Seed,
    check_engine,
    command_line,
    print_json,
    progress_bar,
    say_notes,
    split,
    table_console,
    write_report,
    write_whole,
)
from driftquilt.paper.baselines.naive import CurrentSegment, FullData
from driftquilt.paper.datasets.synthetic import sine
from driftquilt.paper.outputs import write_report as write_outputs
from driftquilt.paper.plan import EXPERIMENTS, Plan, make_plan
from driftquilt.paper.protocol import Outcome, compare
from driftquilt.paper.run import effort, read_results, run_plan, split_tasks
from driftquilt.quilt.executor import Threads, find_executor
from driftquilt.quilt.explanation import percent
from driftquilt.quilt.method import DEFAULT, Method, QuiltModel
from driftquilt.report.page import Drift, Page, mean_accuracies
from driftquilt.report.quilt import drift_quilt, quilt_svg


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
        str | None, typer.Option(help="Streams, by comma; also paths of data files.")
    ] = None,
    label: Annotated[str, typer.Option(help="Column of your file with the class.")] = "label",
    segment: Annotated[
        str, typer.Option(help="Column of your file with the segment, such as the month.")
    ] = "segment",
    methods: Annotated[str | None, typer.Option(help="Methods, by comma.")] = None,
    seeds: Annotated[int, typer.Option(help="Number of seeds, from 0 on.", min=1)] = 5,
    protocol: Annotated[
        Literal["honest", "paper"],
        typer.Option(help="honest: scale and encode by the rows seen so far; paper: by all rows."),
    ] = "honest",
    jobs: Annotated[int | None, typer.Option(help="Processes; default: all cores.", min=1)] = None,
    quick: Annotated[bool, typer.Option("--quick", help="One seed, the small streams.")] = False,
    out: Annotated[
        Path, typer.Option(help="Folder for results, tables and figures.", file_okay=False)
    ] = Path("reproduce-out"),
    engine: Engine = "local",
    address: Address = None,
    as_json: AsJson = False,
) -> None:
    """Run the paper's evaluation and write its tables and figures, theirs beside ours.

    Or run it on your own file, with one column for the class and one for the segment. It can be
    stopped at any moment; the same command continues where it stopped.

    Example: driftquilt reproduce accuracy --datasets usenet1,usenet2 --seeds 1 --out out

    Example: driftquilt reproduce accuracy --datasets my.csv --label churned --segment month
    """
    try:
        check_engine(engine, address)
        wanted = list(EXPERIMENTS) if experiment == "all" else [experiment]
        if quick:
            wanted = [name for name in wanted if name != "scalability"]
            seeds, datasets = 1, datasets or "usenet1,usenet2"
        plan = make_plan(
            wanted,
            datasets=split(datasets) or None,
            methods=split(methods) or None,
            n_seeds=seeds,
            protocol=protocol,
            label=label,
            segment=segment,
        )
        for dataset in dict.fromkeys(cell.dataset for cell in plan.cells):
            say_notes(plan.stream(dataset).notes)
        _run_plan(plan, out, jobs or os.cpu_count() or 1, engine)
        results = read_results(out / "results.jsonl")
        paths = [str(p) for p in write_outputs(results, wanted, out, command=command_line())]
        if as_json:
            print_json("reproduce", {"n_results": len(results), "files": paths})
        else:
            typer.echo("\n".join(paths))
    except KeyboardInterrupt as stop:
        stop.add_note("the same command continues where it stopped")
        raise


def _run_plan(plan: Plan, out: Path, jobs: int, engine: str) -> None:
    """Run what is left, and show the progress and the time left on standard error."""
    executor = None if engine == "local" else find_executor(engine, jobs)
    if isinstance(executor, Threads):  # there is no cluster: use processes
        executor = None
    work = run_plan(plan, out, jobs=jobs, executor=executor)
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


def demo(
    out: Annotated[
        Path, typer.Option(help="Folder for picture and report.", file_okay=False)
    ] = Path("demo-out"),
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Follow a drifting stream with Quilt, all data, and the current segment only.

    The stream is sine: eight segments of 2,000 rows, four concepts that come twice in the same
    order, two of them the others with their labels flipped. Each segment in turn is the current
    one: 200 of its rows are labelled, the others are the test set.

    Example: driftquilt demo --out demo-out
    """
    out.mkdir(parents=True, exist_ok=True)
    page = _demo_page(_adapt(seed))
    picture = out / "demo.svg"
    svg = quilt_svg(drift_quilt(page.drifts), "Which past segments each model was trained on")
    write_whole(picture, svg.encode())
    files = {"picture": str(picture)} | write_report(page, out / "report.html")
    if as_json:
        print_json("demo", {"segments": list(map(_describe_drift, page.drifts)), "files": files})
        return
    table_console().print(_accuracy_table(page.drifts))
    for kind, path in files.items():
        typer.echo(f"{kind.capitalize()}: {path}")


def _adapt(seed: int) -> tuple[Drift, ...]:
    """Every method on every segment in turn."""
    stream = sine()
    methods: dict[str, Method] = {
        "Quilt": replace(DEFAULT, seed=seed),
        "all data": FullData(n_folds=2, seed=seed),
        "current only": CurrentSegment(n_folds=2, seed=seed),
    }
    with progress_bar() as bar:
        outcomes = bar.track(
            compare(stream, methods),
            total=stream.n_segments * len(methods),
            description=f"Adapting to {stream.n_segments} segments",
        )
        return tuple(drifts_of(outcomes))


def drifts_of(outcomes: Iterable[Outcome]) -> list[Drift]:
    """Return a drift per current segment of a comparison; segments without Quilt have none."""
    models: dict[Hashable, QuiltModel] = {}
    accuracies: dict[Hashable, dict[str, float]] = {}
    for outcome in outcomes:
        accuracies.setdefault(outcome.segment, {})[outcome.method] = outcome.accuracy
        if isinstance(outcome.model, QuiltModel):
            models[outcome.segment] = outcome.model
    return [
        Drift(models[name].selection, values, tuple(models[name].tried_bounds()))
        for name, values in accuracies.items()
        if name in models
    ]


def _demo_page(drifts: tuple[Drift, ...]) -> Page:
    (_, quilt), *others = mean_accuracies(drifts).items()
    compared = ", ".join(f"{name} {accuracy:.1%}" for name, accuracy in others)
    sentences = (
        "Eight segments of the sine stream, one after the other, each with "
        f"{drifts[0].selection.n_current} labelled rows; four "
        "concepts come twice in the same order, two of them the others with their labels flipped.",
        f"Quilt's accuracy on the other rows of the segments is {quilt:.1%} ({compared}).",
        "Where a concept comes back, the segments that were like it are used and the others are "
        "not: look along a row of the quilt.",
    )
    return Page(
        "Concepts that come back",
        sentences,
        drifts,
        versions={"driftquilt": __version__},
        command=command_line(),
    )


def _describe_drift(drift: Drift) -> dict[str, Any]:
    weights = {str(use.name): use.weight for use in drift.selection}
    return {
        "segment": str(drift.selection.current), "accuracies": drift.accuracies,
        "blend": drift.selection.parts, "weights": weights,
        "used": [str(use.name) for use in drift.selection if use.used],
    }  # fmt: skip


def _accuracy_table(drifts: tuple[Drift, ...]) -> Table:
    means = mean_accuracies(drifts)
    columns = ("segment", *means, "segments used (weight)")
    table = Table(*columns, title="Accuracy on the other rows of the segment")
    for drift in drifts:
        used = [f"{use.name} ({percent(use.weight)})" for use in drift.selection if use.used]
        accuracies = (f"{drift.accuracies[method]:.3f}" for method in means)
        table.add_row(str(drift.selection.current), *accuracies, ", ".join(used) or "none")
    table.add_section()
    table.add_row("mean", *(f"{value:.3f}" for value in means.values()))
    return table
