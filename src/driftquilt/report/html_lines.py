"""What the script of a report is handed: the lines to draw and the numbers to tell.

Lines of long trainings are thinned to what a file of some megabytes holds, and their numbers
are whole: thousandths of the largest, beside their unit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from driftquilt.methods.explanation import FoldCurves, percent
from driftquilt.report.from_comparison import mean_accuracies
from driftquilt.report.html_tables import finite, has_accuracy_chart, number
from driftquilt.report.letters import clean
from driftquilt.report.page import AccuracyLines, Drift, Page

__all__ = ["script_data"]

_MOST_NUMBERS = 500_000  # of all score curves together: some two megabytes
_FEWEST_POINTS = 16


def script_data(page: Page) -> dict[str, Any]:
    """The lines to draw and the numbers to tell, as JSON knows them."""
    n_points = _points_per_line(page.drifts)
    return {
        "drifts": [_drift_data(drift, n_points) for drift in page.drifts],
        "accuracy": _accuracy_data(page) if has_accuracy_chart(page) else None,
    }


def _points_per_line(drifts: Sequence[Drift]) -> int:
    n_lines = sum(2 * len(drift.selection) * len(drift.selection.folds) for drift in drifts)
    return max(_MOST_NUMBERS // max(n_lines, 1), _FEWEST_POINTS)


def _drift_data(drift: Drift, n_points: int) -> dict[str, Any]:
    return {
        "name": clean(drift.name),
        "row": drift.row,
        "segments": [
            {
                "name": clean(use.name),
                "kept": use.kept,
                "told": [
                    ["rows", f"{use.n_rows:,}"],
                    ["used in", f"{percent(use.share)} of epochs"],
                    ["disparity", number(use.disparity.best, 3)],
                    ["gain", number(use.gain.best, 4, "+")],
                ],
            }
            for use in drift.uses
        ],
        "folds": [_fold_data(fold, n_points) for fold in drift.selection.folds if drift.uses],
    }


def _fold_data(fold: FoldCurves, n_points: int) -> dict[str, Any]:
    n_epochs = len(fold.validation_loss)
    shown = np.unique(np.linspace(0, n_epochs - 1, min(n_points, n_epochs)).round().astype(int))
    return {
        "bound": fold.disparity_max,
        "best": int(fold.best) + 1,
        "epochs": (shown + 1).tolist(),
        "disparity": _whole(fold.disparity[shown]),
        "gain": _whole(fold.gain[shown]),
    }


def _whole(scores: NDArray[np.float64]) -> dict[str, Any]:
    """Scores of shape (E, S) as one list per segment, in thousandths of the largest."""
    unit = float(np.abs(scores[np.isfinite(scores)]).max(initial=0.0)) / 1000 or 1.0
    return {
        "unit": unit,
        "lines": [
            [round(value) if math.isfinite(value) else None for value in line]
            for line in (scores.T / unit).tolist()
        ],
    }


def _accuracy_data(page: Page) -> dict[str, Any]:
    if page.accuracy is not None:
        return _stream_lines(page.accuracy, page.drifts)
    methods = list(mean_accuracies(page.drifts))
    return {
        "over": "drift",
        "x": list(range(len(page.drifts))),
        "labels": [clean(drift.name) for drift in page.drifts],
        "lines": {
            clean(name): [finite(drift.accuracies.get(name)) for drift in page.drifts]
            for name in methods
        },
    }


def _stream_lines(accuracy: AccuracyLines, drifts: Sequence[Drift]) -> dict[str, Any]:
    marks = [(number, drift.row) for number, drift in enumerate(drifts) if drift.row is not None]
    return {
        "over": "row",
        "window": accuracy.window,
        "x": list(accuracy.rows),
        "marks": marks,
        "lines": {
            clean(name): [finite(value) for value in values]
            for name, values in accuracy.by_method.items()
        },
    }
