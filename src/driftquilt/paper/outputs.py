"""Everything that `driftquilt reproduce` leaves behind: Markdown, CSV, figures and one page.

The paper is spoken of where it has a figure to compare with; a report on other streams, such as
the user's own, is a comparison of methods and nothing else.

The case study has two concepts ("Case Study: Two Concepts" in the paper). All rows come from one
distribution; rows of concept 0 have label 0, rows of concept 1 label 1. The current concept is 1.
The model is trained on current rows alone, and two past segments are only scored: one with the
current concept, one with the other.

>>> curves = case_study(seed=0)
>>> same, other = curves["same concept"], curves["other concept"]
>>> bool((10 * same.disparity < other.disparity).all())
True

>>> svg = lines_svg({"a": [(1, 2.0), (2, 3.0)]}, title="t", x_label="x", y_label="y")
>>> svg.count("<path")
1
"""

from __future__ import annotations

import html
import math
from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from driftquilt import __version__
from driftquilt.core.segment import Segment
from driftquilt.core.training import Rule, Run, Scores, Task, train
from driftquilt.learners.mlp import MLP
from driftquilt.paper.plan import EXPERIMENTS, METHODS, has_length, is_file
from driftquilt.paper.run import Result
from driftquilt.paper.tables import Table, make_tables, to_csv, to_html, to_markdown
from driftquilt.quilt.executor import one_blas_thread
from driftquilt.report.lines import Chart, Line, View, chart_parts, round_ticks
from driftquilt.report.svg import content, picture, shorten

__all__ = ["accuracy_curves", "case_study", "case_study_curves", "lines_svg", "write_report"]

_WIDTH, _HEIGHT = 640, 380
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 176, 66, 52  # from the edges to the box of the lines
_ROW, _LETTERS = 20, 20  # of the legend: height of a row, letters that fit into one
_N_TICKS = 5

Series = Mapping[str, Sequence[tuple[float, float]]]
Points = dict[str, list[tuple[float, float]]]

# Many rows are scored, so that chance does not set two samples of one concept apart; few are
# trained on, so that an epoch is a small step.
N_SCORED, N_TRAINED = 10_000, 500

