"""The data check: a table made for each finding, and none on clean ones."""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from driftquilt.decision import Finding, check_data
from driftquilt.decision.cutting import by_column
from driftquilt.decision.data_check import KINDS, check_scores
from driftquilt.decision.deciding import decide
from driftquilt.decision.decision import Decision
from driftquilt.decision.measure import MethodScore
from driftquilt.decision.scoring import ClassQuestion
from driftquilt.quilt.metrics import find_metric
from tests.decision.tables import sine_table, tiny

N, MONTHS = 4000, 4
RNG = np.random.default_rng(0)
MONTH = np.repeat(np.arange(MONTHS), N // MONTHS)
SCORE = RNG.normal(size=N)
LABEL = np.where(SCORE + RNG.normal(size=N) > 0, "yes", "no")


def table_with(**columns: Any) -> pa.Table:
    """A clean table with other columns, or others in place of them."""
    return pa.table({"score": SCORE, "label": LABEL, "month": MONTH, **columns})


def check(**columns: Any) -> list[Finding]:
    table = table_with(**columns)
    return [*check_data(table, "label", by_column(table, "month"), drop=["month"])]


def kinds(**columns: Any) -> list[str]:
    return [finding.kind for finding in check(**columns)]


def with_values(numbers: Any, values: Any) -> np.ndarray:
    """The numbers with some of them replaced, spread out."""
    changed = np.array(numbers, dtype=float)
    changed[np.linspace(5, len(changed) - 5, len(values)).astype(int)] = values
    return changed


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(1)


@pytest.mark.parametrize(
    "values",
    [
        RNG.normal(size=N),
        RNG.uniform(size=N),
        RNG.lognormal(8, 1.5, size=N),
        RNG.pareto(1.5, size=N),
        RNG.standard_cauchy(size=N),
        np.where(RNG.random(N) < 0.8, 0, RNG.lognormal(5, 1, size=N)),
        RNG.poisson(3, size=N),
        RNG.integers(0, 100, size=N),
        RNG.integers(0, 10**9, size=N),
        (RNG.lognormal(10, 1, size=N) * 100).astype(int),
        (RNG.random(N) < 0.01).astype(int),
        RNG.choice([-1, 0, 1], size=N),
        np.round(RNG.normal(0, 20, size=N)),
        np.minimum(RNG.exponential(30, size=N), 99),
        RNG.choice([1, 2, 5, 10, 20, 50, 100], size=N),
        with_values(RNG.normal(size=N), [np.nan, np.inf] * 50),
        MONTH * 0.5 + RNG.normal(size=N),
        SCORE * 2 + RNG.normal(size=N),
        RNG.choice(["web", "shop", "phone"], size=N),
        [f"customer {k}" for k in RNG.integers(30, size=N)],
        RNG.random(N) < 0.5,
        pa.array(RNG.integers(10**6, size=N), pa.duration("s")),
        pa.array(RNG.integers(86_400, size=N), pa.int32()).cast(pa.time32("s")),
        pa.array(RNG.integers(20_000, size=N), pa.int32()).cast(pa.date32()),
        pa.array(RNG.choice(["web", "shop"], size=N)).dictionary_encode(),
        pa.array(RNG.normal(size=N).astype(np.float16)),
    ],
)  # fmt: skip
def test_a_plain_column_is_no_finding(values: Any) -> None:
    assert check(x=values) == []


def test_a_column_made_from_the_label_gives_it_away(rng: np.random.Generator) -> None:
    codes = (LABEL == "yes").astype(float)
    assert kinds(x=codes * 3 + rng.uniform(size=N)) == ["label_leak"]
    (found,) = check(x=np.where(LABEL == "yes", "closed by agent", "open"))
    assert (found.kind, found.column, found.figures["auc"]) == ("label_leak", "x", 1.0)
    assert "leave it out with --drop x" in found.sentence
    filled_in_later = [float(k % 7) if label == "yes" else None for k, label in enumerate(LABEL)]
    assert kinds(x=pa.array(filled_in_later)) == ["label_leak"]


def test_a_leak_is_found_among_many_classes_and_with_few_positives(
    rng: np.random.Generator,
) -> None:
    amount = rng.lognormal(size=N)
    bins = np.digitize(amount, np.quantile(amount, np.arange(1, 12) / 12)).astype(str)
    assert kinds(x=amount, label=bins) == ["label_leak"]
    rare = np.where(rng.random(N) < 0.02, "fraud", "fine")
    assert kinds(x=np.where(rare == "fraud", "reviewed", "open"), label=rare) == ["label_leak"]


def test_a_running_number_reveals_the_segment_and_a_shuffled_one_is_an_id(
    rng: np.random.Generator,
) -> None:
    assert kinds(x=np.arange(N)) == ["segment_leak"]
    assert kinds(x=rng.permutation(N) + 1000) == ["id"]
    (text,) = check(x=[f"order {k}" for k in range(N)])
    assert text.kind == "id"
    assert text.sentence.startswith("column 'x' is left out: nearly every row")
    hashes = rng.choice(10**12, size=N, replace=False)
    assert kinds(x=hashes) == []
    assert kinds(customer_id=hashes) == ["id"]


@pytest.mark.parametrize(
    ("values", "sentinels"),
    [
        (with_values(RNG.uniform(18, 90, size=N), [999] * 40), (999, 999)),
        (with_values(RNG.integers(0, 12, size=N), [98] * 30 + [96] * 3), (96, 98)),
        (with_values(RNG.integers(0, 50, size=N), [-1] * 500), (-1, -1)),
        (with_values(RNG.normal(280, 10, size=N), [0] * 10), (0, 0)),
        (with_values(RNG.uniform(size=N), [-99] * 10 + [99] * 10), (-99, 99)),
    ],
)
def test_a_number_that_stands_apart_and_repeats_is_a_sentinel(
    values: np.ndarray, sentinels: tuple[float, float]
) -> None:
    (found,) = check(x=values)
    assert found.kind == "sentinel"
    assert (found.figures["lowest"], found.figures["highest"]) == sentinels
    assert found.figures["rows"] == np.isin(values, [*sentinels]).sum()


@pytest.mark.parametrize("n", [1, 8])
@pytest.mark.parametrize("usual", [RNG.lognormal(size=N), RNG.normal(1000, 10, size=N)])
def test_numbers_in_another_unit_are_outliers(usual: np.ndarray, n: int) -> None:
    values = with_values(usual, 1000 * usual[:n])
    (found,) = check(x=values)
    assert found.kind == "outlier"
    assert abs(found.figures["rows"] - n) <= 2
    assert found.figures["value"] == values.max()


def test_many_numbers_in_another_unit_are_outliers_without_a_gap() -> None:
    amount = np.random.default_rng(1).lognormal(size=40_000)
    amount[::500] *= 1000
    segments = np.repeat(np.arange(4), 10_000)
    table = pa.table({"x": amount, "y": np.arange(40_000) // 7 % 2, "month": segments})
    (found,) = check_data(table, "y", by_column(table, "month"), drop=["month"])
    assert found.kind == "outlier"
    assert 50 <= found.figures["rows"] <= 80


@pytest.mark.parametrize("values", [np.full(N, 7.0), ["NO"] * N, [True] * N])
def test_a_column_that_is_always_the_same_is_told(values: Any) -> None:
    (found,) = check(x=values)
    assert (found.kind, found.column, found.blocks) == ("constant", "x", False)
    assert check(x=[None, *values[1:]]) == []  # that it is missing may tell something


def test_rare_categories_are_counted_where_they_matter(rng: np.random.Generator) -> None:
    (found,) = check(x=[f"place {k}" for k in rng.integers(500, size=N)])
    assert found.kind == "rare_categories"
    assert found.figures["values"] == 500
    assert 200 < found.figures["rare_values"] < 500
    seldom = np.where(np.arange(N) % 40 == 0, np.arange(N), rng.integers(20, size=N))
    assert check(x=[f"place {k}" for k in seldom]) == []


def test_labels_that_differ_by_blanks_or_case_are_named() -> None:
    label = LABEL.astype(object)
    label[::3] = [f"{name.title()} " for name in label[::3]]
    found = check(label=label)
    assert [(finding.kind, finding.blocks) for finding in found] == [
        ("similar_labels", False),
        ("similar_labels", True),
        ("similar_labels", True),
    ]
    assert " ' counts as '" in found[0].sentence
    assert "'Yes' and 'yes'" in found[2].sentence
    (leak, *_) = check(label=label, x=LABEL)
    assert (leak.kind, leak.column) == ("label_leak", "x")


def moments(hours: Any) -> pa.Array:
    return pa.array([datetime(2021, 1, 1) + timedelta(hours=int(h)) for h in hours])


def test_a_clock_that_goes_back_is_told_and_a_date_of_birth_is_not(
    rng: np.random.Generator,
) -> None:
    table = table_with(birth=moments(rng.integers(100_000, size=N)))
    assert check_data(table, "label", by_column(table, "month"), drop=["month", "birth"]) == ()

    def orders(hours: Any, months: Any = MONTH) -> list[str]:
        table = table_with(at=moments(hours), month=months)
        found = check_data(table, "label", by_column(table, "month"), drop=["month", "at"])
        assert {(finding.kind, finding.column) for finding in found} <= {("order", "at")}
        return [finding.sentence for finding in found]

    in_time = np.arange(N)
    names = np.array(["april", "august", "december", "may"])[MONTH]
    assert orders(in_time) == []
    assert orders(in_time // 24 * 24) == []
    assert orders(in_time + rng.integers(20, size=N)) == []
    (newest_first,) = orders(in_time[::-1], names)
    assert "may, is taken for the present" in newest_first
    (by_name,) = orders(in_time.reshape(MONTHS, -1)[[0, 3, 2, 1]].ravel(), names)
    assert "december comes after august, but is earlier" in by_name
    shuffled = np.concatenate([in_time[:3000], rng.permutation(in_time[3000:])])
    (inside,) = orders(shuffled)
    assert "the held-out rows are not the latest" in inside


def test_segments_with_others_between_them_are_told() -> None:
    assert kinds(month=np.arange(N) % MONTHS) == ["order"]
    assert kinds(month=MONTH[::-1]) == ["order"]


@pytest.mark.parametrize("name", [str, int])
def test_a_current_segment_with_labels_only_at_its_beginning_is_told(name: type) -> None:
    label = [None if row >= 3300 else label for row, label in enumerate(LABEL)]
    month = [name(k) for k in MONTH]
    found = check(label=label, month=month)
    assert [finding.kind for finding in found] == ["label_tail", "unlabelled"]
    assert found[0].figures == {"rows": 700, "labelled": 300}
    label[-1] = "yes"
    assert kinds(label=label, month=month) == ["unlabelled"]


def test_a_tail_ends_where_the_next_segment_begins() -> None:
    label = [None if row >= 2500 else label for row, label in enumerate(LABEL)]
    table = table_with(label=label)
    found = check_data(table, "label", by_column(table, "month").combine_chunks(), drop=["month"])
    assert [finding.kind for finding in found] == ["label_tail", "unlabelled", "unlabelled"]
    assert found[0].figures == {"rows": 500, "labelled": 500}


def test_classes_that_the_current_rows_lack_are_told() -> None:
    label = LABEL.astype(object)
    label[:50] = "maybe"
    (found,) = check(label=label)
    assert found.kind == "missing_class"
    assert "maybe occurs only in the past" in found.sentence


def test_columns_that_cannot_be_learned_from_are_told_unless_dropped() -> None:
    table = table_with(tags=pa.array([["new"]] * N), empty=pa.nulls(N))
    segments = by_column(table, "month")
    found = check_data(table, "label", segments, drop=["month"])
    assert [(finding.kind, finding.column) for finding in found] == [
        ("unused", "tags"),
        ("unused", "empty"),
    ]
    assert check_data(table, "label", segments, drop=["month", "tags", "empty"]) == ()


def blocking(table: pa.Table, **settings: Any) -> list[tuple[str, str | None]]:
    segments = by_column(table, "month")
    found = check_data(table, "label", segments, drop=["month"], **settings)
    return [(finding.kind, finding.column) for finding in found if finding.blocks]


def test_a_lagged_column_of_a_slow_series_does_not_block_and_a_copy_does(
    rng: np.random.Generator,
) -> None:
    walk = 100 + rng.normal(size=N).cumsum()
    lagged, copied = np.roll(walk, 1), walk * 1.1
    table = table_with(label=walk, lagged=lagged)
    found = check_data(table, "label", by_column(table, "month"), drop=["month", "score"])
    assert ("label_leak", "lagged") in [(finding.kind, finding.column) for finding in found]
    assert blocking(table) == []
    assert blocking(table.append_column("copied", pa.array(copied))) == [("label_leak", "copied")]
    state = np.repeat(rng.random(N // 80) < 0.5, 80)
    names, before = np.where(state, "on", "off"), np.where(np.roll(state, 1), "on", "off")
    table = table_with(label=names, before=before)
    assert "label_leak" in [f.kind for f in check_data(table, "label", table["month"])]
    assert blocking(table) == []
    assert blocking(table.append_column("copied", pa.array(names))) == [("label_leak", "copied")]


@pytest.mark.parametrize(
    ("names", "blocks"),
    [
        ([2021, 2022, 2023, 2024], False),
        ([2024, 2023, 2022, 2021], True),
        ([2022, 2021, 2023, 2024], True),
        ([11, 12, 1, 2], False),
        ([12, 11, 2, 1], True),
        ([3, 1, 4, 2], True),
        (["2023-9", "2023-10", "2024-1", "2024-2"], False),
        (["2024-02", "2024-01", "2023-12", "2023-11"], True),
        (["2023-Q3", "2023-Q4", "2024-Q1", "2023-Q2"], True),
        (["3Q2023", "4Q2023", "1Q2024", "2Q2024"], False),
        (["9", "10", "11", "12"], False),
        (["north", "east", "south", "centre"], False),
    ],
)
def test_segments_that_go_back_in_time_block(names: list[Any], blocks: bool) -> None:
    table = table_with(month=pa.array([names[k] for k in MONTH]))
    assert blocking(table) == [("order", None)] * blocks


def test_mixed_segments_block_and_a_few_late_rows_do_not(rng: np.random.Generator) -> None:
    names = np.array(["april", "may", "june", "july"])
    late = MONTH.copy()
    late[rng.choice(N - 1000, 20, replace=False) + 1000] -= 1
    assert kinds(month=names[late]) == ["order"]
    assert blocking(table_with(month=names[late])) == []
    assert blocking(table_with(month=names[rng.permutation(MONTH)])) == [("order", None)]
    assert blocking(table_with(month=np.tile(MONTH, 2)[: 2 * N : 2])) == [("order", None)]


def test_a_clock_that_goes_back_blocks_and_rows_in_disorder_within_a_segment_do_not(
    rng: np.random.Generator,
) -> None:
    names = pa.array(np.array(["april", "august", "december", "may"])[MONTH])
    in_time = np.arange(N)
    table = table_with(at=moments(in_time[::-1]), month=names)
    assert blocking(table) == [("order", "at")]
    inside = np.concatenate([in_time[:3000], rng.permutation(in_time[3000:])])
    table = table_with(at=moments(inside), month=names)
    assert "order" in [f.kind for f in check_data(table, "label", table["month"])]
    assert blocking(table) == []


def test_a_last_segment_without_labels_blocks_unless_the_current_one_is_named() -> None:
    label = [None if row >= 3000 else label for row, label in enumerate(LABEL)]
    table = table_with(label=label)
    assert blocking(table) == [("unlabelled", None)]
    (found, _) = check_data(table, "label", table["month"], drop=["month"])
    assert "decided for 2" in found.sentence
    assert "--current 2" in found.sentence
    assert blocking(table, current=2) == []
    label[3500] = "yes"
    assert blocking(table_with(label=label)) == []


def test_classes_that_differ_by_case_block() -> None:
    label = LABEL.astype(object)
    label[::3] = [name.upper() for name in label[::3]]
    assert blocking(table_with(label=label)) == [("similar_labels", None)] * 2


@pytest.mark.parametrize("name", ["credit", "employment", "pollution"])
def test_public_tables_are_not_blocked(name: str) -> None:
    folder = os.environ.get("DRIFTQUILT_DATA")
    if folder is None:
        pytest.skip("DRIFTQUILT_DATA is not set")
    table = pq.read_table(Path(folder) / "tables" / f"{name}.parquet")
    found = check_data(table, "label", by_column(table, "segment"), drop=["segment"])
    assert [finding for finding in found if finding.blocks] == []


def score(n_right: int, n_rows: int = 1000) -> MethodScore:
    return MethodScore("Quilt", 1.0, n_right, n_rows)


def asked(n_alike: int, n_rows: int = 1000) -> ClassQuestion:
    """A question about rows of which so many have the same class."""
    y = np.arange(n_rows) >= n_alike
    return ClassQuestion(find_metric(None), y.astype(int), np.array([0, 1]), np.array([0.5, 0.5]))


def test_models_that_are_all_nearly_perfect_are_suspect() -> None:
    (found,) = check_scores(asked(500), [score(1000), score(998), score(999)])
    assert found.kind == "near_perfect"
    assert found.figures == {"rows": 1000, "accuracy": 0.998}
    assert not found.blocks  # each row has the class of the row before
    mixed = replace(asked(500), y=np.arange(1000) % 2)
    assert [f.blocks for f in check_scores(mixed, [score(1000)] * 3)] == [True]
    assert check_scores(asked(500), [score(1000), score(998), score(980)]) == ()
    assert check_scores(asked(990), [score(1000)] * 3) == ()
    assert check_scores(asked(25, 50), [score(50, 50)] * 3) == ()
    assert check_scores(asked(0, 0), [score(0, 0)] * 3) == ()


def test_findings_come_in_order_and_survive_json() -> None:
    table = sine_table(3, 200)
    rows = table.num_rows
    table = table.append_column("id", pa.array(range(rows)))
    table = table.append_column("copy", table["label"])
    decision = decide(
        table, "label", by_column(table, "segment"), drop=["segment"], estimator=tiny()
    )
    found = [finding.kind for finding in decision.checks or ()]
    assert {"label_leak", "segment_leak"} <= set(found)
    assert found == sorted(found, key=KINDS.index)
    assert Decision.from_json(decision.to_json()).checks == decision.checks
    early = decision.to_json()
    del early["checks"]
    read = Decision.from_json(early)
    assert read.checks is None
    assert (decision.advice.action, read.advice.action) == ("check-data", "use-all")
    assert Decision.from_json(read.to_json()).checks is None


def test_a_table_with_hardly_a_row_is_checked_too() -> None:
    table = pa.table({"x": [1, 2, 3, 4], "y": [0, 1, 0, 1], "month": [1, 1, 2, 2]})
    assert check_data(table, "y", by_column(table, "month"), drop=["month"], holdout=0) == ()
