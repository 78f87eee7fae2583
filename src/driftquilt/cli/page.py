"""Reports that commands write beside their results, where the extra for them is installed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from driftquilt.errors import MissingExtraError

if TYPE_CHECKING:
    from driftquilt.report.page import Page

__all__ = ["write_page"]


def write_page(page: Page, path: Path) -> dict[str, str]:
    """The report's place by its kind; without the extra a hint on standard error, and none."""
    from driftquilt.report.html import write_report  # noqa: PLC0415

    try:
        return {"report": str(write_report(page, path))}
    except MissingExtraError as error:
        typer.echo(f"no report was written: {error}", err=True)
        return {}
