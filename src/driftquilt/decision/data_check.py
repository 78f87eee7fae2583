"""Check the data before a training: what a person should look at before trusting the model.

Each finding is a value: its kind, the column if it is about one, a sentence that says what was
found and what to do, and the figures in it. Nothing is refused or changed. Of a long table the
columns are judged by 50,000 labelled rows, evenly spaced; labels and segments by all rows.

A finding that makes the scores worthless blocks the advice, unless the data is accepted as it is:

    near_perfect     if the label of the row before does not say as much
    label_leak       if the label of the row before does not say as much
    order            segments of known time that go back, or mixed with each other
    similar_labels   classes that differ by case or by blanks inside
    unlabelled       a last segment without any label

The row before is what a lagged column of a slow series knows, honestly. Segments that go back are
those of a column of times, or numbers and years in their names; 11, 12, 1, 2 only begins a year.

    near_perfect     all models are nearly always right on the held-out rows
    label_text       texts among numbers to predict, which count as no label
    label_leak       a column that alone separates the classes, or quarters of the numbers
    order            rows or segments that are not in order of time
    label_tail       a current segment of which only the first rows have a label
    missing_class    a class that the current rows lack, or only the held-out rows have
    similar_labels   classes that differ by case or blanks inside only; blanks around them
    unlabelled       rows without a label
    segment_leak     a column whose values differ from segment to segment
    id               a column in which nearly every value is different
    sentinel         a number such as 999 or -1 that stands apart from the others and repeats
    outlier          numbers far beyond the others; of the label, too
    rare_categories  a column of text with more values than can have a column of their own
    constant         a column that is always the same
    unused           a column that cannot be learned from

>>> x = np.tile(np.arange(50.0), 8)
>>> table = pa.table({"x": x, "y": np.where(x > 20, "Yes", "no"), "month": [1] * 200 + [2] * 200})
>>> table = table.set_column(1, "y", pa.array(["yes", *table["y"].to_pylist()[1:]]))
>>> findings = check_data(table, "y", table["month"], drop=["month"])
>>> [(finding.kind, finding.column) for finding in findings]
[('label_leak', 'x'), ('missing_class', None), ('similar_labels', None)]
>>> findings[-1].sentence
"classes of 'y' differ by case or by blanks inside only: 'Yes' and 'yes'; write them in one way"
"""

from __future__ import annotations

import re
import shlex
import warnings
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from driftquilt.data.column_types import (
    CONSTANT_NOTE,
    ID_NOTE,
    ColumnFacts,
    blocks,
    check_table,
    describe,
    features,
    is_text,
)
from driftquilt.data.encoder import Text
from driftquilt.data.labels import Codes, warn_of_order
from driftquilt.decision.labels import Amounts, AnyLabels, Labels, note_blanks, read_target
from driftquilt.decision.layout import Layout, Rows, lay_out, spread
from driftquilt.decision.leakage import (
    find_leaking_columns,
    label_auc,
    leakage_warning,
    take_rows,
    to_numbers,
)
from driftquilt.decision.measure import MethodScore, name_some
from driftquilt.decision.scoring import Question
from driftquilt.quilt.explanation import percent
from driftquilt.text import plural

Kind = Literal[
    "near_perfect", "label_text", "label_leak", "order", "label_tail", "missing_class",
    "similar_labels", "unlabelled", "segment_leak", "id", "sentinel", "outlier", "rare_categories",
    "constant", "unused",
]  # fmt: skip
KINDS: tuple[Kind, ...] = get_args(Kind)  # the most serious first
Numbers = NDArray[np.float64]

_SAMPLE = 50_000  # labelled rows whose values are looked at
_FEW = 100  # values, too few to judge
_GIVES_AWAY = 0.98  # area under the ROC curve
_QUARTERS = (0.25, 0.5, 0.75)
_TAIL = 0.1  # of a segment's rows, that a tail without labels has at least

_BY_CHANCE = 7  # equal pairs to expect among amounts, where ids have none
_ID_NAME = re.compile(r"(^|[_\W])(id|uuid|guid|key|nr|no|number)$|[a-z](Id|ID|Nr|No|Key)$")

_REPEATS = 5  # rows with a sentinel
_MAX_SENTINELS = 3  # on one side
_CODE = re.compile(r"9{2,}|9+[678]")  # digits of a sentinel: 99, 98, 9997
_NEGATIVE_CODES = (-1.0, -9.0, -99.0, -999.0, -9999.0, -99999.0)
_MANY, _SOME = 10, 3  # different numbers beside a sentinel
_FAR = 3  # spans of the other numbers, where the digits are no code's

