"""A report as one HTML file that needs nothing else: no network, no folder beside it.

Tables and drawings are in the page itself, so it is complete on paper and without scripts. The
script makes them interactive: the numbers under the pointer, the choice of a model and of a fold,
lines that can be hidden, sorted tables. Text from the data is escaped everywhere, and the page's
own security policy runs no script but this one, known by its hash, and loads nothing.

    write_report(Page("Churn", ("Two of three months were used.",), drifts), "churn.html")
"""

from __future__ import annotations

import base64
import hashlib
import math
import os
from collections.abc import Iterable, Iterator, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from driftquilt.decision.measure import MethodScore, NumberQuality, Quality
from driftquilt.decision.task import NUMBERS, Task
from driftquilt.errors import MissingExtraError
from driftquilt.files import atomic_write
from driftquilt.quilt.explanation import EXPLAINED_SETS, SegmentUse, Selection, percent
from driftquilt.quilt.method import TriedBound
from driftquilt.quilt.metrics import figure, metric_words, shown_value
from driftquilt.report.lines import (
    Chart,
    accuracy_chart,
    calibration_chart,
    error_charts,
    page_chart,
    score_chart,
)
from driftquilt.report.page import Drift, Page, mean_accuracies
from driftquilt.report.quilt import drift_quilt, page_quilt
from driftquilt.report.quilt_layout import Room, lay_out
from driftquilt.report.score_panels import score_panels
from driftquilt.report.svg import DAY, NIGHT, clean, number, picture_style, variables
from driftquilt.text import plural

__all__ = ["drawing_files", "render", "view", "write_report"]

_PHONE = 358  # pixels for patches on a phone
_MAX_POINTS, _MIN_POINTS = 20_000, 16  # of all lines together: some 240 KB; and of each
_CHART_HEIGHT, _SCORES_HEIGHT, _SMALL_HEIGHT = 280, 260, 200


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
        is_wide=lay_out(drift_quilt(page.drifts), Room()).patches_right > _PHONE,
        accuracy=_drawn(accuracy_chart(page.accuracy, page.drifts)),
        score=_drawn(None if page.score is None else score_chart(page.score, page.drifts)),
        errors=_error_charts(page.methods),
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


def _drawn(chart: Chart | None) -> dict[str, Any] | None:
    """Return a chart over time with its legend."""
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


def _error_charts(methods: Sequence[MethodScore]) -> list[dict[str, Any]]:
    """Return the charts of predicted numbers, each with its words and its legend."""
    return [
        {"caption": chart.label, **(_drawn(chart) or {}), "svg": page_chart(chart, _SMALL_HEIGHT)}
        for chart in error_charts(methods)
    ]


def _template(name: str) -> str:
    return (files("driftquilt.report") / "templates" / name).read_text(encoding="utf-8")


def _policy(script: str) -> str:
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; "
        "img-src data:"
    )


def view(page: Page) -> dict[str, Any]:
    """Return the words and numbers of everything but the drawings."""
    means = mean_accuracies(page.drifts)
    return {
        "page": page,
        "tiles": _tiles(page, means),
        "main_tile": (len(page.drifts) > 1) + len(_used_tile(page.drifts)),
        "means": {name: number(value, 3) for name, value in means.items()},
        "drifts": [_drift_view(drift, page.task) for drift in page.drifts],
        "accuracies": [_accuracy_row(drift, list(means)) for drift in page.drifts],
        "columns": [
            {**vars(column), "missing": percent(column.missing), "missing_value": column.missing}
            for column in page.columns
        ],
        "compared": [_compared(method) for method in page.methods],
        "heads": [head for head, *_ in _figures(page.methods[0])] if page.methods else [],
        "metric": metric_words(page.methods[0].shown_score.metric) if page.methods else "",
        "watched": "" if page.score is None else metric_words(page.score.metric),
    }


def _finite(value: float | None) -> float | None:
    """Return a number that a script can sort by, or none."""
    return round(value, 6) if value is not None and math.isfinite(value) else None


