"""Line charts: accuracy over time, and scores by epoch.

A chart is a value, made by `accuracy_chart`, `score_chart`, `stream_accuracy` or `score_panels`.
Places along the x axis are drawn as percentages, and lines are stretched to the width of the chart,
so one SVG fits a phone, a wide screen and paper without a script. The script that shows values
under the pointer reads them from the points of the lines.

>>> view = View((100, 200, 300), (Line("Quilt", (0.9, 0.8, 0.9), 0),))
>>> chart = Chart("Accuracy", "row", (view,), (0, 300), (0.5, 1.0), y_ticks=(0.5, 1.0))
>>> page_chart(chart, 100).count("<path")
1
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby, pairwise
from typing import Any

from driftquilt.decision.measure import MethodScore, NumberQuality, Quality
from driftquilt.decision.task import COVERAGE
from driftquilt.quilt.metrics import metric_words
from driftquilt.report.page import AccuracyLines, Drift, ScoreLine, mean_accuracies
from driftquilt.report.svg import METHODS, attribute, clean, content, shorten
from driftquilt.text import plural

__all__ = [
    "Chart",
    "Line",
    "View",
    "accuracy_chart",
    "accuracy_ticks",
    "calibration_chart",
    "chart_parts",
    "error_charts",
    "page_chart",
    "round_ticks",
    "score_chart",
    "sparkline",
    "stream_accuracy",
]

_UNITS = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
_LONG = 10_000  # numbers that an axis has no room for
_WIDTH = 1_000  # of a chart on a page, before it is stretched
_NAME_LETTERS, _LETTER, _LINE_HEIGHT = 14, 6.8, 13
_NARROW = 280  # of a chart on a phone
_MAX_POINTS, _MAX_ROW_TICKS, _MAX_TICKS = 2_000, 10, 5
_SHARES = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
_SPARK_WIDTH, _SPARK_HEIGHT, _SPARK_BUCKETS = 132, 34, 60
_EMPTY = '<svg xmlns="http://www.w3.org/2000/svg" class="dq spark" width="0" height="0"/>'
_LABEL = "Accuracy over time, one line for each method; the table of methods has the numbers"


@dataclass(frozen=True)
class Line:
    """A named line: a value at each place of its view, not a number where there is none.

    `color` is the number of a method's colour; a line without one is faint. The band from `low` to
    `high` is drawn where both are given. A cloud is points without a line between them.
    """

    name: str
    values: tuple[float, ...]
    color: int | None = None
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()
    is_cloud: bool = field(default=False, kw_only=True)

    @property
    def style(self) -> str:
        """The classes that give the line its colour, and dashes when the colours repeat."""
        if self.color is None:
            return "faded"
        turn, color = divmod(self.color, len(METHODS))
        kind = " cloud" if self.is_cloud else " dashed" if turn % 2 else ""
        return f"m{color}{kind}"


@dataclass(frozen=True)
class View:
    """Lines that are shown together, and the bound that they are compared with."""

    x: tuple[float, ...]
    lines: tuple[Line, ...]
    bound: float | None = None
    bound_name: str = ""


@dataclass(frozen=True)
class Chart:
    """One or more views on the same axes; the first is shown until another is chosen.

    `names` label the places 0, 1, … of an axis without numbers. `drifts` are places, each with the
    number of the model that followed, if one did. `dots` marks every value. `log_y` gives every
    power of ten the same room. `whole_x` is for rows and epochs, which have no fractions.
    """

    label: str
    x_name: str
    views: tuple[View, ...]
    x_range: tuple[float, float]
    y_range: tuple[float, float]
    y_ticks: tuple[float, ...] = ()
    names: tuple[str, ...] = ()
    drifts: tuple[tuple[float, int | None], ...] = ()
    dots: bool = False
    log_y: bool = False
    whole_x: bool = True

    def x(self, value: float) -> float:
        """Return the place of a value from left to right, between 0 and 1."""
        low, high = self.x_range
        return (value - low) / ((high - low) or 1)

    def y(self, value: float) -> float:
        """Return the place of a value from top to bottom, between 0 and 1."""
        low, high = self.y_range
        if self.log_y:
            low, high, value = math.log(low), math.log(high), math.log(value)
        return (high - value) / ((high - low) or 1)


def accuracy_ticks(values: Sequence[float]) -> tuple[float, ...]:
    """Return round accuracies up to 1 that enclose all values.

    >>> accuracy_ticks([0.93, 0.99])
    (0.92, 0.94, 0.96, 0.98, 1.0)
    """
    lowest = min((value for value in values if not math.isnan(value)), default=0.0)
    lowest = min(max(lowest, 0.0), 0.95)
    steps = ((0.02, 0.9), (0.05, 0.75), (0.1, 0.5), (0.2, 0.0))
    step = next(step for step, low in steps if lowest >= low)
    n_steps = math.ceil(round((1 - lowest) / step, 9))
    return tuple(round(1 - step * k, 2) for k in range(n_steps, -1, -1))


def round_ticks(low: float, high: float, n_ticks: int) -> tuple[float, ...]:
    """Return at most `n_ticks` + 1 round numbers inside of a range.

    >>> round_ticks(0, 1_300, 5)
    (0.0, 500.0, 1000.0)
    """
    rough = (high - low) / n_ticks
    unit = 10.0 ** math.floor(math.log10(rough or 1))
    step = next(unit * times for times in (1, 2, 5, 10) if unit * times >= rough)
    ticks = range(math.ceil(low / step), math.floor(high / step) + 1)
    return tuple(float(f"{step * k:.12g}") for k in ticks)


def accuracy_chart(accuracy: AccuracyLines | None, drifts: Sequence[Drift]) -> Chart | None:
    """Return the accuracy over the rows of a stream, or else from model to model.

    One model alone is a point, not a line: then there is no chart.
    """
    if accuracy is not None:
        return _rolling(accuracy, drifts)
    if sum(bool(drift.accuracies) for drift in drifts) <= 1:
        return None
    values = {
        name: tuple(drift.accuracies.get(name, math.nan) for drift in drifts)
        for name in mean_accuracies(drifts)
    }
    places = tuple(range(len(drifts)))
    chart = _accuracies(_LABEL, "", places, values, (-0.4, len(drifts) - 0.6))
    names = tuple(clean(drift.name) for drift in drifts)
    return replace(chart, names=names, drifts=tuple((k, k) for k in places), dots=True)


def score_chart(score: ScoreLine, drifts: Sequence[Drift]) -> Chart | None:
    """Return the score of a stream by its metric; none where no row has one."""
    known = [value for value in score.values if value is not None]
    if not known:
        return None
    words = metric_words(score.metric)
    lines = AccuracyLines(score.rows, {words: score.values}, score.window, score.drifts)
    room = 0.05 * ((max(known) - min(known)) or abs(max(known)) or 1)
    low, high = min(known) - room, max(known) + room
    return replace(
        _rolling(lines, drifts),
        label=f"{words} over time",
        y_range=(low, high),
        y_ticks=round_ticks(low, high, 4),
    )


def calibration_chart(quality: Quality) -> Chart:
    """Return what came true at each probability; a model that is calibrated is on the diagonal."""
    chances = tuple(part.chance for part in quality.calibration)
    shares = tuple(part.share for part in quality.calibration)
    highest = max(*chances, *shares, 0.05)
    lines = (Line("came true", shares, 0), Line("calibrated", chances))
    ticks = round_ticks(0, highest, 4)
    label = "Calibration: the share that came true, by probability"
    ends = (0.0, highest)
    view = View(chances, lines)
    return Chart(label, "probability", (view,), ends, ends, ticks, whole_x=False)


def error_charts(methods: Sequence[MethodScore]) -> Iterator[Chart]:
    """Yield charts of predicted numbers on held-out rows.

    They are the errors of all methods along the rows, and for the first method its answers beside
    the truth, what they missed, and how many truths were in the intervals.
    """
    known = {m.name: m.quality for m in methods if isinstance(m.quality, NumberQuality)}
    if not known:
        return
    name, first = next(iter(known.items()))
    rows = tuple(part.last for part in first.stretches)
    if len(rows) > 1:
        errors = tuple(
            Line(clean(method), tuple(part.error for part in quality.stretches), k)
            for k, (method, quality) in enumerate(known.items())
        )
        label = "Mean absolute error over time, a line for each method"
        yield _along_rows(label, View(rows, errors), 0.0)
    yield _truth_chart(name, first)
    if len(rows) > 1:
        parts = first.stretches
        missed = tuple(part.middle for part in parts)
        ends = (tuple(part.low for part in parts), tuple(part.high for part in parts))
        label = f"Residuals of {name} over time, truth minus answer: median and middle 80 %"
        yield _along_rows(label, View(rows, (Line("residual", missed, 0, *ends),), 0.0))
    covered = tuple(math.nan if p.covered is None else p.covered for p in first.stretches)
    if len(rows) > 1 and first.coverage is not None:
        label = f"Share of the truths in {name}'s intervals for 80 %, over time"
        view = View(rows, (Line("in interval", covered, 0),), COVERAGE, "aim")
        yield replace(_along_rows(label, view, 0.0), y_range=(0.0, 1.0), y_ticks=_SHARES)


def _truth_chart(name: str, quality: NumberQuality) -> Chart:
    """Return answers beside the truth; perfect ones are on the diagonal."""
    points = sorted(quality.points)
    truths, answers = zip(*points, strict=True)
    low, high = min(*truths, *answers), max(*truths, *answers)
    room = 0.03 * ((high - low) or abs(high) or 1)
    ends = (low - room, high + room)
    lines = (Line("answer", answers, 0, is_cloud=True), Line("perfect", truths))
    label = f"Predicted by {name} (up) against the truth (right); the grey line would be perfect"
    ticks = round_ticks(*ends, 4)
    return Chart(label, "truth", (View(truths, lines),), ends, ends, ticks, whole_x=False)


def _along_rows(label: str, view: View, *also: float) -> Chart:
    """Return a chart over held-out rows; `also` are values that the axis encloses."""
    values = [v for line in view.lines for v in (*line.values, *line.low, *line.high)]
    values = [value for value in values if math.isfinite(value)]
    low, high = min(*values, *also, *values), max(*values, *also, *values)
    room = 0.05 * ((high - low) or abs(high) or 1)
    ends = (low - (room if low < 0 else 0), high + room)
    ticks = round_ticks(*ends, 4)
    return Chart(label, "held-out row", (view,), (0, view.x[-1]), ends, ticks)


def stream_accuracy(curve: Mapping[str, Any], n_rows: int) -> str:
    """Draw the accuracy of a live stream up to its last row, from the service's answer.

    Of numbers, it is the mean absolute error. The line ends with the last full bucket; rows and
    drifts may be further. Without a full bucket the drawing is empty.
    """
    name, values = _curve(curve)
    drifts, is_error = curve["drifts"], name != "accuracy"
    if not values:
        return _EMPTY
    first = curve["first_row"]
    rows = tuple(first + curve["size"] * (k + 1) for k in range(len(values)))
    word, choose, shown = ("highest", max, "{:.6g}") if is_error else ("lowest", min, "{:.3f}")
    worst = choose(range(len(values)), key=values.__getitem__)
    label = (
        f"{name.capitalize()} up to row {rows[-1]:,}: now {shown.format(values[-1])}, {word} "
        f"{shown.format(values[worst])} at row {rows[worst]:,}; {plural(len(drifts), 'drift')}"
    )
    label += f", the last at row {drifts[-1]:,}" if drifts else ""
    last = max(n_rows, rows[-1], *drifts[-1:])
    if is_error:
        top = max(*values, 0.0) or 1.0
        view = View(rows, (Line(name, values, 0),))
        ends = (0.0, 1.05 * top)
        chart = Chart(label, "row", (view,), (first, last), ends, round_ticks(*ends, 4))
    else:
        chart = _accuracies(label, "row", rows, {name: values}, (first, last))
    marks = tuple((row, None) for row in drifts if row >= first)
    return page_chart(replace(chart, drifts=marks, dots=len(values) == 1), 216)


def sparkline(curve: Mapping[str, Any]) -> str:
    """Draw the latest accuracy or error of a live stream, small and without numbers."""
    name, values = _curve(curve)
    values = values[-_SPARK_BUCKETS:]
    if len(values) <= 1:
        return _EMPTY
    view = View(tuple(range(len(values))), (Line(name, values, 0),))
    ends = (min(*values, 0.9) - 0.01, 1.01) if name == "accuracy" else (0.0, max(*values) or 1.0)
    chart = Chart("", "", (view,), (0, len(values) - 1), ends)
    lines = "".join(_lines(view, chart, _SPARK_WIDTH, _SPARK_HEIGHT))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="dq spark" width="{_SPARK_WIDTH}" '
        f'height="{_SPARK_HEIGHT}" viewBox="0 0 {_SPARK_WIDTH} {_SPARK_HEIGHT}" '
        f'aria-hidden="true">{lines}</svg>'
    )


def _curve(curve: Mapping[str, Any]) -> tuple[str, tuple[float, ...]]:
    """Return what a live stream is measured by, and its values."""
    errors = curve.get("mean_absolute_error")
    if errors is None:
        return "accuracy", tuple(curve["accuracy"])
    return "mean absolute error", tuple(errors)


def page_chart(chart: Chart, height: float) -> str:
    """Draw a chart as wide as its place on a page; labels of axes stand outside of its box."""
    names = f' data-names="{attribute(json.dumps(chart.names))}"' if chart.names else ""
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" class="dq chart" width="100%" '
        f'height="{height:g}" role="img" aria-label="{attribute(chart.label)}" '
        f'data-x-name="{chart.x_name}" data-x-range="{_list(chart.x_range)}" '
        f'data-y-range="{_list(chart.y_range)}"{names}>'
        f"{''.join(chart_parts(chart, _WIDTH, height))}</svg>"
    )


def chart_parts(chart: Chart, width: float, height: float) -> Iterator[str]:
    """Yield the elements of a chart, for an SVG of this size with room around it for labels."""
    yield from _y_axis(chart, height)
    yield from _x_axis(chart, height)
    for x, model in chart.drifts:
        data = "" if model is None else f' data-drift="{model}"'
        place = f'x1="{_percent(chart.x(x))}" x2="{_percent(chart.x(x))}"'
        yield f'<line class="drift"{data} {place} y1="0" y2="{height:g}"/>'
    for number, view in enumerate(chart.views):
        kind = "view other" if number else "view"
        yield f'<g class="{kind}" data-view="{number}" data-x="{_list(view.x)}">'
        yield from _bound(view, chart, height)
        yield (
            f'<svg width="100%" height="{height:g}" viewBox="0 0 {width:g} {height:g}" '
            'preserveAspectRatio="none" overflow="visible">'
        )
        yield from _lines(view, chart, width, height)
        yield "</svg>"
        yield from _dots(view, chart, height) if chart.dots else ()
        yield "</g>"


def _rolling(accuracy: AccuracyLines, drifts: Sequence[Drift]) -> Chart:
    """Every drift is inside of the axis, also before the first window and after the last."""
    step = math.ceil(len(accuracy.rows) / _MAX_POINTS)
    values = {
        name: tuple(math.nan if value is None else value for value in line[::step])
        for name, line in accuracy.by_method.items()
    }
    first = min([accuracy.rows[0], *accuracy.drifts[:1]])
    last = max([accuracy.rows[-1], *accuracy.drifts[-1:]])
    margin = 0.02 * max(last - first, 1)
    rows = accuracy.rows[::step]
    chart = _accuracies(_LABEL, "row", rows, values, (first - margin, last + margin))
    model_from = {drift.row: number for number, drift in enumerate(drifts)}
    return replace(chart, drifts=tuple((row, model_from.get(row)) for row in accuracy.drifts))


def _accuracies(
    label: str,
    x_name: str,
    x: tuple[float, ...],
    values: Mapping[str, tuple[float, ...]],
    x_range: tuple[float, float],
) -> Chart:
    ticks = accuracy_ticks([value for line in values.values() for value in line])
    lines = tuple(Line(clean(name), line, k) for k, (name, line) in enumerate(values.items()))
    return Chart(label, x_name, (View(x, lines),), x_range, (ticks[0], 1.0), y_ticks=ticks)


def _y_axis(chart: Chart, height: float) -> Iterator[str]:
    for tick in chart.y_ticks:
        y = height * chart.y(tick)
        yield f'<line class="grid" x1="0" x2="100%" y1="{y:.1f}" y2="{y:.1f}"/>'
        yield f'<text class="small faint end num" x="-8" y="{y + 4:.1f}">{_number(tick)}</text>'


def _x_axis(chart: Chart, height: float) -> Iterator[str]:
    """Every second label, or three of four, can be left out where the chart is narrow."""
    labels = _name_labels(chart) if chart.names else _number_labels(chart)
    letters = max((min(len(label), _NAME_LETTERS) for _, label in labels), default=0)
    needed = len(labels) * (letters * _LETTER + 8)
    for k, (x, label) in enumerate(labels):
        level = " third" if k % 2 and needed > _NARROW else ""
        level = " second" if k % 4 == 2 and needed > 2 * _NARROW else level  # noqa: PLR2004
        yield (
            f'<text class="small faint middle num{level}" x="{_percent(chart.x(x))}" '
            f'y="{height + 20:g}">{content(shorten(label, _NAME_LETTERS))}</text>'
        )
    if chart.x_name:
        yield f'<text class="small faint end" x="100%" y="{height + 36:g}">{chart.x_name}</text>'


def _name_labels(chart: Chart) -> list[tuple[float, str]]:
    letters = min(max(map(len, chart.names)), _NAME_LETTERS)
    step = math.ceil(len(chart.names) * (letters * _LETTER + 16) / _WIDTH)
    return [(k, chart.names[k]) for k in range(0, len(chart.names), step)]


def _number_labels(chart: Chart) -> list[tuple[float, str]]:
    """Return round numbers; of rows and epochs, whole ones."""
    if not chart.whole_x:
        return [(tick, _number(tick)) for tick in round_ticks(*chart.x_range, _MAX_TICKS)]
    ticks = round_ticks(*chart.x_range, _MAX_ROW_TICKS)
    return [(tick, f"{tick:,.0f}") for tick in ticks if tick == round(tick)]


def _bound(view: View, chart: Chart, height: float) -> Iterator[str]:
    if view.bound is None:
        return
    y = height * chart.y(view.bound)
    yield f'<line class="bound" x1="0" x2="100%" y1="{y:.1f}" y2="{y:.1f}"/>'
    if view.bound_name:
        words = f"{view.bound_name} {view.bound:.3f}"
        yield f'<text class="small end num halo" x="100%" y="{y - 5:.1f}">{content(words)}</text>'


def _lines(view: View, chart: Chart, width: float, height: float) -> Iterator[str]:
    """Bands first; then lines, those with a colour last, so that they are above the others."""

    def point(x: float, value: float, digits: int) -> tuple[float, float]:
        return round(width * chart.x(x), 1), round(height * chart.y(value), digits)

    for number, line in enumerate(view.lines):
        known = [k for k, low in enumerate(line.low) if low < line.high[k]]
        if known:
            edge = [point(view.x[k], line.high[k], 1) for k in known]
            edge += [point(view.x[k], line.low[k], 1) for k in reversed(known)]
            yield f'<path class="range {line.style}" data-line="{number}" d="{_stroke(edge)}z"/>'
    order = sorted(enumerate(view.lines), key=lambda item: -(item[1].color or 0))
    for number, line in sorted(order, key=lambda item: item[1].color is not None):
        title = f"<title>{content(line.name)}</title>" if view is chart.views[0] else ""
        places = zip(view.x, line.values, strict=True)
        if line.is_cloud:
            dots = "".join(f"M{x:g} {y:g}h0" for x, y in (point(*xy, 1) for xy in places))
            yield f'<path class="line {line.style}" data-line="{number}" d="{dots}">{title}</path>'
            continue
        runs = groupby(places, key=lambda xy: math.isfinite(xy[1]))
        strokes = (_stroke([point(*xy, 2) for xy in run]) for is_known, run in runs if is_known)
        yield (
            f'<path class="line {line.style}" data-line="{number}" d="{"".join(strokes)}">'
            f"{title}</path>"
        )


def _stroke(points: Sequence[tuple[float, float]]) -> str:
    """Return a stroke through points: the first place, then steps; a point alone has one of 0.

    >>> _stroke([(0.0, 9.5), (12.5, 8.0), (25.0, 9.0)])
    'M0 9.5l12.5-1.5 12.5 1'
    """
    steps = [(b[0] - a[0], b[1] - a[1]) for a, b in pairwise(points)] or [(0.0, 0.0)]
    words = (f"{dx:.1f}".removesuffix(".0") + _signed(dy) for dx, dy in steps)
    return f"M{points[0][0]:g} {points[0][1]:g}l{' '.join(words)}"


def _signed(step: float) -> str:
    """Return a number to append: a minus separates it as well as a space."""
    text = f"{round(step, 2) or 0:g}"
    return text if text.startswith("-") else f" {text}"


def _dots(view: View, chart: Chart, height: float) -> Iterator[str]:
    for number, line in enumerate(view.lines):
        for x, value in zip(view.x, line.values, strict=True):
            if math.isfinite(value):
                place = f'cx="{_percent(chart.x(x))}" cy="{height * chart.y(value):.1f}"'
                yield f'<circle class="{line.style}" data-line="{number}" {place} r="4"/>'


def _number(value: float) -> str:
    """Return a number that is short enough for an axis.

    >>> _number(0.25), _number(20_000), _number(1.5e7)
    ('0.25', '20k', '15M')
    """
    size = abs(value)
    unit, end = next(((u, e) for u, e in _UNITS if size >= u), (1.0, ""))
    unit, end = (unit, end) if size >= _LONG else (1.0, "")
    return f"{value / unit:g}{end}".replace("-", "\N{MINUS SIGN}")


def _percent(share: float) -> str:
    return f"{100 * share:.2f}%"


def _list(values: Sequence[float]) -> str:
    return " ".join(f"{value:.12g}" for value in values)