_EXTREME_ROWS = 0.005  # of all rows, that extremes are at most
_TAIL_GROWS = 2.2  # of the deviations' logarithm, from 99 % to 99.95 % of the rows; Pareto: 1.7
_GAP = 1.2  # the same for a gap, in units of that of 99 %
_FAR_OUT = 10  # times as far from the median as 99 % of the others

_RARE_ROWS = 0.05  # of all rows, below which rare categories do not matter
_IS_CLOCK = 0.9  # rank correlation of a time with the rows
_OUT_OF_PLACE = 0.05  # of a segment: by so much, and so many rows
_MAX_TEXTS = 3  # in a sentence
_MIN_MEASURED = 100  # held-out rows
_YEAR_FIRST = re.compile(r"(19|20)\d\d(\D|$)")
_A_YEAR = 367  # days, weeks, months or hours, that begin again
_HALF = 0.5  # of the errors that the label of the row before leaves


@dataclass(frozen=True)
class Finding:
    """Something to look at: the kind, the column or None, a sentence, and the figures in it.

    What `blocks` makes the scores worthless, so that the advice is to check the data.
    """

    kind: Kind
    column: str | None
    sentence: str
    figures: Mapping[str, float] = field(default_factory=dict)
    blocks: bool = False


def check_data(
    table: pa.Table,
    label: str,
    segments: Any,
    *,
    current: Any = None,
    holdout: float = 0.3,
    drop: Iterable[str] = (),
) -> tuple[Finding, ...]:
    """Return what to look at before training on a table; the arguments are those of `decide`."""
    check_table(table)
    labels, facts, drop = read_target(table, label), describe(table), set(drop)
    layout = lay_out(labels, segments, current=current, holdout=holdout)
    columns = features(table, label, drop, facts=facts)
    facts = tuple(fact for fact in facts if fact.name not in drop)
    return find_problems(table, columns, labels, segments, layout, facts)


def find_problems(
    table: pa.Table,
    columns: pa.Table,
    labels: AnyLabels,
    segments: Any,
    layout: Layout,
    facts: Iterable[ColumnFacts],
) -> tuple[Finding, ...]:
    """Return the same, the most serious first; `columns` are those to learn from."""
    sample = spread(layout.rows, _SAMPLE)
    findings = (
        *(_check_amounts(labels) if isinstance(labels, Amounts) else _check_labels(table, labels)),
        *_check_order(table, labels.name, layout, sample),
        *_check_unlabelled(labels, segments, layout),
        *(_check_classes(layout, labels) if isinstance(labels, Labels) else ()),
        *_check_facts(fact for fact in facts if fact.name != labels.name),
        *_check_columns(columns, labels, layout, np.sort(sample)),
    )
    return tuple(sorted(findings, key=lambda finding: KINDS.index(finding.kind)))


def check_scores(question: Question, methods: Sequence[MethodScore]) -> tuple[Finding, ...]:
    """Return a finding if all models are nearly always right on the held-out rows."""
    if len(question.y) < _MIN_MEASURED:
        return ()
    words, figures = question.too_good(methods)
    if not words:
        return ()
    sentence = (
        f"all {len(methods)} models {words}, which real data seldom allow; look for a column that "
        "is made from the label or known only after it, and leave it out with --drop"
    )
    is_strange = not question.is_slow()
    return (Finding("near_perfect", None, sentence, figures, blocks=is_strange),)


def _check_amounts(labels: Amounts) -> Iterator[Finding]:
    """Yield what is strange about the numbers to predict."""
    values = labels.values[labels.known]
    shown = values[spread(np.arange(len(values)), _SAMPLE)]
    if labels.odd:
        sentence = (
            f"the label {labels.name!r} holds numbers, but also text such as "
            f"{name_some([*map(repr, labels.odd[:_MAX_TEXTS])])}; such rows count as unlabelled"
        )
        yield Finding("label_text", None, sentence, {"texts": len(labels.odd)})
    yield from _check_numbers(labels.name, pa.chunked_array([shown]), "label")


