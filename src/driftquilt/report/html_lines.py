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

from driftquilt.quilt.explanation import FoldCurves, percent
from driftquilt.report.fold_range import fold_range
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
    n_lines = sum(2 * len(drift.selection) * (len(drift.selection.folds) + 1) for drift in drifts)
    return max(_MOST_NUMBERS // max(n_lines, 1), _FEWEST_POINTS)


def _drift_data(drift: Drift, n_points: int) -> dict[str, Any]:
    return {
        "name": clean(drift.name),
        "row": drift.row,
        "segments": [
            {
                "name": clean(use.name),
                "kept": use.kept,
                "word": use.word,
                "told": [
                    ["rows", f"{use.n_rows:,}"],
                    ["used in", f"{percent(use.share)} of epochs"],
                    ["median disparity", number(use.disparity.median, 3)],
                    ["median gain", number(use.gain.median, 4, "+")],
                ],
            }
            for use in drift.uses
        ],
        "folds": [_fold_data(fold, n_points) for fold in drift.selection.folds if drift.uses],
        "mean": _mean_data(drift, n_points) if drift.uses else None,
    }


def _mean_data(drift: Drift, n_points: int) -> dict[str, Any]:
    folds = drift.selection.folds
    disparity = fold_range([fold.disparity for fold in folds]).mean
    gain = fold_range([fold.gain for fold in folds]).mean
    return _curves_data(drift.selection.disparity_max, disparity, gain, n_points)


def _fold_data(fold: FoldCurves, n_points: int) -> dict[str, Any]:
    return _curves_data(fold.disparity_max, fold.disparity, fold.gain, n_points)


def _curves_data(
    bound: float, disparity: NDArray[np.float64], gain: NDArray[np.float64], n_points: int
) -> dict[str, Any]:
    n_epochs = len(disparity)
    shown = np.unique(np.linspace(0, n_epochs - 1, min(n_points, n_epochs)).round().astype(int))
    return {
        "bound": bound,
        "epochs": (shown + 1).tolist(),
        "disparity": _whole(disparity[shown]),
        "gain": _whole(gain[shown]),
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
    model_from = {drift.row: number for number, drift in enumerate(drifts)}
    return {
        "over": "row",
        "window": accuracy.window,
        "x": list(accuracy.rows),
        "marks": [(model_from.get(row), row) for row in accuracy.drifts],
        "lines": {
            clean(name): [finite(value) for value in values]
            for name, values in accuracy.by_method.items()
        },
    }
