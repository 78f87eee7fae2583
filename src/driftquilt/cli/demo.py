"""`driftquilt demo`."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from driftquilt import __version__
from driftquilt.cli.options import AsJson, Seed
from driftquilt.cli.output import (
    command_line,
    print_json,
    progress_bar,
    table_console,
    write_report,
)
from driftquilt.files import atomic_write
from driftquilt.paper.baselines.naive import CurrentSegment, FullData
from driftquilt.paper.datasets.synthetic import sine
from driftquilt.paper.protocol import Outcome, compare
from driftquilt.quilt.explanation import percent
from driftquilt.quilt.method import DEFAULT, Method, QuiltModel
from driftquilt.report.page import Drift, Page, mean_accuracies
from driftquilt.report.quilt import drift_quilt, quilt_svg

__all__ = ["demo", "drifts_of"]


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
    page = _page(_adapt(seed))
    picture = out / "demo.svg"
    svg = quilt_svg(drift_quilt(page.drifts), "Which past segments each model was trained on")
    with atomic_write(picture) as file:
        file.write(svg.encode())
    files = {"picture": str(picture)} | write_report(page, out / "report.html")
    if as_json:
        print_json("demo", {"segments": list(map(_document, page.drifts)), "files": files})
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


def _page(drifts: tuple[Drift, ...]) -> Page:
    (_, quilt), *others = mean_accuracies(drifts).items()
    compared = ", ".join(f"{name} {accuracy:.1%}" for name, accuracy in others)
    sentences = (
        "Eight segments of the sine stream, one after the other, each with "
        f"{drifts[0].selection.n_current} labelled rows; four "
        "concepts come twice in the same order, two of them the others with their labels flipped.",
        f"Quilt's accuracy on the other rows of the segments is {quilt:.1%} ({compared}).",
        "Where a concept comes back, the segments that were like it are kept and the others are "
        "dropped: look along a row of the quilt.",
    )
    return Page(
        "Concepts that come back",
        sentences,
        drifts,
        versions={"driftquilt": __version__},
        command=command_line(),
    )


def _document(drift: Drift) -> dict[str, Any]:
    shares = {str(use.name): use.share for use in drift.selection}
    return {
        "segment": str(drift.selection.current), "accuracies": drift.accuracies, "shares": shares,
        "kept": [str(use.name) for use in drift.selection if use.kept],
    }  # fmt: skip


def _accuracy_table(drifts: tuple[Drift, ...]) -> Table:
    means = mean_accuracies(drifts)
    columns = ("segment", *means, "segments kept (epochs)")
    table = Table(*columns, title="Accuracy on the other rows of the segment")
    for drift in drifts:
        kept = [f"{use.name} ({percent(use.share)})" for use in drift.selection if use.kept]
        accuracies = (f"{drift.accuracies[method]:.3f}" for method in means)
        table.add_row(str(drift.selection.current), *accuracies, ", ".join(kept) or "none")
    table.add_section()
    table.add_row("mean", *(f"{value:.3f}" for value in means.values()))
    return table