def _check_labels(table: pa.Table, labels: Labels) -> Iterator[Finding]:
    note = note_blanks(table, labels.name)
    yield from (Finding("similar_labels", None, sentence) for sentence in note)
    by_meaning = defaultdict[object, list[object]](list)
    for meaning, name in zip(_meanings(labels), labels.classes.tolist(), strict=True):
        by_meaning[meaning].append(name)
    for names in by_meaning.values():
        if len(names) > 1:
            alike = " and ".join(map(repr, names))
            sentence = (
                f"classes of {labels.name!r} differ by case or by blanks inside only: {alike}; "
            )
            sentence, figures = f"{sentence}write them in one way", {"classes": len(names)}
            yield Finding("similar_labels", None, sentence, figures, blocks=True)


def _meanings(labels: Labels) -> list[object]:
    """Return each class without the case and the blanks that it is written in."""
    names = labels.classes.tolist()
    return [" ".join(n.casefold().split()) if isinstance(n, str) else n for n in names]


def _check_order(table: pa.Table, label: str, layout: Layout, sample: Rows) -> Iterator[Finding]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warn_of_order(layout.names)
    for warning in caught:
        yield Finding("order", None, str(warning.message), blocks=_goes_back(layout.names))
    if (layout.rows[1:] < layout.rows[:-1]).any():
        sentence = (
            "rows of one segment have rows of others between them; a month without its year, for "
            "example, mixes the years"
        )
        yield Finding("order", None, sentence, blocks=_is_mixed(layout.rows))
    places = np.arange(len(sample)) * len(layout.rows) // len(sample)  # as `spread` has them
    segments = np.searchsorted(layout.ends, places, "right")
    for column in table.schema:
        is_time = pa.types.is_timestamp(column.type) or pa.types.is_date(column.type)
        if is_time and column.name != label:
            times = _times(table[column.name], sample)
            sentence, goes_back = _out_of_order(column.name, times, segments, layout.names)
            if sentence:
                yield Finding("order", column.name, sentence, blocks=goes_back)


def _goes_back(names: Sequence[Hashable]) -> bool:
    """Return whether segments whose names tell their time come in another order.

    >>> _goes_back([2023, 2021, 2022]), _goes_back([11, 12, 1, 2]), _goes_back(["9/23", "1/24"])
    (True, False, False)
    """
    if all(isinstance(name, str) for name in names):
        if not all(_YEAR_FIRST.match(str(name)) for name in names):
            return False
        names = [tuple(map(int, re.findall(r"\d+", str(name)))) for name in names]
    n_back = sum(a > b for a, b in pairwise(names))  # type: ignore[operator]
    is_round = isinstance(names[0], int | float) and abs(names[0]) < _A_YEAR
    return n_back > int(is_round and bool(names[-1] < names[0]))  # type: ignore[operator]


def _is_mixed(rows: Rows) -> bool:
    """Return whether many rows, listed segment by segment, lie far from their place."""
    moved = np.abs(_ranks(rows) - np.arange(len(rows)))
    return bool((moved > max(_OUT_OF_PLACE * len(rows), 1)).mean() > _OUT_OF_PLACE)


def _times(column: pa.ChunkedArray, rows: Rows) -> Numbers:
    """Return times of rows as numbers, NaN where missing, in the order of `rows`."""
    order = np.argsort(rows, kind="stable")
    taken = take_rows(column, rows[order])
    whole = taken.cast(pa.int32()) if pa.types.is_date32(taken.type) else taken.cast(pa.int64())
    times = np.empty(len(rows))
    times[order] = whole.to_numpy()
    return times


def _out_of_order(
    name: str, times: Numbers, segments: NDArray[np.intp], names: Sequence[Hashable]
) -> tuple[str, bool]:
    """Return what is not in order, and whether segments are.

    The column must be a clock, which a date of birth is not.
    """
    known = ~np.isnan(times)
    times, segments = times[known], segments[known]
    if len(times) < _FEW or np.ptp(times) == 0:
        return "", False
    here = np.unique(segments)
    by_segment = [times[segments == segment] for segment in here]
    ends = sorted(tuple(np.quantile(t, (0.025, 0.975))) for t in by_segment)
    lie_apart = len(ends) > 1 and all(low > high for (_, high), (low, _) in pairwise(ends))
    agreement = float(np.corrcoef(_ranks(times), np.arange(len(times)))[0, 1])
    if not lie_apart and abs(agreement) < _IS_CLOCK:
        return "", False
    middles = [float(np.median(t)) for t in by_segment]
    back = next((k for k in range(1, len(here)) if middles[k] < middles[k - 1]), None)
    if back is not None:
        late, early = names[here[back - 1]], names[here[back]]
        return (
            f"by {name!r} the segments are not in order of time: {early} comes after {late}, but "
            f"is earlier; the last one, {names[-1]}, is taken for the present, so sort the rows by "
            f"{name!r}"
        ), True
    last = by_segment[-1]
    moved = np.abs(_ranks(last) - np.arange(len(last))) > max(_OUT_OF_PLACE * len(last), 1)
    if moved.mean() <= _OUT_OF_PLACE:
        return "", False
    return (
        f"the rows of {names[here[-1]]} are not in order of {name!r}, so that the held-out rows "
        f"are not the latest; sort the rows by {name!r}"
    ), False


