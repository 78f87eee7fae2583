"""Tables as Markdown, CSV and HTML.

A cell reads "**.888** ±.004 (.888, +.000)": ours, its spread over seeds, the paper's figure and
the difference; the best of ours in a column is bold.
"""

from __future__ import annotations

import csv
import html
import io
from collections.abc import Sequence

from driftquilt.paper.tables import Table, Value

__all__ = ["to_csv", "to_html", "to_markdown"]

_HTML = ("<b>{}</b>", "<br><small>{}</small>")  # the best; the paper's figure, difference


def to_markdown(table: Table) -> str:
    """A GitHub table under its title."""
    lines = [
        f"### {_plain(table.title)}",
        "",
        f"| | {' | '.join(map(_plain, table.columns))} |",
        f"| --- |{' ---: |' * len(table.columns)}",
    ]
    for row in table.rows:
        cells = [_cell(table, row, column, "**{}**", " ({})") for column in table.columns]
        lines.append(f"| {_plain(row)} | {' | '.join(cells)} |")
    return "\n".join([*lines, ""])


def to_html(table: Table) -> str:
    """The same as an HTML table."""
    head = "".join(f"<th scope='col'>{html.escape(column)}</th>" for column in table.columns)
    body = "".join(
        f"<tr><th scope='row'>{html.escape(row)}</th>"
        + "".join(f"<td>{_cell(table, row, c, *_HTML)}</td>" for c in table.columns)
        + "</tr>"
        for row in table.rows
    )
    return (
        f"<table><caption>{html.escape(table.title)}</caption>"
        f"<thead><tr><th></th>{head}</tr></thead><tbody>{body}</tbody></table>"
    )


def to_csv(tables: Sequence[Table]) -> str:
    """All tables, one line per cell."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["table", "row", "column", "ours", "spread", "paper", "difference"])
    for table in tables:
        for (row, column), value in table.cells.items():
            numbers = [value.ours, value.spread, value.paper, value.difference]
            writer.writerow([table.name, row, column, *map(_number, numbers)])
    return out.getvalue()


def _plain(name: str) -> str:
    """A name that stays in its cell."""
    return " ".join(html.escape(name, quote=False).replace("|", "\\|").split())


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.6g}"


def _cell(table: Table, row: str, column: str, bold: str, beside: str) -> str:
    value = table.cells.get((row, column))
    if value is None:
        return ""
    text = _short(value.ours, table.digits)
    if round(value.ours, table.digits) == table.best(column):
        text = bold.format(text)
    if value.spread is not None:
        text += f" ±{_short(value.spread, table.digits)}"
    return text + (beside.format(_paper(value, table.digits)) if value.paper is not None else "")


def _paper(value: Value, digits: int) -> str:
    difference = round(value.difference or 0.0, digits)
    sign = "-" if difference < 0 else "+"
    return f"{_short(value.paper or 0.0, digits)}, {sign}{_short(abs(difference), digits)}"


def _short(value: float, digits: int) -> str:
    """Without the zero before the point where the paper leaves it out."""
    text = f"{value:.{digits}f}"
    return text[1:] if digits >= 3 and text.startswith("0.") else text  # noqa: PLR2004
