"""Pages of real values, made once: Quilt and others on a short stream of sine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache

from driftquilt.cli.paper import drifts_of
from driftquilt.decision.data_check import Finding
from driftquilt.paper.baselines.naive import CurrentSegment, FullData
from driftquilt.paper.datasets.synthetic import sine
from driftquilt.paper.protocol import compare
from driftquilt.quilt.method import Method, Quilt
from driftquilt.report.page import AccuracyLines, ColumnNote, Drift, Page, ScoreLine
from driftquilt.search.shared import Shared

HOSTILE = "</script><img src=x onerror=alert(1)>\"'&\x00 {{ 7 * 7 }} <b>bold</b>"


@cache
def drifts() -> tuple[Drift, ...]:
    """Five drifts with none to four past segments, two folds each."""
    quilt = Quilt(n_folds=2, max_epochs=12, search=Shared((0.25, 0.5, 1.0)))
    methods: dict[str, Method] = {
        "Quilt": quilt,
        "all data": FullData(max_epochs=12),
        "current only": CurrentSegment(max_epochs=12),
    }
    return tuple(drifts_of(compare(sine(5, 300), methods)))


def full_page() -> Page:
    """Everything that a page can have."""
    made = []
    for number, drift in enumerate(drifts()):
        correct = {str(name): 0.5 + 0.1 * k for k, name in enumerate(drift.selection.names)}
        made.append(replace(drift, row=300 * number + 30, of_past=correct))
    rows = tuple(range(100, 1600, 100))
    lines = {"Quilt": tuple(0.9 for _ in rows), "all data": (None, *(0.6 for _ in rows[1:]))}
    return Page(
        "Which months still speak for today",
        ("Of four months two were used.", "The others would have led the model astray."),
        tuple(made),
        AccuracyLines(rows, lines, 100, (30, 330, 630, 930, 1230, 1590)),
        (ColumnNote("age", "number", 0.02), ColumnNote("plan", "category", 0.3, "12 values")),
        ("A third of plan is missing.",),
        {"driftquilt": "0.1.0"},
        "driftquilt report churn.csv --label churned",
        "the values of the column 'month'",
        checks=(Finding("sentinel", "age", "column 'age' is 999 in 12 rows"),),
        score=ScoreLine("roc_auc", rows, (None, *(0.8 for _ in rows[1:])), 100, (330,)),
    )


def renamed(drift: Drift, names: Sequence[str], current: str) -> Drift:
    """The same scores under other names; more names than segments repeat the scores."""
    old = drift.selection
    where = [k % len(old.names) for k in range(len(names))]
    folds = tuple(
        replace(
            fold,
            selected=fold.selected[:, where],
            disparity=fold.disparity[:, where],
            gain=fold.gain[:, where],
        )
        for fold in old.folds
    )
    n_rows = tuple(old.n_rows[k] for k in where)
    selection = replace(old, names=tuple(names), n_rows=n_rows, folds=folds, current=current)
    return replace(drift, selection=selection)


def large_page(n_drifts: int, n_segments: int) -> Page:
    """So many drifts, each with so many past segments, with long names."""
    names = [f"the segment of week {k}" for k in range(n_segments)]
    last = drifts()[-1]
    made = tuple(renamed(last, names, f"the present {k}") for k in range(n_drifts))
    return Page("Large", (), made)


def hostile_page() -> Page:
    """A page on which every text tries to be something else."""
    names = [f"{k} {HOSTILE}" for k in range(4)]
    drift = renamed(drifts()[-1], names, f"now {HOSTILE}")
    drift = replace(
        drift,
        accuracies={f"m {HOSTILE}": 0.9, f"n {HOSTILE}": 0.5},
        of_past=dict.fromkeys(names, 0.5),
    )
    lines = AccuracyLines((1, 2), {HOSTILE: (0.5, 0.6)}, 10)
    note = ColumnNote(HOSTILE, HOSTILE, 0.5, HOSTILE)
    found = Finding("outlier", HOSTILE, HOSTILE)
    texts = (HOSTILE, HOSTILE)
    versions = {HOSTILE: HOSTILE}
    return Page(
        HOSTILE, texts, (drift, drift), lines, (note,), texts, versions, HOSTILE, checks=(found,)
    )
