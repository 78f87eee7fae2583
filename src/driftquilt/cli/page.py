"""Reports that commands write beside their results, where the extra for them is installed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from driftquilt.errors import MissingExtraError
from driftquilt.files import atomic_write

if TYPE_CHECKING:
    from driftquilt.report.page import Page

__all__ = ["render_page", "write_page"]


def render_page(page: Page) -> str | None:
    """The report as HTML; without the extra a hint on standard error, and None."""
    from driftquilt.report.html import render  # noqa: PLC0415

    try:
        return render(page)
    except MissingExtraError as error:
        typer.echo(f"no report was written: {error}", err=True)
        return None


def write_page(page: Page, path: Path) -> dict[str, str]:
    """Write the report, or remove an earlier one; its place by its kind if there is one."""
    text = render_page(page)
    if text is None:
        path.unlink(missing_ok=True)
        return {}
    with atomic_write(path) as file:
        file.write(text.encode())
    return {"report": str(path)}