def _tiles(page: Page, means: dict[str, float]) -> list[tuple[str, str]]:
    if not page.drifts:
        return []
    several = len(page.drifts) > 1
    tiles = [(str(len(page.drifts)), "models")] * several + _used_tile(page.drifts)
    if page.methods and page.methods[0].shown_score.value is not None:
        return [*tiles, *_score_tiles(page.methods)]
    ours, *others = means.items() or [("", math.nan)]
    if ours[0]:
        since = ", from when each model took over" if page.accuracy is not None else ""
        mean = f"mean accuracy of {ours[0]} over models" if several else f"accuracy of {ours[0]}"
        tiles.append((number(ours[1], 3), f"{mean}{since}"))
    if others:
        best = max(others, key=lambda item: item[1])
        against = f"against {best[0]}, the best of the others"
        tiles.append((number(ours[1] - best[1], 3, "+"), against))
    return tiles


def _score_tiles(methods: Sequence[MethodScore]) -> Iterator[tuple[str, str]]:
    """Yield the score by the metric that decides, and how the best of the others compares."""
    quilt, *others = methods
    metric = quilt.shown_score.metric
    yield _figure(metric, quilt.shown_score.value), f"{metric_words(metric)} of {quilt.name}"
    for beside in ("accuracy", "coverage"):
        value = quilt.figures.get(beside)
        if value is not None and metric != beside:
            words = "of the truths are in Quilt's intervals for 80 %"
            shown = percent(value) if beside == "coverage" else number(value, 3)
            yield shown, words if beside == "coverage" else f"accuracy of {quilt.name}"
    alike = [other for other in others if other.comparison.metric == metric]
    if not alike:
        return
    best = min(alike, key=lambda other: other.comparison.difference)
    than = f"{best.name}, the best of the others"
    if best.verdict == "too few rows":
        yield best.verdict, f"to compare {metric_words(metric)} with that of {best.name}"
    elif best.verdict == "no clear difference":
        yield best.verdict, f"in {metric_words(metric)} from {than}"
    else:
        difference = _figure(metric, abs(best.comparison.difference))
        yield difference, f"{best.verdict} in {metric_words(metric)} than {than}"


def _compared(method: MethodScore) -> dict[str, Any]:
    score = method.shown_score
    is_compared = method.name != "Quilt" and method.n_rows > 0
    quality = method.quality if isinstance(method.quality, Quality) else Quality()
    return {
        "name": method.name,
        "score": _figure(score.metric, score.value),
        "score_value": _finite(score.value),
        "score_interval": _ends(score.metric, score.interval),
        "verdict": _verdict(method) if is_compared else "",
        "figures": [(text, _finite(value)) for _, text, value in _figures(method)],
        "classes": quality.classes,
        "confusion": list(zip(quality.classes, quality.confusion, strict=True)),
        "calibration": page_chart(calibration_chart(quality), _SMALL_HEIGHT)
        if quality.calibration
        else "",
    }


def _figures(method: MethodScore) -> Iterator[tuple[str, str, float | None]]:
    """Yield heading, text and value of what is known beside the score that decides."""
    if method.n_right is None:
        yield from _number_figures(method)
        return
    quality = method.quality if isinstance(method.quality, Quality) else Quality()
    counts = f"{method.n_right:,} of {method.n_rows:,}" if method.n_rows else number(None, 0)
    ends = method.interval if method.n_rows else None
    yield "Accuracy", number(method.accuracy, 3), method.accuracy
    yield "Right", counts, method.accuracy
    yield "95 % interval", _ends("accuracy", ends), None
    yield "Validation", number(method.validation, 3), method.validation
    yield "AUC", number(quality.auc, 3), quality.auc
    yield "Log loss", number(quality.log_loss, 3), quality.log_loss
    yield "Calibration error", number(quality.calibration_error, 3), quality.calibration_error


def _number_figures(method: MethodScore) -> Iterator[tuple[str, str, float | None]]:
    known = method.quality if isinstance(method.quality, NumberQuality) else None
    mae, width = NUMBERS.metric_of_segment, None if known is None else known.width
    for metric, value in method.figures.items():
        if metric != method.shown_score.metric:
            words = metric_words(metric)
            yield f"{words[0].upper()}{words[1:]}", _figure(metric, value), value
    yield "Width of intervals", _figure(mae, width), width
    bias = None if known is None else known.bias
    yield "Bias", _figure(mae, bias), bias
    yield "Validation", _figure(mae, method.validation), method.validation


