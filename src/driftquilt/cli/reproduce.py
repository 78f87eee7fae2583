"""`driftquilt reproduce`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from driftquilt.cli.options import Address, AsJson, Engine, check_engine, split
from driftquilt.cli.output import command_line, print_json
from driftquilt.paper.outputs import write_report
from driftquilt.paper.plan import EXPERIMENTS, Plan, make_plan
from driftquilt.paper.results import read_results
from driftquilt.paper.run import effort, run_plan, split_tasks
from driftquilt.quilt.executor import Threads, find_executor

__all__ = ["reproduce"]


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
        _run_plan(plan, out, jobs or os.cpu_count() or 1, engine)
        results = read_results(out / "results.jsonl")
        paths = [str(p) for p in write_report(results, wanted, out, command=command_line())]
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