_OURS = "Each cell: ours ± standard deviation over seeds{}. The best of ours in a column is bold."
_ALONE = "Each cell: mean ± standard deviation over seeds. The best in a column is bold."

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>driftquilt: {title}</title>
<meta name="viewport" content="width=device-width,initial-scale=1">
<style>
:root{{color-scheme:light dark}} body{{font:14px system-ui,sans-serif;margin:2rem auto;
max-width:82rem;padding:0 1rem}} h2{{margin-top:2.5rem}} code{{overflow-wrap:anywhere}}
table{{border-collapse:collapse;margin:1rem 0;display:block;overflow-x:auto;
font-variant-numeric:tabular-nums}} caption{{text-align:left;font-weight:600;padding:.3rem 0;
white-space:nowrap}} th,td{{padding:.25rem .5rem;text-align:right;white-space:nowrap;
border-bottom:1px solid #8884}} small{{opacity:.75}} tbody tr:hover{{background:#8881}}
th:first-child{{position:sticky;left:0;background:Canvas;text-align:left;font-weight:400;
padding-left:0}} .figures{{display:grid;gap:1rem;
grid-template-columns:repeat(auto-fit,minmax(min(30rem,100%),1fr))}}
.figures>svg{{max-width:100%;height:auto}}
</style></head><body>
<h1>{title}</h1>
<p>{legend}</p><p>driftquilt {version}; command: <code>{command}</code></p>
{body}
</body></html>
"""


def write_report(
    results: Sequence[Result], experiments: Iterable[str], out: Path, *, command: str
) -> list[Path]:
    """Write what the results have rows for; return the files, the page first."""
    results, experiments = sorted(results, key=lambda r: r.cell), list(experiments)
    tables, pictures = make_tables(results, experiments), _pictures(results, experiments)
    out.mkdir(parents=True, exist_ok=True)
    page = _page(_title(results, tables), tables, pictures, command)
    written = [_write(out / "report.html", page)]
    for group in dict.fromkeys(table.experiment for table in tables):
        chosen = [table for table in tables if table.experiment == group]
        legend = _legend(chosen, " (the paper's figure, difference)")
        text = "\n".join([f"`{command}`", "", legend, "", *map(to_markdown, chosen)])
        written.append(_write(out / f"{group}.md", text))
    written.append(_write(out / "tables.csv", to_csv(tables)))
    if pictures:
        (out / "figures").mkdir(exist_ok=True)
    written += [_write(out / "figures" / f"{name}.svg", svg) for name, svg in pictures.items()]
    return written


def _pictures(results: Sequence[Result], experiments: Sequence[str]) -> dict[str, str]:
    datasets = list(dict.fromkeys(result.dataset for result in results))
    pictures = {}
    if "selection" in experiments:
        for dataset in filter(EXPERIMENTS["selection"].covers, datasets):
            pictures[f"curve-{_file_name(dataset, datasets)}"] = lines_svg(
                accuracy_curves(results, dataset),
                title=f"Accuracy as segments come in, {dataset}",
                x_label="segment",
                y_label="accuracy",
            )
    long = EXPERIMENTS["scalability"].datasets
    for dataset in datasets:
        if dataset in long or ("scalability" in experiments and has_length(dataset)):
            name = "" if dataset in long else f"-{_file_name(dataset, datasets)}"
            pictures[f"scalability{name}"] = lines_svg(
                cost_curves(results, dataset),
                title=f"Cost of a drift, {dataset.partition(':')[0]}",
                x_label="number of segments",
                y_label="CPU seconds of the training (log)",
                log_y=True,
            )
    own_only = bool(datasets) and all(map(is_file, datasets))
    if "case-study" in experiments and (experiments == ["case-study"] or not own_only):
        pictures |= _case_study_pictures()  # of made-up rows, which say nothing of the user's
    return pictures


def _case_study_pictures() -> dict[str, str]:
    return {
        f"case-study-{score}": lines_svg(
            points, title=f"Case study: {score}", x_label="epoch", y_label=score
        )
        for score, points in case_study_curves(case_study()).items()
    }


def _file_name(dataset: str, datasets: Sequence[str]) -> str:
    """Return the stream's name; numbered where files of several folders share it."""
    stems = [Path(name).stem.replace(":", "-") for name in datasets]
    number = datasets.index(dataset)
    same = stems[:number].count(stems[number])
    return f"{stems[number]}-{same + 1}" if same else stems[number]


def _title(results: Iterable[Result], tables: Sequence[Table]) -> str:
    datasets = dict.fromkeys(result.dataset for result in results)
    if _has_published(tables):
        return "The paper's evaluation, theirs beside ours"
    return f"Methods compared on {', '.join(datasets)}" if datasets else "The paper's case study"


def _legend(tables: Sequence[Table], where: str) -> str:
    """Return what a cell means; `where` says in which place the paper's figure stands."""
    return _OURS.format(where) if _has_published(tables) else _ALONE if tables else ""


def _has_published(tables: Iterable[Table]) -> bool:
    return any(value.paper is not None for table in tables for value in table.cells.values())


def _page(title: str, tables: Sequence[Table], pictures: Mapping[str, str], command: str) -> str:
    body = []
    for group in dict.fromkeys(table.experiment for table in tables):
        body.append(f"<h2>{group.capitalize()}</h2>")
        body += [to_html(table) for table in tables if table.experiment == group]
    if pictures:
        body += ["<h2>Figures</h2>", "<div class='figures'>", *pictures.values(), "</div>"]
    return _PAGE.format(
        title=html.escape(title),
        legend=html.escape(_legend(tables, "; below it the paper's figure, difference")),
        version=__version__,
        command=html.escape(command),
        body="\n".join(body),
    )


def _write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def accuracy_curves(results: Sequence[Result], dataset: str) -> Points:
    """Accuracy on each segment in turn, averaged over seeds: Quilt and its bounds."""
    hidden = set(METHODS).difference(EXPERIMENTS["selection"].methods, ["quilt_default"])
    return _curves(results, dataset, lambda r: r.accuracy, hidden)


def cost_curves(results: Sequence[Result], dataset: str) -> Points:
    """CPU seconds of the training that made the model, by number of segments."""
    curves = _curves(results, dataset, lambda r: r.training_cpu_seconds)
    return {name: [(x + 1, y) for x, y in points] for name, points in curves.items()}


def case_study_curves(curves: Mapping[str, Scores]) -> dict[str, Points]:
    """Both scores by epoch, for each of the two past segments."""
    return {
        score: {
            name: list(enumerate(getattr(scores, score).tolist(), start=1))
            for name, scores in curves.items()
        }
        for score in ("disparity", "gain")
    }


def case_study(seed: int = 0, *, n_epochs: int = 60) -> dict[str, Scores]:
    """Return the scores of both past segments, each of shape (epochs,)."""
    rng = np.random.default_rng(seed)
    past = [
        _segment(rng, "same concept", 1, N_SCORED),
        _segment(rng, "other concept", 0, N_SCORED),
    ]
    task = Task(
        past,
        current=_segment(rng, "today", 1, N_TRAINED),
        validation=_segment(rng, "today", 1, N_SCORED),
        rule=Rule(use_gain=False),
        max_epochs=n_epochs,
        patience=n_epochs,
        seed=seed,
    )
    with one_blas_thread():
        model = MLP().start(task.current.X, n_classes=2, seed=seed)
        epochs = list(train(Run(task, model), disparity_max=-math.inf))
    return {
        str(segment.name): Scores(
            np.array([epoch.scores.disparity[s] for epoch in epochs]),
            np.array([epoch.scores.gain[s] for epoch in epochs]),
        )
        for s, segment in enumerate(past)
    }


def _curves(
    results: Sequence[Result],
    dataset: str,
    metric: Callable[[Result], float],
    hidden: Container[str] = (),
) -> Points:
    values: dict[str, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for result in results:
        if result.dataset == dataset and result.method not in hidden:
            values[result.method][result.segment].append(metric(result))
    order = [m for m in METHODS if m in values] + [m for m in values if m not in METHODS]
    return {
        method: [(float(s), float(np.mean(values[method][s]))) for s in sorted(values[method])]
        for method in order
    }


def lines_svg(
    series: Series, *, title: str, x_label: str, y_label: str, log_y: bool = False
) -> str:
    """Return the picture as SVG text; points that have no place in it are left out."""
    shown = [
        (name, {x: y for x, y in points if math.isfinite(x + y) and (y > 0 or not log_y)})
        for name, points in series.items()
    ]
    xs = sorted({x for _, points in shown for x in points}) or [0.0]
    ys = [y for _, points in shown for y in points.values()] or [1.0]
    lines = tuple(
        Line(name, tuple(points.get(x, math.nan) for x in xs), k)
        for k, (name, points) in enumerate(shown)
    )
    y_ticks = _decades(min(ys), max(ys)) if log_y else ()
    y_range = (y_ticks[0], y_ticks[-1]) if log_y else _with_margin(min(ys), max(ys))
    chart = Chart(
        title,
        x_label,
        (View(tuple(xs), lines),),
        (xs[0], max(xs[-1], xs[0] + 1)),
        y_range,
        y_ticks or round_ticks(*y_range, _N_TICKS),
        log_y=log_y,
    )
    width, height = _WIDTH - _LEFT - _RIGHT, _HEIGHT - _TOP - _BOTTOM
    parts = [
        f'<text class="small faint" x="20" y="50">{content(y_label)}</text>',
        f'<svg x="{_LEFT}" y="{_TOP}" width="{width}" height="{height}" overflow="visible">',
        *chart_parts(chart, width, height),
        "</svg>",
        *_line_names(lines),
    ]
    return picture(parts, _WIDTH, max(_HEIGHT, _TOP + _ROW * (len(lines) + 1)), title)


def _line_names(lines: Sequence[Line]) -> Iterator[str]:
    x = _WIDTH - _RIGHT + 14
    for k, line in enumerate(lines):
        y = _TOP + 6 + _ROW * k
        yield f'<line class="line {line.style}" x1="{x}" x2="{x + 16}" y1="{y}" y2="{y}"/>'
        name = content(shorten(line.name, _LETTERS))
        full = content(line.name)
        yield f'<text class="small" x="{x + 22}" y="{y + 4}">{name}<title>{full}</title></text>'


def _with_margin(low: float, high: float) -> tuple[float, float]:
    """Return a range around two values, which may be the same."""
    size = max(abs(low), abs(high))
    span = high - low if high - low > 1e-9 * size else size
    margin = 0.06 * (span if span > 1e-300 else 1.0)  # noqa: PLR2004  # below it is as good as none
    return low - margin, high + margin


def _decades(low: float, high: float) -> tuple[float, ...]:
    """Return powers of ten that enclose a range."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    return tuple(10.0**k for k in range(first, max(last, first + 1) + 1))


def _segment(rng: np.random.Generator, name: str, label: int, n_rows: int) -> Segment:
    X = rng.normal(size=(n_rows, 2)).astype(np.float32)
    return Segment(name, X, np.full(n_rows, label), np.ones(n_rows, np.float32))