def _ranks(values: NDArray[Any]) -> NDArray[np.intp]:
    """Return the place of each value in sorted order; equal ones stay in their order."""
    ranks = np.empty(len(values), dtype=np.intp)
    ranks[np.argsort(values, kind="stable")] = np.arange(len(values))
    return ranks


def _check_unlabelled(labels: AnyLabels, segments: Any, layout: Layout) -> Iterator[Finding]:
    if not layout.n_unlabelled:
        return
    name, n_rows = layout.names[-1], len(labels.known)
    if layout.without_labels:
        which = layout.without_labels
        last = f"the last {len(which)} segments, {name_some(which)}, have"
        last = f"the last segment, {which[0]}, has" if len(which) == 1 else last
        sentence = (
            f"{last} no labels; decided for {name}: label some of the newest rows, or name the "
            f"segment to train for with --current {shlex.quote(str(name))}"
        )
        yield Finding("unlabelled", None, sentence, {"segments": len(which)}, blocks=True)
    n_labelled = int(layout.ends[-1] - layout.ends[-2])
    n_tail = _count_tail(segments, int(layout.rows[-1]))
    if n_tail > max(_TAIL * (n_labelled + n_tail), 1):
        sentence = (
            f"only the first {n_labelled:,} of {plural(n_labelled + n_tail, 'row')} of {name} have "
            f"a label; if later rows differ from them, the model is chosen and measured on the "
            "wrong ones, so label some of the later rows too"
        )
        figures = {"rows": n_tail, "labelled": n_labelled}
        yield Finding("label_tail", None, sentence, figures)
    sentence = f"no {labels.name!r} in {layout.n_unlabelled:,} of {plural(n_rows, 'row')}, left out"
    yield Finding("unlabelled", None, sentence, {"rows": layout.n_unlabelled})


def _count_tail(segments: Any, last: int) -> int:
    """Count the rows right after row `last` that belong to its segment."""
    column = pa.chunked_array([segments]) if isinstance(segments, pa.Array) else segments
    name, n_rows = next(blocks(column.slice(last, 1)))[0], 0
    for block in blocks(column.slice(last + 1)):
        same = pc.equal(block, name).to_numpy(zero_copy_only=False)
        if not same.all():
            return n_rows + int(np.argmin(same))
        n_rows += len(same)
    return n_rows


def _check_classes(layout: Layout, labels: Labels) -> Iterator[Finding]:
    name = layout.names[-1]
    trained, here = labels.present(layout.trained), labels.present(layout.current)
    past_only = labels.classes[np.setdiff1d(trained, here)].tolist()
    new = labels.classes[np.setdiff1d(labels.codes[layout.held_out], trained)].tolist()
    if past_only:
        sentence = (
            f"the class {name_some(past_only)} occurs only in the past, not in the rows of {name} "
            "to train on"
        )
        yield Finding("missing_class", None, sentence, {"classes": len(past_only)})
    if len(here) == 1:
        sentence = (
            f"the rows of {name} to train on are all {labels.classes[here[0]]}, so there is no "
            "model of the current segment only to compare with"
        )
        yield Finding("missing_class", None, sentence, {"classes": 1})
    if new:
        sentence = (
            f"the class {name_some(new)} occurs only in the held-out rows of {name}; no model can "
            "know it"
        )
        yield Finding("missing_class", None, sentence, {"classes": len(new)})


def _check_facts(facts: Iterable[ColumnFacts]) -> Iterator[Finding]:
    for fact in facts:
        if not fact.used:
            kind: Kind = "id" if fact.note == ID_NOTE else "unused"
            yield Finding(kind, fact.name, f"column {fact.name!r} is {fact.note}")
        elif fact.note == CONSTANT_NOTE:
            sentence = f"column {fact.name!r} is {fact.note}, so it tells nothing; leave it out"
            yield Finding("constant", fact.name, f"{sentence} with {_drop(fact.name)}")


