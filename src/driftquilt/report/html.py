"""A report as one HTML file that needs nothing else: no network, no folder beside it.

Tables and drawings are in the page itself, so it is complete on paper and without scripts. The
script makes them interactive: the numbers under the pointer, the choice of a model and of a fold,
lines that can be hidden, sorted tables. Text from the data is escaped everywhere, and the page's
own security policy runs no script but this one, known by its hash, and loads nothing.

    write_report(Page("Churn", ("Two of three months were kept.",), drifts), "churn.html")
"""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Iterator, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from driftquilt.errors import MissingExtraError
from driftquilt.files import atomic_write
from driftquilt.report.escape import clean
from driftquilt.report.lines import accuracy_chart, page_chart
from driftquilt.report.page import Drift, Page
from driftquilt.report.palette import DAY, NIGHT, picture_style, variables
from driftquilt.report.quilt import drift_quilt, page_quilt
from driftquilt.report.quilt_layout import Room
from driftquilt.report.score_panels import score_panels
from driftquilt.report.tables import view

__all__ = ["drawing_files", "render", "write_report"]

_MAX_POINTS, _MIN_POINTS = 20_000, 16  # of all lines together: some 240 KB; and of each
_CHART_HEIGHT, _SCORES_HEIGHT = 280, 260


def write_report(page: Page, path: str | os.PathLike[str]) -> Path:
    """Write the page to a file, completely or not at all, and return its path."""
    text = render(page)
    with atomic_write(path) as file:
        file.write(text.encode())
    return Path(path)


def render(page: Page) -> str:
    """Return the page as HTML text."""
    try:
        import jinja2  # noqa: PLC0415
    except ImportError as error:
        raise MissingExtraError("jinja2", extra="report") from error

    environment = jinja2.Environment(
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: value if hasattr(value, "__html__") else clean(value),
    )
    drawings = drawing_files()
    script = drawings["drawings.js"] + _template("report.js")
    return environment.from_string(_template("report.html")).render(
        view(page),
        policy=_policy(script),
        style=drawings["drawings.css"] + _template("report.css"),
        quilt=_quilt(page.drifts),
        accuracy=_accuracy(page),
        scores=list(_scores(page.drifts)),
        script=script,
    )


def drawing_files() -> dict[str, str]:
    """Return the style sheet and the script of interactive drawings; the live page has them too.

    Colours are light on paper, whatever the reader's screen has.
    """
    night = f"@media screen and (prefers-color-scheme:dark){{:root{{{variables(NIGHT)}}}}}"
    style = f":root{{{variables(DAY)}}}{night}{picture_style()}{_template('drawings.css')}"
    return {"drawings.css": style, "drawings.js": _template("drawings.js")}


def _quilt(drifts: Sequence[Drift]) -> str:
    label = "The quilt: arrow keys move, Enter chooses the model"
    return page_quilt(drift_quilt(drifts), Room(), label) if drifts else ""


def _accuracy(page: Page) -> dict[str, Any] | None:
    chart = accuracy_chart(page.accuracy, page.drifts)
    if chart is None:
        return None
    lines = [(k, line.name, line.style) for k, line in enumerate(chart.views[0].lines)]
    return {"svg": page_chart(chart, _CHART_HEIGHT), "lines": lines}


def _scores(drifts: Sequence[Drift]) -> Iterator[dict[str, Any]]:
    """Yield the charts of each drift; long trainings are thinned so that all fit in one file."""
    n_lines = sum(2 * len(drift.selection) * (len(drift.selection.folds) + 3) for drift in drifts)
    n_points = max(_MAX_POINTS // max(n_lines, 1), _MIN_POINTS)
    for drift in drifts:
        panels = score_panels(drift.selection, n_points)
        lines = panels[0].chart.views[0].lines if panels else ()
        yield {
            "charts": [(p.caption, page_chart(p.chart, _SCORES_HEIGHT)) for p in panels],
            "lines": [
                (k, line.name, line.style) for k, line in enumerate(lines) if line.color is not None
            ],
            "n_folds": len(drift.selection.folds),
        }


def _template(name: str) -> str:
    return (files("driftquilt.report") / "templates" / name).read_text(encoding="utf-8")


def _policy(script: str) -> str:
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; "
        "img-src data:"
    )
