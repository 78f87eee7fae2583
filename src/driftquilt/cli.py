"""The command line: parse, call, print. Results go to standard output, progress to stderr."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import track
from rich.table import Table

from driftquilt import __version__

if TYPE_CHECKING:
    from driftquilt.report.tables import QuiltRow

__all__ = ["app"]

app = typer.Typer(no_args_is_help=True)


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
    from driftquilt.experiments.run import compare  # noqa: PLC0415
    from driftquilt.methods.base import Method  # noqa: PLC0415
    from driftquilt.methods.naive import CurrentSegment, FullData  # noqa: PLC0415
    from driftquilt.methods.quilt import Quilt  # noqa: PLC0415
    from driftquilt.report.figures import quilt_svg  # noqa: PLC0415
    from driftquilt.report.tables import quilt_rows  # noqa: PLC0415

    out.mkdir(parents=True, exist_ok=True)
    stream = sine()
    methods: dict[str, Method] = {
        "Quilt": Quilt(n_folds=2, seed=seed),
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


def _accuracy_table(rows: list[QuiltRow]) -> Table:
    from driftquilt.report.tables import mean_accuracies  # noqa: PLC0415

    means = mean_accuracies(rows)
    table = Table("segment", *means, "segments kept", title="Accuracy on the rest of the segment")
    for row in rows:
        kept = ", ".join(map(str, row.kept)) or "none"
        table.add_row(str(row.name), *(f"{row.accuracies[m]:.3f}" for m in means), kept)
    table.add_section()
    table.add_row("mean", *(f"{value:.3f}" for value in means.values()))
    return table
