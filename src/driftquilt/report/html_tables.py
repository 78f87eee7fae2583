"""What the template of a report is handed: words and short numbers, table by table."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from driftquilt.methods.explanation import percent
from driftquilt.methods.quilt import TriedBound
from driftquilt.report.from_comparison import mean_accuracies
from driftquilt.report.page import Drift, Page

__all__ = ["finite", "has_accuracy_chart", "number", "view"]

_NONE, _MINUS = "\N{EN DASH}", "\N{MINUS SIGN}"


def view(page: Page) -> dict[str, Any]:
    """The words and numbers of everything but the drawings."""
    means = mean_accuracies(page.drifts)
    return {
        "page": page,
        "tiles": _tiles(page.drifts, means),
        "means": {name: number(value, 3) for name, value in means.items()},
        "drifts": [_drift_view(drift) for drift in page.drifts],
        "accuracies": [_accuracy_row(drift, list(means)) for drift in page.drifts],
        "columns": [
            {**vars(column), "missing": percent(column.missing), "missing_value": column.missing}
            for column in page.columns
        ],
        "has_chart": has_accuracy_chart(page),
    }


def has_accuracy_chart(page: Page) -> bool:
    """One drift is a point, not a line."""
    return page.accuracy is not None or len([d for d in page.drifts if d.accuracies]) > 1


def number(value: float | None, digits: int, sign: str = "-") -> str:
    """A number with so many digits; a dash where there is none."""
    if value is None or not math.isfinite(value):
        return _NONE
    return f"{value:{sign}.{digits}f}".replace("-", _MINUS)


def finite(value: float | None) -> float | None:
    """A number that JSON and a sort know, or none."""
    return round(value, 6) if value is not None and math.isfinite(value) else None


def _tiles(drifts: Sequence[Drift], means: dict[str, float]) -> list[tuple[str, str]]:
    if not drifts:
        return []
    n_past = sum(len(drift.selection) for drift in drifts)
    n_kept = sum(len(drift.kept) for drift in drifts)
    tiles = [(str(len(drifts)), "model" if len(drifts) == 1 else "models")]
    if n_past:
        tiles.append((f"{n_kept} of {n_past}", "past segments kept, over all models"))
    ours, *others = means.items() or [("", math.nan)]
    if ours[0]:
        tiles.append((number(ours[1], 3), f"mean accuracy of {ours[0]}"))
    if others:
        best = max(others, key=lambda item: item[1])
        tiles.append((number(ours[1] - best[1], 3, "+"), f"beside {best[0]}, the best other"))
    return tiles


def _drift_view(drift: Drift) -> dict[str, Any]:
    return {
        "name": drift.name,
        "n_current": drift.selection.n_current,
        "row": drift.row,
        "n_kept": len(drift.kept),
        "segments": _segment_rows(drift),
        "has_correct": bool(drift.correct),
        "folds": _fold_views(drift.bounds),
    }


def _segment_rows(drift: Drift) -> list[dict[str, Any]]:
    return [
        {
            "name": use.name,
            "n_rows": use.n_rows,
            "correct": drift.correct.get(str(use.name)),
            "correct_text": number(drift.correct.get(str(use.name)), 3),
            "disparity": finite(use.disparity.best),
            "disparity_text": number(use.disparity.best, 3),
            "gain": finite(use.gain.best),
            "gain_text": number(use.gain.best, 4, "+"),
            "share": use.share,
            "share_text": percent(use.share),
            "kept": use.kept,
            "why": use.sentence(),
        }
        for use in drift.uses
    ]


def _fold_views(bounds: Iterable[TriedBound]) -> list[list[dict[str, Any]]]:
    """The trials of each fold, by rising bound."""
    folds: dict[int, list[TriedBound]] = {}
    for bound in bounds:
        folds.setdefault(bound.fold, []).append(bound)
    return [
        [
            {
                "disparity_max": f"{bound.disparity_max:.3f}",
                "loss": number(bound.validation_loss, 4),
                "n_epochs": bound.n_epochs,
                "won": bound.won,
            }
            for bound in sorted(folds[fold], key=lambda bound: bound.disparity_max)
        ]
        for fold in sorted(folds)
    ]


def _accuracy_row(drift: Drift, methods: Sequence[str]) -> dict[str, Any]:
    known = [value for value in drift.accuracies.values() if math.isfinite(value)]
    best = round(max(known), 3) if known else None
    return {
        "name": drift.name,
        "cells": [
            (
                number(drift.accuracies.get(method), 3),
                finite(drift.accuracies.get(method)),
                method in drift.accuracies and round(drift.accuracies[method], 3) == best,
            )
            for method in methods
        ],
    }