def _check_columns(
    columns: pa.Table, labels: AnyLabels, layout: Layout, rows: Rows
) -> Iterator[Finding]:
    codes = _groups(labels, rows)
    reveals_segment = find_leaking_columns(columns, layout)
    for name in columns.column_names:
        values = take_rows(columns[name], rows)
        yield from _gives_away(name, values, codes, labels, rows)
        if name in reveals_segment:
            yield Finding("segment_leak", name, leakage_warning([name]))
        elif is_text(values.type) or pa.types.is_dictionary(values.type):
            yield from _check_categories(name, values)
        elif _is_number(values.type):
            yield from _check_numbers(name, values)


def _groups(labels: AnyLabels, rows: Rows) -> Codes:
    """Return what a column might separate: classes, or the quarters of numbers."""
    if isinstance(labels, Amounts):
        values = labels.of(rows)
        ends = np.unique(np.quantile(values, _QUARTERS))
        return np.searchsorted(ends, values, side="left").astype(np.int32)
    numbers: dict[object, int] = {}
    place = np.array([numbers.setdefault(name, len(numbers)) for name in _meanings(labels)])
    codes: Codes = place[labels.codes[rows]]
    return codes


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def _gives_away(
    name: str, values: pa.ChunkedArray, codes: Codes, labels: AnyLabels, rows: Rows
) -> Iterator[Finding]:
    area = label_auc(values, codes, int(codes.max()) + 1)
    if area is None or area <= _GIVES_AWAY:
        return
    parts = "low and high" if isinstance(labels, Amounts) else "the classes of"
    sentence = (
        f"column {name!r} gives the label away: alone it separates {parts} "
        f"{labels.name!r} almost perfectly (AUC {area:.3f}); if it is made from the label, or not "
        f"known when the model has to answer, leave it out with {_drop(name)}"
    )
    before = label_auc(_labels_before(labels, rows), codes, int(codes.max()) + 1) or 0.0
    is_strange = 1 - area < _HALF * (1 - before)
    yield Finding("label_leak", name, sentence, {"auc": area}, blocks=is_strange)


def _labels_before(labels: AnyLabels, rows: Rows) -> pa.ChunkedArray:
    """Return the label of the row before each of these, in order of the table."""
    before = np.maximum(rows - 1, 0)
    if isinstance(labels, Amounts):
        return pa.chunked_array([np.where(rows > 0, labels.values[before], np.nan)])
    return pa.chunked_array([np.where(rows > 0, labels.codes[before], -1).astype(str)])


def _drop(name: str) -> str:
    return f"--drop {shlex.quote(name)}"


def _check_categories(name: str, values: pa.ChunkedArray) -> Iterator[Finding]:
    known = pa.concat_arrays(list(blocks(values))).drop_null()
    counts: dict[str | None, int] = {
        str(pair["values"]): pair["counts"] for pair in known.value_counts().to_pylist()
    }
    n_values, n_rows = len(counts), len(known)
    if not n_rows:
        return
    own = set(Text.fit(name, counts, n_rows).categories)
    rare = [n for value, n in counts.items() if value not in own]
    share = sum(rare) / n_rows
    if share < _RARE_ROWS:
        return
    sentence = (
        f"column {name!r} has {n_values:,} different values in {plural(n_rows, 'row')}; "
        f"{len(rare):,} of them, in {percent(share)} of the rows, are too rare for a column of "
        "their own; group them, for example into regions or families"
    )
    figures = {"values": n_values, "rare_values": len(rare), "rare_share": share}
    yield Finding("rare_categories", name, sentence, figures)


def _is_id(name: str, numbers: Numbers) -> bool:
    """Return whether all are whole and different, and by name or by chance not amounts."""
    n = len(numbers)
    if not (numbers[1:] > numbers[:-1]).all() or (numbers % 1).any():
        return False
    equal_pairs = n * n / 2 / (numbers[-1] - numbers[0] + 1)  # at least, among amounts
    return equal_pairs > _BY_CHANCE or _ID_NAME.search(name) is not None


def _numeric_id(name: str, n_rows: int) -> Finding:
    sentence = (
        f"column {name!r} looks like an id: all {n_rows:,} whole numbers looked at are different; "
        f"leave it out with {_drop(name)}"
    )
    return Finding("id", name, sentence, {"rows": n_rows})


class Sentinels(NamedTuple):
    """Numbers that stand for something else, how many rows have them, and the others, sorted."""

    values: list[float]
    n_rows: int
    others: Numbers


