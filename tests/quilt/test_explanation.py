"""What a person reads about each past segment, and that it survives a file."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from driftquilt.core.segment import Segment
from driftquilt.core.training import Epoch, Rule, Scores
from driftquilt.errors import InputError, ModelFileError
from driftquilt.learners.mlp import MLP
from driftquilt.quilt.explanation import FoldCurves, Selection, TriedSet, explain_folds, percent
from driftquilt.quilt.method import Quilt
from driftquilt.search.base import Trial
from driftquilt.search.shared import Shared

SCORES = "scores are medians over epochs, the bound is 0.50"


def fold(
    disparity: list[list[float]],
    gain: list[list[float]],
    losses: list[float],
    rule: Rule,
    bound: float = 0.5,
) -> FoldCurves:
    """Curves by epoch and segment, with the selection that the rule makes of them."""
    d, g = np.array(disparity), np.array(gain)
    selected = np.array([rule.keep(Scores(*row), bound) for row in zip(d, g, strict=True)])
    return FoldCurves(bound, int(np.argmin(losses)), np.array(losses), selected, d, g)


def example(rule: Rule | None = None) -> Selection:
    """Two folds, best at their third and second epoch.

    April is too far, May points away, June is used, July now and then.
    """
    rule = rule or Rule()
    first = fold(
        [[0.9, 0.1, 0.1, 0.6], [0.8, 0.1, 0.2, 0.1], [0.7, 0.1, 0.3, 0.1], [0.6, 0.1, 0.4, 0.1]],
        [[0.4, -0.2, 0.1, 0.1], [0.3, -0.2, 0.2, -1], [0.2, -0.2, 0.3, 0.1], [0.1, -0.2, 0.4, 0.1]],
        [0.9, 0.5, 0.4, 0.6],
        rule,
    )
    second = fold(
        [[0.9, 0.1, 0.3, 0.6], [0.9, 0.1, 0.2, 0.6]],
        [[0.4, -0.4, 0.1, 0.1], [0.4, -0.4, 0.5, 0.1]],
        [0.9, 0.3],
        rule,
    )
    names = ("April", "May", "June", "July")
    return Selection(names, (10, 20, 30, 40), (first, second), rule, "August", 50)


def empty() -> Selection:
    nothing = np.zeros((3, 0))
    curves = FoldCurves(2.0, 1, np.array([0.9, 0.5, 0.6]), nothing.astype(bool), nothing, nothing)
    return Selection((), (), (curves,), Rule(), "August", 50)


def test_a_segment_is_used_from_half_of_the_mean_weight_on() -> None:
    # Weights 0, 0, 1 and 0.2, so that half of their mean is 0.15.
    assert [(use.name, use.used) for use in example()] == [
        ("April", False), ("May", False), ("June", True), ("July", True),
    ]  # fmt: skip


def passing(shares: list[int], blend: tuple[float, float, float] = (0.0, 1.0, 0.0)) -> Selection:
    """Segments that pass both tests in so many of 100 epochs, and are too far in the others."""
    near = [[0.1 if epoch < share else 0.9 for share in shares] for epoch in range(100)]
    losses = [1.0 - n / 1000 for n in range(100)]
    curves = fold(near, [[0.1] * len(shares)] * 100, losses, Rule())
    names = tuple(f"segment {number}" for number in range(len(shares)))
    return Selection(names, (10,) * len(shares), (curves,), Rule(), "August", 50, blend)


@pytest.mark.parametrize(
    ("n_used", "word", "used"),
    [(0, "dropped", False), (4, "dropped", False), (5, "used in part", False),
     (33, "used in part", False), (34, "used", True), (100, "used", True)],
)  # fmt: skip
def test_the_word_goes_by_the_weight_beside_that_of_others(
    n_used: int, word: str, used: bool
) -> None:
    first, *_ = passing([n_used, 100])  # from a third on it is above half of the mean of the two
    assert (first.word, first.used) == (word, used)
    assert first.weight == first.share == n_used / 100
    assert first.sentence().startswith(f"segment 0 was {word}")


def test_a_weight_below_the_least_is_dropped_however_low_the_others_are() -> None:
    assert [use.word for use in passing([4, 5, 3])] == ["dropped", "used", "dropped"]


def test_a_row_counts_in_the_part_of_all_data_and_if_selected_in_that_part() -> None:
    selection = passing([0, 50, 100], (0.3, 0.6, 0.1))
    assert [use.weight for use in selection] == pytest.approx([0.3, 0.6, 0.9])
    assert [use.share for use in selection] == [0.0, 0.5, 1.0]
    assert selection.parts == {"all": 0.3, "selected": 0.6, "current": 0.1}


def test_what_the_model_is_made_of_is_said_largest_part_first() -> None:
    made = "the model is 61% the selected segments, 30% all data, 9% August alone"
    selection = passing([0, 100], (0.3, 0.61, 0.09))
    assert selection.composition() == made
    assert selection.explain().splitlines()[0].endswith(f"1 of 2 past segments used; {made}.")
    assert passing([100], (1.0, 0.0, 0.0)).composition() == "the model is 100% all data"
    assert empty().composition() == "the model is August alone"


def test_epochs_that_selected_no_segment_count_as_the_current_one_alone() -> None:
    none = passing([0, 0], (0.02, 0.93, 0.05))
    assert [use.word for use in none] == ["dropped", "dropped"]
    assert none.parts == pytest.approx({"all": 0.02, "selected": 0.0, "current": 0.98})
    assert none.composition() == "the model is 98% August alone, 2% all data"
    some = passing([0, 50], (0.2, 0.8, 0.0))
    assert some.parts == pytest.approx({"all": 0.2, "selected": 0.4, "current": 0.4})
    assert some[1].weight == pytest.approx(0.6)  # 20 % + 40 % in all epochs that selected a segment


@given(data=st.data())
def test_a_part_of_selected_segments_is_never_without_a_segment(data: st.DataObject) -> None:
    shares = data.draw(st.lists(st.integers(0, 100), min_size=1, max_size=5))
    selected = data.draw(st.floats(0, 1))
    selection = passing(shares, (0.0, selected, 1 - selected))
    parts, weights = selection.parts, [use.weight for use in selection]
    assert sum(parts.values()) == pytest.approx(1)
    # Segments are selected in the first epochs, so the most selected one has all of the part.
    assert parts["selected"] == pytest.approx(max(weights))


def test_names_that_read_as_counts_or_end_a_clause_are_quoted() -> None:
    selection = replace(passing([0, 100], (0.0, 0.9, 0.1)), names=(16, "17, north"), current=18)
    head, first, second = selection.explain().splitlines()
    assert head.startswith("Trained for '18' (50 rows): 1 of 2 past segments used; the model is")
    assert head.endswith(", 10% '18' alone.")
    assert first.startswith("'16' was dropped")
    assert second.startswith("'17, north' was used")


def test_a_segment_that_only_all_data_brings_says_so_beside_its_gradient() -> None:
    away, partly, near = passing([0, 30, 100], (0.6, 0.4, 0.0))
    assert (away.word, away.weight) == ("used", 0.6)
    assert away.reason == (
        "all data makes up 60% of the model, though it disagrees with today's rows in every epoch"
    )
    assert partly.reason == (
        "all data makes up 60% of the model, and it agrees with today's rows and helps in 30% of "
        "epochs"
    )
    assert near.reason == "it agrees with today's rows and helps in every epoch"


def test_a_small_part_of_all_data_is_no_reason_for_a_dropped_segment() -> None:
    dropped, in_part, most = (passing([share, 100], (0.04, 0.96, 0.0))[0] for share in (0, 20, 90))
    assert (dropped.word, dropped.fate) == ("dropped", "dropped: differs")
    assert dropped.sentence().startswith("segment 0 was dropped (weight 4%): it disagrees with")
    rarely = passing([3, 100])[0]  # what speaks against a dropped segment, not what speaks for it
    assert rarely.reason == "it disagrees with today's rows in 97% of epochs"
    assert in_part.reason == "it agrees with today's rows and helps in 20% of epochs"
    assert in_part.word == "used in part"
    assert most.word == "used"


def test_a_segment_that_agrees_is_dropped_where_the_present_alone_makes_the_model() -> None:
    near, away = passing([100, 0], (0.0, 0.02, 0.98))
    assert (near.word, near.fate) == ("dropped", "dropped: no need")
    assert near.reason.startswith("August alone makes up 98% of the model, though it agrees with")
    assert away.fate == "dropped: differs"
    assert away.reason.startswith("it disagrees with today's rows")


def test_epochs_after_the_best_one_do_not_count() -> None:
    # The weights of the second epoch are kept; what the third and fourth used is thrown away.
    curves = fold([[0.9], [0.9], [0.1], [0.1]], [[0.1]] * 4, [0.9, 0.5, 0.6, 0.7], Rule())
    [use] = selection = Selection(("May",), (10,), (curves,), Rule())
    assert (use.share, use.used, use.disparity.median) == (0.0, False, 0.9)
    assert selection.ever_used() == ["May"]


def test_the_share_is_that_of_all_epochs_that_made_the_model() -> None:
    # July: 1 of 3 epochs in the first fold, 0 of 2 in the second.
    assert [use.share for use in example()] == [0.0, 0.0, 1.0, 0.2]


def test_scores_are_means_over_folds_at_three_epochs_and_the_median_of_all() -> None:
    june = example().of("June")
    assert june.disparity == pytest.approx(((0.1 + 0.3) / 2, (0.3 + 0.2) / 2, (0.4 + 0.2) / 2, 0.2))
    assert june.gain == pytest.approx(((0.1 + 0.1) / 2, (0.3 + 0.5) / 2, (0.4 + 0.5) / 2, 0.2))


def test_disparities_are_scaled_to_the_shown_bound() -> None:
    tight = fold([[0.1]] * 3, [[0.1]] * 3, [0.5, 0.4, 0.3], Rule(), bound=0.2)
    wide = fold([[1.4]], [[0.1]], [0.5], Rule(), bound=1.0)
    [use] = selection = Selection(("May",), (10,), (tight, wide), Rule())
    assert selection.disparity_max == pytest.approx(0.6)
    assert use.disparity.median == pytest.approx(0.3)  # half of the bound, as in most epochs


def test_the_bound_is_the_mean_over_folds() -> None:
    whole = example()
    folds = (replace(whole.folds[0], disparity_max=0.3), whole.folds[1])
    assert replace(whole, folds=folds).disparity_max == pytest.approx(0.4)


def test_the_shares_of_used_and_failed_epochs_add_up() -> None:
    # July fails one test at a time: too far in 1 of 3 and 2 of 2 epochs, away in 1 of 3 and none.
    july = example().of("July")
    assert (july.share, july.too_far, july.away) == pytest.approx((0.2, 0.6, 0.2))


@given(data=st.data())
def test_what_fails_a_test_in_every_epoch_fails_it_in_the_median(data: st.DataObject) -> None:
    folds = []
    for _ in range(data.draw(st.integers(1, 3))):
        n_epochs = data.draw(st.integers(1, 5))
        bound = data.draw(st.floats(0.01, 2))
        far = [[bound + data.draw(st.floats(0, 5))] for _ in range(n_epochs)]
        away = [[data.draw(st.floats(-5, 0))] for _ in range(n_epochs)]
        folds.append(fold(far, away, [0.5] * n_epochs, Rule(), bound))
    [use] = selection = Selection(("May",), (10,), tuple(folds), Rule())
    assert use.disparity.median >= selection.disparity_max - 1e-9
    assert use.gain.median <= 0
    assert (use.too_far, use.away, use.fate) == (1, 1, "dropped: differs")


@given(data=st.data())
def test_what_most_epochs_used_passes_both_tests_in_the_median(data: st.DataObject) -> None:
    folds = []
    for _ in range(data.draw(st.integers(1, 3))):
        n_epochs = data.draw(st.integers(1, 6))
        bound = data.draw(st.floats(0.01, 2))
        far = [[data.draw(st.floats(0, 4))] for _ in range(n_epochs)]
        gain = [[data.draw(st.floats(-1, 1))] for _ in range(n_epochs)]
        losses = data.draw(st.lists(st.floats(0, 1), min_size=n_epochs, max_size=n_epochs))
        folds.append(fold(far, gain, losses, Rule(), bound))
    [use] = selection = Selection(("May",), (10,), tuple(folds), Rule())
    if use.share > 0.5:
        assert use.disparity.median <= selection.disparity_max + 1e-9
        assert use.gain.median > 0


@pytest.mark.parametrize(
    ("name", "fate"),
    [("April", "dropped: differs"), ("May", "dropped: no help"), ("June", "used")],
)
def test_the_fate_names_the_test_that_failed_more_often(name: str, fate: str) -> None:
    assert example().of(name).fate == fate


def test_a_segment_is_found_by_name_number_and_slice() -> None:
    selection = example()
    assert selection.of("June") == selection[2] == selection[-2]
    assert [use.name for use in selection[1:3]] == ["May", "June"]
    assert len(selection) == 4
    with pytest.raises(IndexError):
        selection[4]


def test_an_unknown_name_is_an_input_error_that_lists_the_known_ones() -> None:
    with pytest.raises(InputError, match=r"'March'.*\['April', 'May'"):
        example().of("March")


def test_a_segment_too_far_is_dropped_with_its_distance_and_the_bound() -> None:
    sentence = example().of("April").sentence()
    assert sentence.startswith("April was dropped")
    assert "it disagrees with today's rows in every epoch (median disparity 0.90, bound" in sentence
    assert "help" not in sentence


def test_a_segment_pointing_away_is_dropped_with_its_gain() -> None:
    sentence = example().of("May").sentence()
    assert sentence.startswith("May was dropped")
    assert "it never helps (" in sentence
    assert "median gain -0.2)" in sentence
    assert "disagrees" not in sentence


def test_a_used_segment_is_said_to_agree() -> None:
    sentence = example().of("June").sentence()
    assert sentence.startswith("June was used (weight 100%)")
    assert (
        "it agrees with today's rows and helps in every epoch (median disparity 0.20, " in sentence
    )
    assert sentence.endswith("median gain +0.2).")
    assert not any(word in sentence for word in ("disagrees", "not", "gradient", "too far"))


def test_a_segment_used_now_and_then_says_why_it_was_used_and_not_what_spoke_against_it() -> None:
    sentence = example().of("July").sentence()
    assert sentence.startswith("July was used (weight 20%)")
    assert "it agrees with today's rows and helps in 20% of epochs (median" in sentence
    assert not any(word in sentence for word in ("disagrees", "not", "gradient", "too far"))


def test_a_test_that_is_switched_off_is_never_a_reason() -> None:
    assert "agrees" not in example(Rule(use_disparity=False)).explain()
    assert "help" not in example(Rule(use_gain=False)).explain()
    without = example(Rule(use_disparity=False, use_gain=False)).of("April").sentence()
    assert "both tests are switched off (median disparity 0.90, median gain" in without


def test_scores_that_are_not_numbers_do_not_count_as_agreement() -> None:
    curves = fold([[np.nan], [np.nan]], [[np.nan], [np.nan]], [0.5, 0.9], Rule())
    [use] = Selection(("May",), (10,), (curves,), Rule())
    assert not use.used
    assert "disagrees with today's rows in every epoch" in use.sentence()


def test_explain_has_a_sentence_per_segment_oldest_first() -> None:
    summary, *lines = example().explain().splitlines()
    assert summary == "Trained for August (50 rows): 2 of 4 past segments used."
    assert [line.split()[0] for line in lines] == ["April", "May", "June", "July"]
    assert all(line.endswith(".") for line in lines)


def test_one_row_and_one_segment_are_not_plural() -> None:
    whole = example()
    folds = tuple(
        replace(f, selected=f.selected[:, :1], disparity=f.disparity[:, :1], gain=f.gain[:, :1])
        for f in whole.folds
    )
    one = Selection(("April",), (10,), folds, Rule(), "August", 1)
    assert one.explain().startswith("Trained for August (1 row): 0 of 1 past segment used.")


def test_an_empty_history_is_explained_shown_and_saved() -> None:
    selection = empty()
    assert selection.explain().startswith("There is no past segment")
    assert repr(selection) == "Trained for August (50 rows): 0 of 0 past segments used"
    assert "<tbody></tbody>" in selection._repr_html_()
    assert len(selection.to_frame("pandas")) == 0
    assert selection.to_frame("polars").columns[0] == "segment"
    again = Selection.from_json(json.loads(json.dumps(selection.to_json())))
    assert len(again) == 0
    assert (again.current, again.n_current) == ("August", 50)
    assert again.folds[0].selected.shape == (3, 0)


def test_repr_is_a_table_with_the_scores_that_the_sentences_have() -> None:
    head, titles, *lines = repr(example()).splitlines()
    assert head == f"Trained for August (50 rows): 2 of 4 past segments used ({SCORES})"
    assert titles.split() == ["segment", "rows", "weight", "disparity", "gain"]
    assert lines[2].split() == ["June", "30", "100%", "0.200", "+0.2000"]
    assert len({len(line) for line in (titles, *lines)}) == 1


def test_html_has_a_row_per_segment_and_escapes_names() -> None:
    whole = example()
    names = ("<script>alert(1)</script>", "a & b", "June", "July")
    page = Selection(names, whole.n_rows, whole.folds, whole.rule)._repr_html_()
    assert page.count("<tr") == 1 + 4
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "<script>" not in page
    assert "a &amp; b" in page
    assert page.count("opacity:0.55") == 2


FRAMES: list[tuple[Literal["pandas", "polars", "pyarrow"], type[Any]]] = [
    ("pandas", pd.DataFrame),
    ("polars", pl.DataFrame),
    ("pyarrow", pa.Table),
]


@pytest.mark.parametrize(("backend", "kind"), FRAMES)
def test_the_table_comes_as_the_frame_one_asks_for(
    backend: Literal["pandas", "polars", "pyarrow"], kind: type[Any]
) -> None:
    selection = example()
    frame = selection.to_frame(backend)
    assert isinstance(frame, kind)
    rows = frame.to_dict("records") if backend == "pandas" else (
        frame.to_dicts() if backend == "polars" else frame.to_pylist()
    )  # fmt: skip
    assert [row["segment"] for row in rows] == ["April", "May", "June", "July"]
    june, use = rows[2], selection.of("June")
    assert june["used"] is True
    assert (june["rows"], june["weight"], june["share"], june["why"]) == (30, 1.0, 1.0, use.why)
    assert june["disparity_best"] == use.disparity.best
    assert june["gain_last"] == use.gain.last


def test_a_selection_comes_back_from_json_as_it_was() -> None:
    selection = replace(example(Rule(use_gain=False)), blend=(0.25, 0.5, 0.25))
    again = Selection.from_json(json.loads(json.dumps(selection.to_json())))
    assert list(again) == list(selection)
    assert (again.rule, again.blend) == (selection.rule, selection.blend)
    for one, other in zip(again.folds, selection.folds, strict=True):
        assert (one.disparity_max, one.best) == (other.disparity_max, other.best)
        for key in ("validation_loss", "selected", "disparity", "gain"):
            assert np.array_equal(getattr(one, key), getattr(other, key))
            assert getattr(one, key).dtype == getattr(other, key).dtype


def test_a_record_of_before_there_were_blends_is_of_selected_segments_alone() -> None:
    record = example().to_json()
    del record["blend"]
    assert Selection.from_json(record).blend == (0.0, 1.0, 0.0)


def test_names_that_json_does_not_know_become_text() -> None:
    whole = example()
    names = (pd.Timestamp("2024-05-01"), ("a", 1), 3, 2.5)
    record = Selection(names, whole.n_rows, whole.folds, whole.rule).to_json()
    assert record["names"] == ["2024-05-01 00:00:00", "('a', 1)", 3, 2.5]


def _damage(key: str, value: Any) -> Callable[[dict[str, Any]], None]:
    def change(record: dict[str, Any]) -> None:
        record[key] = value

    return change


def _damage_fold(key: str, value: Any) -> Callable[[dict[str, Any]], None]:
    def change(record: dict[str, Any]) -> None:
        record["folds"][0][key] = value

    return change


@pytest.mark.parametrize(
    "damage",
    [
        lambda record: record.pop("folds"),
        lambda record: record.pop("names"),
        lambda record: record["folds"][0].pop("gain"),
        _damage("rule", None),
        _damage("blend", [1.0]),
        _damage("blend", "none"),
        _damage("rule", [True, True, True]),
        _damage("folds", 3),
        _damage("folds", []),
        _damage("folds", ["text"]),
        _damage("names", ["only one"]),
        _damage("n_rows", [1]),
        _damage_fold("gain", [[0.1, 0.2], [0.3]]),
        _damage_fold("gain", [[0.1], [0.2], [0.3], [0.4]]),
        _damage_fold("disparity", [["a"] * 4] * 4),
        _damage_fold("selected", [[True] * 4] * 3),
        _damage_fold("validation_loss", [0.1]),
        _damage_fold("best", 4),
        _damage_fold("best", "first"),
    ],
)
def test_a_damaged_record_is_a_model_file_error(damage: Callable[[dict[str, Any]], None]) -> None:
    record = copy.deepcopy(example().to_json())
    damage(record)
    with pytest.raises(ModelFileError, match="damaged"):
        Selection.from_json(record)


@pytest.mark.parametrize("record", [None, [], "text", 3])
def test_a_record_that_is_no_record_is_a_model_file_error(record: Any) -> None:
    with pytest.raises(ModelFileError, match="damaged"):
        Selection.from_json(record)


def test_curves_are_those_of_the_winning_trials() -> None:
    def epoch(loss: float, far: float) -> Epoch:
        scores = Scores(np.array([far]), np.array([0.1]))
        return Epoch(scores, Rule().keep(scores, 0.5), loss, 10, 1.0)

    epochs = (epoch(np.nan, 0.1), epoch(0.4, 0.2), epoch(0.3, 0.7), epoch(0.3, 0.9))
    may = Segment("May", np.zeros((5, 1)), np.zeros(5, np.int64), np.ones(5, np.float32))
    [use] = selection = explain_folds(
        [may], may, [Trial[Any](0.5, 0.5, 0.3, True, epochs, None)], Rule()
    )
    assert selection.folds[0].best == 2
    assert use.n_rows == 5
    assert use.share == pytest.approx(2 / 3)
    assert use.disparity == pytest.approx((0.1, 0.7, 0.9, 0.2))


def test_a_real_training_is_explained() -> None:
    rng = np.random.default_rng(0)

    def rows(name: str, *, flip: bool) -> Segment:
        X = rng.normal(size=(150, 2)).astype(np.float32)
        y = ((X[:, 0] > 0) ^ flip).astype(np.int64)
        return Segment(name, X, y, np.ones(150, np.float32))

    history = [rows("April", flip=True), rows("May", flip=False)]
    quilt = Quilt(MLP(hidden_units=16), n_folds=2, max_epochs=40, search=Shared((0.3, 0.6)))
    selection = quilt.adapt(history, rows("June", flip=False)).selection
    assert [use.used for use in selection] == [False, True]
    assert selection.of("April").gain.first < 0 < selection.of("May").gain.first
    assert "April was dropped" in selection.explain()


@pytest.mark.parametrize(
    ("share", "words"), [(0.0, "0%"), (0.0001, "<1%"), (0.006, "1%"), (0.5, "50%"), (1.0, "100%")]
)
def test_a_segment_that_was_used_never_reads_as_unused(share: float, words: str) -> None:
    assert percent(share) == words


def test_a_segment_is_found_by_its_name() -> None:
    selection = example()
    assert selection["June"] == selection.of("June") == selection[2]


# Where another model than the net chose among training sets


def chosen(*sets: TriedSet, weights: tuple[float, ...] = (1.0, 0.0, 0.0)) -> Selection:
    """Three segments, ranked 2, 1, 0, and the training sets that were tried."""
    return replace(passing([10, 50, 90]), weights=weights, sets=sets, metric="log_loss")


def tried(n_segments: int, score: float, share: float = 0.0, **kind: Any) -> TriedSet:
    settings = {"balanced": False, "n_rows": 80, "n_judged": 40} | kind
    return TriedSet(n_segments=n_segments, score=score, share=share, **settings)


def test_a_balanced_set_gives_its_segments_its_share_and_rows_what_they_count() -> None:
    balanced = tried(3, -0.2, 0.62, balanced=True)
    alone, everything = tried(0, -0.3, 0.38), tried(3, -0.4)
    selection = chosen(everything, alone, balanced, weights=(0.02, 0.02, 0.02))
    assert selection.composition() == (
        "the model is trained 62% on all data balanced with the current rows, 38% on the current "
        "rows alone"
    )
    assert [use.weight for use in selection] == pytest.approx([0.62] * 3)
    assert [use.row_weight for use in selection] == [0.02] * 3
    assert [use.word for use in selection] == ["used"] * 3
    names = [*selection.names, "August"]
    assert selection.row_weights(names).tolist() == [0.02, 0.02, 0.02, 1.0]


def test_the_reason_is_the_models_choice_among_sets() -> None:
    best = tried(1, -0.1, 1.0)
    selection = chosen(tried(3, -0.7), tried(0, -0.2), best, tried(2, -0.05, n_judged=20))
    assert [use.rank for use in selection] == [3, 2, 1]
    assert [use.fate for use in selection] == ["dropped", "dropped", "used"]
    assert selection[2].why == (
        "held-out current rows are predicted better with it (log loss 0.100 with it, 0.200 without"
        "; rank 1 of 3)"
    )
    assert selection[0].why == (
        "held-out current rows are predicted worse with it (log loss 0.700 with it, 0.100 without"
        "; rank 3 of 3)"
    )


def test_a_segment_that_only_the_blend_has_names_the_set_that_has_it() -> None:
    recent = tried(2, -0.2, 0.3, recent=True)
    selection = chosen(tried(3, -0.7), tried(0, -0.1, 0.7), recent)
    assert selection[1].reason == (
        "the model is trained 30% on the last 2 segments (segment 1, segment 2) and the current "
        "rows"
    )
    assert selection[0].reason == "held-out current rows are predicted worse with it"
    only = chosen(tried(3, -0.7), tried(3, -0.2, 1.0, has_age=True))
    assert only[0].why == "no set without it did well enough to be judged to the end (rank 3 of 3)"
    assert (
        only.composition() == "the model is trained 100% on all data with the age of each segment"
    )


def test_sets_come_back_from_json_also_without_a_score() -> None:
    selection = chosen(tried(3, float("nan")), tried(0, -0.1, 1.0))
    again = Selection.from_json(json.loads(json.dumps(selection.to_json())))
    assert np.isnan(again.sets[0].score)
    assert again.sets[1] == selection.sets[1]
    assert again.explain() == selection.explain()
    assert again.metric == "log_loss"
