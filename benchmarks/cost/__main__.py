"""Measure what driftquilt costs, beside the published procedure in torch.

Run `python -m benchmarks.cost --help` in a checkout.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import Progress

from benchmarks.cost.measure import look_at_machine
from benchmarks.cost.report import to_document, to_markdown, write_bench
from benchmarks.cost.run import Bench, Scope, plan_steps
from driftquilt.cli.console import AsJson, print_json, split

__all__ = ["bench"]


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
    as_json: AsJson = False,
) -> None:
    """Measure what it costs, beside the published procedure in torch.

    That procedure is benchmarks/torch_quilt.py. Nothing is downloaded: real streams count if they
    are on this machine. What --out holds of an earlier run is replaced.

    Example: python -m benchmarks.cost --only drift,online --datasets sine,usenet1 --out bench-out
    """
    out.mkdir(parents=True, exist_ok=True)
    scope = Scope(
        split(only) or None, split(datasets) or None, segments, repeats, torch_repeats, quick
    )
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
    if as_json:
        print_json("bench", to_document(done))
    else:
        typer.echo(to_markdown(done))


if __name__ == "__main__":
    typer.run(bench)
