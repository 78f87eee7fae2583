"""A report as one HTML file that needs nothing else: no net, no folder beside it.

The template writes every table, so that the page says the same on paper and without scripts;
the script adds what moves: the numbers of a patch, the choice of a drift, sorting, and lines
drawn by plotly, whose code is in the file. Text of the data is escaped wherever it stands, and
the page's own security policy lets no script run but the two that are known by their hashes,
and nothing be fetched.

    write_report(Page("Churn", ("Two of three months were kept.",), drifts), "churn.html")
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
from importlib.resources import files
from pathlib import Path
from typing import Any

from driftquilt.errors import MissingExtraError
from driftquilt.report.figures import quilt_parts
from driftquilt.report.html_lines import script_data
from driftquilt.report.html_tables import view
from driftquilt.report.letters import clean
from driftquilt.report.marks import legend_height
from driftquilt.report.page import Page
from driftquilt.report.palette import DAY, NIGHT, picture_style, variables
from driftquilt.report.print_scores import print_scores
from driftquilt.report.quilt_layout import lay_out
from driftquilt.report.whole_file import write_whole

__all__ = ["render", "write_report"]


def write_report(page: Page, path: str | os.PathLike[str]) -> Path:
    """Write the page to a file, whole or not at all, and return where it is."""
    target = Path(path)
    write_whole(target, render(page).encode())
    return target


def render(page: Page) -> str:
    """The page as HTML text."""
    jinja2, plotly_js = _load()
    script = "\n".join(map(_template, ("charts.js", "tables.js", "report.js")))
    environment = jinja2.Environment(
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_finalize,
    )
    text: str = environment.from_string(_template("report.html")).render(
        view(page),
        policy=_policy(plotly_js, script),
        style=_markup(_style()),
        quilt=_markup(_quilt(page)),
        scores=[_markup(picture) for picture in print_scores(page.drifts)],
        data=_markup(embed(script_data(page))),
        plotly_js=_markup(plotly_js),
        script=_markup(script),
    )
    return text


def embed(data: Any) -> str:
    """JSON that cannot end the element it stands in."""
    text = json.dumps(data, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _load() -> tuple[Any, str]:
    """jinja2, and the code of plotly."""
    try:
        import jinja2  # noqa: PLC0415
    except ImportError as error:
        raise MissingExtraError("jinja2", extra="report") from error
    try:
        from plotly.offline import get_plotlyjs  # noqa: PLC0415
    except ImportError as error:
        raise MissingExtraError("plotly", extra="report") from error
    return jinja2, get_plotlyjs()


def _template(name: str) -> str:
    return (files("driftquilt.report") / "templates" / name).read_text(encoding="utf-8")


def _markup(text: str) -> Any:
    from markupsafe import Markup  # noqa: PLC0415

    return Markup(text)  # noqa: S704  # made here: escaped where it came from the data


def _finalize(value: Any) -> Any:
    """Letters that no page has a place for are taken out of everything that is written."""
    return value if hasattr(value, "__html__") else clean(value)


def _policy(*scripts: str) -> str:
    hashes = (base64.b64encode(hashlib.sha256(script.encode()).digest()) for script in scripts)
    allowed = " ".join(f"'sha256-{digest.decode()}'" for digest in hashes)
    return f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data:"


def _style() -> str:
    night = (
        f"@media screen and (prefers-color-scheme:dark){{:root:not(.by-day){{{variables(NIGHT)}}}}}"
    )
    return f":root{{{variables(DAY)}}}{night}{picture_style()}{_template('report.css')}"


def _quilt(page: Page) -> str:
    if not page.drifts:
        return ""
    layout = lay_out(page.drifts, on_page=True)
    height = layout.bottom + 22 + legend_height(layout)
    parts = quilt_parts(page.drifts, layout, live=True)
    return (
        f'<svg class="dq live" width="{layout.width:g}" height="{height:g}" role="group" '
        f'viewBox="0 0 {layout.width:g} {height:g}" aria-label="The quilt: arrow keys move, '
        f'Enter chooses the model">{"".join(parts)}</svg>'
    )
