"""The scores of every model for paper and for readers without scripts: pictures, not charts.

On a screen a script draws one model's lines at a time. Very many models would make a file that
nobody can send: from some point on, paper says where to look instead.
"""

from __future__ import annotations

from collections.abc import Sequence

from driftquilt.report.figures import svg_of
from driftquilt.report.page import Drift
from driftquilt.report.score_panels import PANEL_HEIGHT, panel_parts, panels

__all__ = ["print_scores"]

_MOST_POINTS = 60_000  # of all lines together: some two megabytes
_WIDTH = 860


def print_scores(drifts: Sequence[Drift]) -> list[str]:
    """A picture for each drift, empty where there is no past, and all empty if too many."""
    lengths = [[len(fold.validation_loss) for fold in drift.selection.folds] for drift in drifts]
    n_lines = [2 * len(drift.selection) for drift in drifts]
    n_points = sum(n * max(of, default=0) for n, of in zip(n_lines, lengths, strict=True))
    return [_picture(drift) if n_points <= _MOST_POINTS else "" for drift in drifts]


def _picture(drift: Drift) -> str:
    charts = panels(drift.selection)
    if not charts:
        return ""
    half = _WIDTH / len(charts)
    parts = [
        part
        for number, chart in enumerate(charts)
        for part in panel_parts(chart, number * half, 0, half - 20)
    ]
    return svg_of(parts, _WIDTH, PANEL_HEIGHT, f"Scores by epoch, for {drift.name}", style=False)
