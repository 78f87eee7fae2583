"""Everything that `driftquilt reproduce` leaves behind: Markdown, CSV, pictures and one page.

The paper is spoken of where it has a figure to compare with; a report on other streams, such as
the user's own, is a comparison of methods and nothing else.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from driftquilt import __version__
from driftquilt.paper.figures import (
    accuracy_curves,
    case_study,
    case_study_curves,
    cost_curves,
    lines_svg,
)
from driftquilt.paper.plan import EXPERIMENTS, has_length, is_file
from driftquilt.paper.results import Result
from driftquilt.paper.tables import Table, make_tables, to_csv, to_html, to_markdown

__all__ = ["write_report"]

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
    """The stream's name; numbered where files of several folders share it."""
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
    """What a cell means; `where` says in which place the paper's figure stands."""
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
