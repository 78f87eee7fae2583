"""A decision keeps what agrees with the present, and measures honestly what that gains."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from driftquilt.data.column_types import describe, features
from driftquilt.decision import deciding
from driftquilt.decision.advice import advise, sentences
from driftquilt.decision.cutting import by_column, by_time
from driftquilt.decision.deciding import LabelledTable, decide
from driftquilt.decision.decision import Decision
from driftquilt.decision.labels import read_labels
from driftquilt.decision.layout import lay_out
from driftquilt.decision.measure import Comparison, ConstantAnswer, MethodScore, Verdict
from driftquilt.decision.scoring import ClassQuestion
from driftquilt.errors import InputError
from driftquilt.quilt.metrics import find_metric
from tests.decision.tables import as_table, shop_table, sine_table, small, tiny
from tests.published import load_published

SINE = sine_table(5, 400)


def select(table: pa.Table = SINE, label: str = "label", **settings: Any) -> Decision:
    segments = settings.pop("segments", None)
    segments = by_column(table, "segment") if segments is None else segments
    drop = ["segment"] if "segment" in table.column_names else []
    given: dict[str, Any] = {"drop": drop, "estimator": tiny()} | settings
    return decide(table, label, segments, **given)


def sine_case() -> LabelledTable:
    known = features(SINE, "label", ["segment"], facts=describe(SINE))
    return LabelledTable.of(known, read_labels(SINE, "label"), SINE["segment"])


def test_what_agrees_is_used_and_clearly_better_than_all_data() -> None:
    decision = select(estimator=small(max_epochs=200))
    weights = [use.weight for use in decision.selection]
    assert weights[0] == max(weights) > 0.5
    assert decision.selection[1].share == 0  # the very opposite
    assert not decision.selection[1].used
    quilt, everything, alone = decision.methods
    assert (quilt.name, everything.name, alone.name) == ("Quilt", "all data", "current only")
    assert everything.verdict == "better"
    assert decision.of_past["0"] > 0.85
    assert decision.of_past["1"] < 0.15
    assert quilt.n_rows == decision.n_held_out == 120
    assert decision.n_current == 280


def test_usenet_whose_two_concepts_take_turns_uses_every_other_segment() -> None:
    decision = select(as_table(load_published("usenet1")), estimator=None)
    assert [use.used for use in decision.selection] == [True, False, True, False]
    assert decision.methods[1].verdict == "better"


def test_the_settings_mean_all_data_and_no_past() -> None:
    case, layout = sine_case(), lay_out(read_labels(SINE, "label"), SINE["segment"])
    everything = case.fit(tiny(use_disparity=False, use_gain=False), layout.trained)
    assert all(fold.selected.all() for fold in everything.selection_.folds)
    assert len(everything.search_) == everything.n_folds
    alone = case.fit(tiny(), layout.current)
    assert len(alone.selection_) == 0
    assert alone.selection_.n_current == len(layout.current)


def test_held_out_rows_change_no_model() -> None:
    table, broken = SINE, np.array(SINE["x0"].to_pylist())
    broken[-120:] = 1e6
    changed = table.set_column(0, "x0", pa.array(broken))
    models = [select(t).model for t in (table, changed)]
    assert models[0] is not None
    assert models[1] is not None
    x = table.select(["x0", "x1", "x2", "x3"]).slice(0, 50)
    assert models[0].predict_proba(x).tobytes() == models[1].predict_proba(x).tobytes()


def test_scattered_rows_give_the_model_that_neighbours_give(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = np.random.default_rng(0).choice(2000, 1500, replace=False)
    case = sine_case()
    x = SINE.select(["x0", "x1", "x2", "x3"]).slice(0, 50)
    cut = case.fit(tiny(), np.sort(rows)).predict_proba(x)
    monkeypatch.setattr(deciding, "_FEW_RUNS", 2000)
    weighed = case.fit(tiny(), np.sort(rows)).predict_proba(x)
    assert cut.tobytes() == weighed.tobytes()


def test_validation_accuracy_is_of_rows_that_each_model_was_not_trained_on() -> None:
    labels = read_labels(SINE, "label")
    case, layout = sine_case(), lay_out(labels, SINE["segment"])
    clf = case.fit(tiny(n_folds=1), layout.current)
    second_half = layout.current[len(layout.current) // 2 :]
    expected = case.correct(clf, second_half).mean()
    folds = case.predict_folds(clf, layout.current)
    question = ClassQuestion.of(find_metric(None), labels, layout, layout.held_out)
    assert question.validation(clf, folds) == pytest.approx(expected)


def test_a_named_segment_is_the_current_one_and_later_ones_are_left_out() -> None:
    decision = select(current=2)
    assert decision.current == "2"
    assert decision.selection.names == (0, 1)
    assert decision.warnings == ("segments after 2 are left out: 3, 4",)
    again = select(SINE.slice(0, 1200))
    assert again.to_json()["selection"] == decision.to_json()["selection"]


def test_an_unknown_segment_is_answered_with_the_last_ones() -> None:
    months = by_time(shop_table(), "when", "1mo")
    with pytest.raises(InputError, match="no segment is called '2024-8'; there are '2024-0"):
        select(shop_table(), "bought", segments=months, current="2024-8")
    with pytest.raises(InputError, match=r"no segment before .* 0"):
        select(current=0)


def test_a_shop_with_text_gaps_and_dates_is_decided() -> None:
    table = shop_table()
    table = table.append_column("tags", pa.array([["new"]] * table.num_rows))
    decision = select(
        table, "bought", segments=by_time(table, "when", "1mo"), estimator=small(), drop=["order"]
    )
    assert {use.name: use.used for use in decision.selection}["2024-06"] is False
    assert decision.warnings == ()
    assert [(finding.kind, finding.column) for finding in decision.checks or ()] == [
        ("unlabelled", None),
        ("segment_leak", "when"),
        ("constant", "country"),
        ("unused", "tags"),
    ]
    assert decision.classes == ("no", "yes")
    assert len(decision.columns) == len(table.column_names)
    assert decision.model is not None
    assert "order" not in decision.model.feature_names_in_
    assert "when" in decision.model.feature_names_in_


def test_a_column_with_no_value_in_the_current_segment_does_no_harm() -> None:
    past_only = pa.array([None if k >= 1600 else float(k % 7) for k in range(2000)])
    decision = select(SINE.append_column("old", past_only))
    assert [method.name for method in decision.methods] == ["Quilt", "all data", "current only"]


def test_nothing_held_out_is_nothing_measured() -> None:
    decision = select(holdout=0)
    assert decision.n_held_out == 0
    assert [method.accuracy for method in decision.methods] == [None, None, None]
    assert decision.sentences()[1:] == (
        "No rows of '4' were held out, so what this gains is not known.",
        "Hold some rows out and measure before you take this model.",
    )


@pytest.mark.parametrize("holdout", [-0.1, 1, 1.5, "half", None, True])
def test_a_share_that_is_none_is_refused(holdout: Any) -> None:
    with pytest.raises(InputError, match="a share from 0 to below 1"):
        select(holdout=holdout)


def test_a_share_that_leaves_too_little_to_train_on_is_named_as_the_cause() -> None:
    with pytest.raises(InputError, match=r"holdout is 0\.999.* 1 of the 400 rows"):
        select(holdout=0.999)


@pytest.mark.parametrize(
    ("first", "words"),
    [(1600, "the last segment, 4, has"), (1200, "the last 2 segments, 3, 4, have")],
)
def test_last_segments_without_any_label_are_told(first: int, words: str) -> None:
    y = [None if row >= first else label for row, label in enumerate(SINE["label"].to_pylist())]
    table = SINE.set_column(SINE.column_names.index("label"), "label", pa.array(y))
    current = str(first // 400 - 1)
    decision = select(table)
    assert decision.current == current
    assert decision.checks
    (told,) = [finding.sentence for finding in decision.checks if finding.blocks]
    assert told.startswith(f"{words} no labels; decided for {current}: ")
    named = select(table, current=current)
    assert not any(finding.blocks for finding in named.checks or ())
    assert any(f"after {current} are left out" in note for note in named.warnings)
    assert not any("no labels" in f.sentence for f in select(table, current="1").checks or ())
    with pytest.raises(InputError, match=f"'4' has no labels.* last with labels is {current}"):
        select(table, current="4")


def test_classes_that_come_or_go_are_told() -> None:
    y = np.array(SINE["label"].to_pylist())
    y[:10], y[1600:], y[-5:] = 2, 1, 3
    table = SINE.set_column(4, "label", pa.array(y))
    decision = select(table)
    assert tuple(finding.sentence for finding in decision.checks or ()) == (
        "the class 0, 2 occurs only in the past, not in the rows of 4 to train on",
        "the rows of 4 to train on are all 1, so there is no model of the current segment only "
        "to compare with",
        "the class 3 occurs only in the held-out rows of 4; no model can know it",
    )
    assert [method.name for method in decision.methods] == ["Quilt", "all data"]
    assert decision.classes == (0, 1, 2)


def test_segments_that_go_backwards_are_told() -> None:
    table = SINE.take(pa.array(range(1999, -1, -1)))
    first, *_ = select(table).checks or ()
    assert first.sentence.startswith("segments appear in the order 4, 3, 2")


def test_the_caller_is_told_of_every_step() -> None:
    told: list[tuple[str, int, int]] = []
    select(watch=lambda *step: told.append(step))
    assert [step[1:] for step in told] == [(k, 5) for k in range(5)]
    assert told[1][0] == "training Quilt"


def test_an_estimator_of_another_kind_is_refused() -> None:
    for wrong in (object(), tiny(encode=False)):
        with pytest.raises(InputError, match="give a QuiltClassifier that encodes"):
            select(estimator=wrong)


def test_a_decision_comes_back_from_json() -> None:
    decision = select()
    text = json.dumps(decision.to_json(), allow_nan=False)
    again = Decision.from_json(json.loads(text))
    assert again.to_json() == decision.to_json()
    assert again.sentences() == decision.sentences()
    assert again.model is None


@pytest.mark.parametrize("lost", ["selection", "methods", "bounds", "columns", "of_past", "label"])
def test_a_damaged_decision_is_refused(lost: str) -> None:
    data = select().to_json()
    for damaged in ({**data, lost: 7}, {k: v for k, v in data.items() if k != lost}):
        if lost == "label" and lost in damaged:
            continue
        with pytest.raises(InputError, match="not a decision"):
            Decision.from_json(damaged)
    with pytest.raises(InputError, match="not a decision"):
        Decision.from_json([])
    with pytest.raises(InputError, match="has format 9, this version reads 1"):
        Decision.from_json({**data, "format": 9})


def test_the_advice_follows_the_verdicts() -> None:
    selection = select().selection
    quilt = MethodScore("Quilt", 0.8, 80, 100)

    def advice(*counts: tuple[int, int]) -> str:
        names = ("all data", "current only")
        others = [
            replace(quilt, name=name, n_right=80 - wins + losses, wins=wins, losses=losses)
            for name, (wins, losses) in zip(names, counts, strict=False)
        ]
        return sentences(selection, [quilt, *others])[2]

    assert advice((20, 2), (15, 1)) == "Take this model: it is clearly better than the others."
    assert advice((20, 2), (3, 2)).startswith(
        "Take this model, or train on the current segment only, which is simpler: on 100 rows "
        "this model is clearly better than all data, and not clearly different from current only."
    )
    assert advice((3, 2), (3, 3)).startswith(
        "Train on all data, which is simpler: on 100 rows this model is not clearly different from "
        "all data or current only; look again when"
    )
    assert advice((20, 2), (1, 12)) == (
        "Do not take this model: train on the current segment only instead, which does better."
    )


def test_a_clear_difference_of_next_to_nothing_is_no_reason_to_refuse() -> None:
    selection, quilt = select().selection, MethodScore("Quilt", 0.9, 90_000, 100_000)
    alone = replace(quilt, name="current only", n_right=90_100, wins=100, losses=200)
    everything = replace(quilt, name="all data", n_right=80_000, wins=10_500, losses=500)
    assert alone.verdict == "worse"
    said = sentences(selection, [quilt, everything, alone])
    assert "clearly worse (100 rows only Quilt gets right, 200 only current only)" in said[1]
    assert said[2].endswith(
        "than all data, and behind (by less than 0.5 % of the rows) current only."
    )
    simpler = replace(alone, name="all data")
    advice = advise("may", [quilt, simpler, replace(everything, name="current only")])
    assert advice.action == "use-all"
    assert "behind (by less than 0.5 % of the rows) all data, and clearly better" in advice.reason


@pytest.mark.parametrize(
    ("everything", "alone", "action"),
    [
        ((20, 2), (15, 1), "promote"),
        ((20, 2), (3, 2), "promote"),
        ((3, 2), (3, 3), "use-all"),
        ((3, 2), (20, 2), "use-all"),  # a tie with all data, although far ahead of the current only
        ((3, 2), (1, 12), "use-current"),
        ((1, 12), (20, 2), "use-all"),
    ],
)
def test_a_tie_with_all_data_is_never_a_promotion(
    everything: tuple[int, int], alone: tuple[int, int], action: str
) -> None:
    quilt = MethodScore("Quilt", 0.8, 80, 100)
    others = [
        replace(quilt, name=name, n_right=80 - wins + losses, wins=wins, losses=losses)
        for name, (wins, losses) in (("all data", everything), ("current only", alone))
    ]
    assert advise("may", [quilt, *others]).action == action


@pytest.mark.parametrize(
    ("quilts", "simples", "action"),
    [
        ("better", "better", "use-all"),
        ("better", "no clear difference", "promote"),
        ("no clear difference", "better", "use-all"),
        ("no clear difference", "no clear difference", "keep-incumbent"),
    ],
)
def test_in_a_tie_with_all_data_the_incumbent_decides(
    quilts: Verdict, simples: Verdict, action: str
) -> None:
    def against(found: Verdict) -> Comparison:
        return Comparison("accuracy", 0.1, (0.01, 0.2), 0.01, found)

    quilt = MethodScore("Quilt", 0.8, 80, 100, against_incumbent=against(quilts))
    simple = replace(quilt, name="all data", wins=3, losses=2, against_incumbent=against(simples))
    old = MethodScore("incumbent", None, 70, 100, 12, 2)
    assert advise("may", [quilt, simple, old]).action == action


@pytest.mark.parametrize("n_rows", [1, 3, 24, 29])
def test_a_few_rows_have_no_verdict(n_rows: int) -> None:
    quilt = MethodScore("Quilt", 1.0, n_rows, n_rows)
    everything = replace(quilt, name="all data", n_right=0, wins=n_rows)
    assert everything.verdict == everything.to_json()["quilt_is"] == "too few rows"
    _, gained, advice = sentences(select().selection, [quilt, everything])
    assert "the rows are too few to say which is better" in gained
    assert "clearly" not in gained + advice
    enough = replace(everything, n_rows=30)
    assert enough.verdict == ("better" if n_rows > 5 else "no clear difference")


def test_a_model_that_does_no_better_than_a_constant_is_not_to_be_taken() -> None:
    selection, quilt = select().selection, MethodScore("Quilt", 0.9, 90, 100)
    everything = replace(quilt, name="all data", n_right=70, wins=20, losses=0)
    advice = sentences(selection, [quilt, everything], ConstantAnswer("no", 89))[2]
    assert advice.startswith("Take this")
    advice = sentences(selection, [quilt, everything], ConstantAnswer("no", 90))[2]
    assert advice.startswith("Always answering no gets 90 of these rows right as well")
    assert advice.endswith("do not take it on them alone.")


def test_current_rows_of_one_class_do_not_recommend_a_model() -> None:
    table = sine_table(3, 200)
    segments = table["segment"].to_pylist()
    labels = [1 if s == 2 else y for s, y in zip(segments, table["label"].to_pylist(), strict=True)]
    table = table.set_column(table.column_names.index("label"), "label", [labels])
    decision = select(table)
    assert decision.constant is not None
    assert decision.constant[:2] == ("1", 60)
    assert decision.sentences()[2].startswith("Without looking at the rows, always answering 1")
    assert decision.advice.action == "collect-more"
    assert Decision.from_json(decision.to_json()).constant == decision.constant


@pytest.mark.parametrize("n_segments", [127, 128, 129])
def test_as_many_segments_as_a_byte_has_numbers_may_have_gaps(n_segments: int) -> None:
    names = np.repeat([f"s{k:03}" for k in range(n_segments)], 4)
    labels = ["yes", "no"] * (len(names) // 2)
    table = pa.table({"label": [None, *labels[1:]], "segment": names})
    layout = lay_out(read_labels(table, "label"), by_column(table, "segment"))
    assert len(layout.names) == n_segments
    assert (layout.without_labels, layout.n_unlabelled) == ([], 1)
    assert layout.of(0).tolist() == [1, 2, 3]
    assert layout.of(n_segments - 1).tolist() == [*range(len(names) - 4, len(names))]


def test_a_column_that_only_held_out_rows_have_is_said_to_be_in_no_model() -> None:
    late = [None] * (SINE.num_rows - 50) + [float(n) for n in range(50)]
    decision = select(SINE.append_column("late", pa.array(late)))
    [fact] = [fact for fact in decision.columns if fact.name == "late"]
    assert (fact.used, fact.note) == (False, "left out: it has no value in the rows to train on")
    assert decision.model is not None
    assert "late" not in decision.model.feature_names_in_