def _figure(metric: str, value: float | None) -> str:
    """Return a score as text, a dash where there is none."""
    return number(None, 0) if value is None else figure(metric, value)


def _ends(metric: str, ends: tuple[float, float] | None) -> str:
    return " to ".join(_figure(metric, end) for end in ends) if ends else number(None, 0)


def _verdict(method: MethodScore) -> str:
    """Return how Quilt compares, and by what if that is not the metric of the table."""
    metric = method.comparison.metric
    by = "" if metric == method.shown_score.metric else f" by {metric_words(metric)}"
    return f"{method.verdict}{by}"


def _used_tile(drifts: Sequence[Drift]) -> list[tuple[str, str]]:
    uses = [use for drift in drifts for use in drift.uses]
    if not uses:
        return []
    words = f"past segment{'' if len(uses) == 1 else 's'} used"
    words += "; over all models" if len(drifts) > 1 else ""
    return [(f"{sum(use.used for use in uses)} of {len(uses)}", words)]


def _drift_view(drift: Drift, task: Task) -> dict[str, Any]:
    return {
        "name": drift.name,
        "n_current": plural(drift.selection.n_current, "current row"),
        "row": drift.row,
        "used": f"{len(drift.used)} of {plural(len(drift.uses), 'past segment')} used; "
        f"{drift.selection.composition()}",
        "bound": number(drift.selection.disparity_max, 3),
        "over_folds": _over_folds(drift),
        "segments": _segment_rows(drift, task),
        "sets": _set_rows(drift.selection),
        "explained_sets": EXPLAINED_SETS,
        "metric": metric_words(drift.selection.metric),
        "of_segment": f"{task.of_segment.capitalize()} on it" if drift.of_past else "",
        "folds": _fold_views(drift.bounds),
    }


def _over_folds(drift: Drift) -> str:
    """Return what scores and the bound of a drift are made from; nothing for one fold."""
    n_folds = len(drift.selection.folds)
    return f" They are over {n_folds} folds together, the bound is their mean." * (n_folds > 1)


def _segment_rows(drift: Drift, task: Task) -> list[dict[str, Any]]:
    return [
        {
            "name": use.name,
            "n_rows": use.n_rows,
            "measured": drift.of_past.get(str(use.name)),
            "measured_text": _figure(task.metric_of_segment, drift.of_past.get(str(use.name))),
            "disparity": _finite(use.disparity.median),
            "disparity_text": number(use.disparity.median, 3),
            "gain": _finite(use.gain.median),
            "gain_text": number(use.gain.median, 4, "+"),
            "rank": use.rank,
            "weight": use.weight,
            "weight_text": percent(use.weight),
            "used": use.used,
            "word": use.word,
            "why": _why(use),
        }
        for use in drift.uses
    ]


def _why(use: SegmentUse) -> str:
    """Return the reason as a sentence; the table has the figures, but those of training sets."""
    words = use.reason if use.rank is None else use.why
    return f"{words[0].upper()}{words[1:]}."


def _set_rows(selection: Selection) -> list[dict[str, Any]]:
    """Return the training sets that a model other than the net was tried on."""
    if len(selection.sets) < 2:  # noqa: PLR2004  # there was a choice
        return []
    return [
        {
            "name": selection.name_set(one),
            "n_rows": one.n_rows,
            "score": _finite(one.score),
            "score_text": _figure(selection.metric, shown_value(selection.metric, one.score)),
            "n_judged": one.n_judged,
            "share": one.share,
            "share_text": percent(one.share),
        }
        for one in selection.sets
    ]


def _fold_views(bounds: Iterable[TriedBound]) -> list[list[dict[str, Any]]]:
    """Return the trials of each fold, by rising bound."""
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
                _finite(drift.accuracies.get(method)),
                method in drift.accuracies and round(drift.accuracies[method], 3) == best,
            )
            for method in methods
        ],
    }