def _check_numbers(name: str, column: pa.ChunkedArray, what: str = "column") -> Iterator[Finding]:
    numbers = to_numbers(column)
    numbers = np.sort(numbers[np.isfinite(numbers)])
    if len(numbers) < _FEW:
        return
    if what == "column" and _is_id(name, numbers):
        yield _numeric_id(name, len(numbers))
        return
    values, n_rows, others = _find_sentinels(numbers)
    if values:
        which = " or ".join(f"{value:g}" for value in values)
        sentence = (
            f"{what} {name!r} is {which} in {n_rows:,} of {len(numbers):,} rows looked at, apart "
            f"from the others ({others[0]:g} to {others[-1]:g}); if that means missing or "
            "unknown, leave those cells empty"
        )
        figures = {"rows": n_rows, "lowest": values[0], "highest": values[-1]}
        yield Finding("sentinel", name, sentence, figures)
    extremes = _find_extremes(others)
    if len(extremes):
        low, high = np.quantile(others, (0.005, 0.995))
        far = max(extremes, key=lambda value: abs(value - others[len(others) // 2]))
        sentence = (
            f"{what} {name!r} is far beyond its other values in {len(extremes):,} of "
            f"{len(numbers):,} rows looked at, such as {far:g}, where 99 % lie between {low:g} and "
            f"{high:g}; check that they are real and in the same unit, and leave the cells empty "
            "if not"
        )
        yield Finding("outlier", name, sentence, {"rows": len(extremes), "value": float(far)})


def _find_sentinels(numbers: Numbers) -> Sentinels:
    """Return the outermost numbers that repeat and stand apart, on either side."""
    high, n_high = _outermost(-numbers[::-1])
    rest = numbers[: len(numbers) - n_high]
    low, n_low = _outermost(rest)
    values = [*low, *(-value for value in high[::-1])]
    return Sentinels(values, n_low + n_high, rest[n_low:])


def _outermost(numbers: Numbers) -> tuple[list[float], int]:
    """Return the sentinels at the low end of sorted numbers, and how many rows have them."""
    values, counts = np.unique(numbers, return_counts=True)
    for n in range(min(_MAX_SENTINELS, len(values) - _SOME), 0, -1):
        n_rows = int(counts[:n].sum())
        rest = numbers[n_rows:]
        span = float(rest[int(0.995 * (len(rest) - 1))] - rest[int(0.005 * (len(rest) - 1))])
        gap, n_other = float(values[n] - values[n - 1]), len(values) - n
        if counts[:n].max() < _REPEATS or values[n - 1] - values[0] >= gap:
            continue
        are_codes = all(_CODE.fullmatch(f"{abs(value):.10g}") for value in values[:n])
        is_negative_code = n == 1 and values[0] in _NEGATIVE_CODES and values[1] >= 0
        if (
            (are_codes and gap > span)
            or (n_other > _MANY and gap > _FAR * span > 0)
            or (n_other > _MANY and is_negative_code)
        ):
            return values[:n].tolist(), n_rows
    return [], 0


def _find_extremes(numbers: Numbers) -> Numbers:
    """Return numbers that are too far out even for a distribution with a heavy tail.

    Deviations from the median are compared by their logarithm, in which a Pareto tail is
    exponential: the last of them would lie in a gap, or all of them grow too fast.
    """
    middle = numbers[len(numbers) // 2]
    spread_out = numbers[numbers != middle]
    if len(spread_out) < _FEW:
        return numbers[:0]
    low, high = np.quantile(numbers, (0.25, 0.75))
    unit = float(high - low) or float(np.median(np.abs(spread_out - middle)))
    order = np.argsort(np.abs(spread_out - middle), kind="stable")
    deviations = np.log1p(np.abs(spread_out[order] - middle) / unit)
    far_out = np.log1p(_FAR_OUT * np.expm1(np.quantile(deviations, 0.99)))
    usual, tail = np.quantile(deviations, (0.99, 0.9995))
    n_most = max(int(_EXTREME_ROWS * len(deviations)), 1)
    gaps = np.diff(deviations[-n_most - 1 :])
    n_beyond = len(gaps) - int(np.argmax(gaps))
    if gaps.max() > _GAP * usual:
        beyond = np.arange(len(deviations)) >= len(deviations) - n_beyond
    elif tail > _TAIL_GROWS * usual:
        beyond = deviations > (usual + tail) / 2
    else:
        return numbers[:0]
    extremes: Numbers = spread_out[order][beyond & (deviations > far_out)]
    return extremes
