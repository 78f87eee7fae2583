"""QuiltSelector: any estimator on the past that still holds, and select_segments."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
import pytest
from catboost import CatBoostClassifier  # type: ignore[import-untyped]
from lightgbm import LGBMClassifier
from numpy.typing import NDArray
from sklearn import config_context
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks
from xgboost import XGBClassifier

from driftquilt import InputError, QuiltClassifier, QuiltSelector, select_segments
from driftquilt.quilt import Selection
from driftquilt.quilt.blending import Judge

MONTHS = ["April", "May", "June", "July", "August"]
UPSIDE_DOWN = ["May", "July"]
QUICK = QuiltClassifier(hidden_units=16, max_epochs=15)
COLUMNS = ["price", "visits", "channel"]


@parametrize_with_checks(  # type: ignore[untyped-decorator]
    [
        QuiltSelector(LogisticRegression(), random_state=0),
        QuiltSelector(HistGradientBoostingClassifier(max_iter=5), random_state=0),
    ],
    expected_failed_checks=lambda _: {
        "check_dtype_object": "a value of a strange type is an InputError, no TypeError"
    },
    xfail_strict=True,
)
def test_check_of_scikit_learn_holds(
    estimator: QuiltSelector, check: Callable[[QuiltSelector], Any]
) -> None:
    check(estimator)


def planted(n_current: int = 80, seed: int = 0) -> tuple[Any, NDArray[Any], NDArray[Any]]:
    """Five months, two of which are another world; the last has few rows."""
    rng = np.random.default_rng(seed)
    month = np.repeat(MONTHS, [400, 400, 400, 400, n_current])
    table = pd.DataFrame(
        {
            "price": rng.uniform(1, 100, len(month)),
            "visits": rng.poisson(3, len(month)).astype(float),
            "channel": rng.choice(["web", "shop", "phone"], len(month)),
        }
    )
    would_buy = table["price"] + 10 * table["visits"] + 20 * (table["channel"] == "web") < 85
    return table, np.where(would_buy ^ np.isin(month, UPSIDE_DOWN), "yes", "no"), month


TABLE, LABELS, MONTH = planted()
_later = planted(2000, seed=1)
TEST, TEST_LABELS = _later[0][1600:], _later[1][1600:]
NUMBERS = TABLE[["price", "visits"]].to_numpy()


def lightgbm(**settings: Any) -> LGBMClassifier:
    return LGBMClassifier(n_estimators=30, n_jobs=1, verbose=-1, **settings)


def selector(estimator: Any, **settings: Any) -> QuiltSelector:
    return QuiltSelector(estimator, **{"quilt": QUICK, "random_state": 0, **settings})


@pytest.fixture(scope="module")
def fitted() -> QuiltSelector:
    return selector(lightgbm()).fit(TABLE, LABELS, segments=MONTH)


@pytest.fixture
def routing() -> Iterator[None]:
    with config_context(enable_metadata_routing=True):
        yield


def test_it_drops_the_other_world_and_beats_all_data_and_the_present_alone(
    fitted: QuiltSelector,
) -> None:
    def fresh(rows: Any) -> float:
        table = TABLE[rows].astype({"channel": "category"})
        test = TEST.astype({"channel": "category"})
        score: float = lightgbm().fit(table, LABELS[rows]).score(test, TEST_LABELS)
        return score

    score = fitted.score(TEST, TEST_LABELS)
    assert [use.name for use in fitted.selection_ if use.used] == ["April", "June"]
    assert score > 0.93
    assert score > fresh(MONTH == "August") + 0.03
    assert score > fresh(MONTH != "") + 0.2


def test_what_was_tried_is_a_list_and_shares_add_up(fitted: QuiltSelector) -> None:
    nested = [line for line in fitted.search_ if not line.recent and not line.has_age]
    tried = [(line.n_segments, line.balanced) for line in nested]
    assert tried == [(4, False), (0, False), (1, False), (2, False), (4, True)]
    assert [line.n_segments for line in fitted.search_ if line.has_age] == [4]
    assert [line.n_segments for line in fitted.search_ if line.recent] == [2]
    assert sum(line.share for line in fitted.search_) == pytest.approx(1)
    assert fitted.shares_.sum() == pytest.approx(1)
    assert len(fitted.estimators_) == np.count_nonzero([line.share for line in fitted.search_])
    assert fitted.estimator_ is fitted.estimators_[0]
    best = max(fitted.search_, key=lambda line: line.share)
    assert (best.n_segments, best.n_rows) == (2, 880)
    assert all(line.n_judged in (40, 80) for line in fitted.search_)


def test_weights_of_rows_are_those_of_their_segments(fitted: QuiltSelector) -> None:
    by_segment = fitted.selection_.row_weights(MONTH)  # what rows count, not how much was trained
    np.testing.assert_allclose(fitted.sample_weight_, by_segment)
    assert (by_segment[MONTH == "August"] == 1).all()
    weights = {use.name: use.weight for use in fitted.selection_}
    assert max(weights["May"], weights["July"]) < 0.1
    assert min(weights["April"], weights["June"]) > 0.6


def test_it_explains_the_training_set_of_the_estimator(fitted: QuiltSelector) -> None:
    text = fitted.explain()
    assert "2 of 4 past segments used" in text
    head = text.splitlines()[0]
    assert "% on the best 2 segments (April, June) and the current rows" in head
    assert head.count("% on ") == len(fitted.estimators_)
    for use in fitted.selection_:
        assert use.why.endswith(f"rank {use.rank} of 4)")
        if not use.used:
            assert "held-out current rows are predicted worse with it (log loss " in use.why
    assert {use.fate for use in fitted.selection_} == {"used", "dropped"}  # no test of the net's
    assert not any(word in text for word in ("disparity", "epochs", "bound"))
    assert fitted.selection_.to_frame()["weight"].tolist() == [
        use.weight for use in fitted.selection_
    ]
    again = Selection.from_json(fitted.selection_.to_json())
    assert again.weights == fitted.selection_.weights
    assert again.sets == tuple(fitted.search_)
    assert again.explain() == text


def test_features_and_classes_are_known(fitted: QuiltSelector) -> None:
    assert fitted.classes_.tolist() == ["no", "yes"]
    assert fitted.n_features_in_ == 3
    assert fitted.feature_names_in_.tolist() == COLUMNS
    assert fitted.predict_proba(TEST).shape == (len(TEST), 2)


def test_a_seed_repeats_everything(fitted: QuiltSelector) -> None:
    again = clone(fitted).fit(TABLE, LABELS, segments=MONTH)
    assert np.array_equal(again.predict_proba(TEST), fitted.predict_proba(TEST))
    assert again.search_ == fitted.search_


def test_the_seed_is_that_of_the_estimator_too() -> None:
    forest = selector(DecisionTreeClassifier(max_features=1), random_state=3)
    first = clone(forest).fit(NUMBERS, LABELS, segments=MONTH)
    second = clone(forest).fit(NUMBERS, LABELS, segments=MONTH)
    assert first.estimator_.random_state == second.estimator_.random_state is not None
    assert np.array_equal(first.predict_proba(NUMBERS), second.predict_proba(NUMBERS))
    assert forest.estimator.random_state is None


BOOSTERS = {
    "lightgbm": lightgbm(),
    "xgboost": XGBClassifier(n_estimators=30, n_jobs=1, enable_categorical=True),
    "catboost": CatBoostClassifier(
        iterations=30, thread_count=1, verbose=False, allow_writing_files=False
    ),
    "scikit-learn": HistGradientBoostingClassifier(max_iter=30),
}


@pytest.mark.parametrize("name", BOOSTERS)
def test_text_reaches_a_booster_as_categories(name: str) -> None:
    table = TABLE.copy()
    table.loc[::50, "channel"] = None
    model = selector(BOOSTERS[name]).fit(table, LABELS, segments=MONTH)
    assert model.score(TEST, TEST_LABELS) > 0.9
    strange = TEST.assign(channel=["app", None] * (len(TEST) // 2))
    assert np.isfinite(model.predict_proba(strange)).all()
    one_value = TEST[TEST["channel"] == "web"][:5]  # its codes are those of fit
    np.testing.assert_allclose(
        model.predict_proba(one_value), model.predict_proba(TEST)[TEST["channel"] == "web"][:5]
    )


def test_more_categories_than_scikit_learn_takes_are_cut() -> None:
    table = TABLE.assign(channel=[f"shop {number % 300}" for number in range(len(TABLE))])
    model = selector(BOOSTERS["scikit-learn"]).fit(table, LABELS, segments=MONTH)
    assert len(model.predict(table)) == len(table)


def test_a_polars_frame_reaches_lightgbm() -> None:
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame(TABLE.to_dict("list"))
    model = selector(lightgbm()).fit(frame, LABELS, segments=MONTH)
    test = polars.DataFrame(TEST.to_dict("list"))
    assert model.score(test, TEST_LABELS) > 0.9


def test_everything_with_its_age_leads_where_a_boundary_moves_month_by_month(
    tmp_path: Path,
) -> None:
    rng = np.random.default_rng(1)
    month = np.repeat(np.arange(9), [400] * 8 + [1080])
    X = rng.uniform(size=(len(month), 3))
    y = (X[:, 0] > month / 10) ^ (X[:, 1] > 0.5)
    X, y, month, test, truth = X[:-1000], y[:-1000], month[:-1000], X[-1000:], y[-1000:]
    model = selector(lightgbm()).fit(X, y, segments=month)
    best = max(model.search_, key=lambda line: line.share)
    assert best.has_age
    assert (model.estimator_.n_features_in_, model.n_features_in_) == (4, 3)
    assert model.score(test, truth) > lightgbm().fit(X, y).score(test, truth) + 0.1
    model.save(tmp_path / "model.safetensors")
    loaded = QuiltSelector.load(tmp_path / "model.safetensors")
    assert np.array_equal(loaded.predict_proba(test), model.predict_proba(test))
    assert loaded.search_ == model.search_


@pytest.mark.parametrize(
    ("estimator", "has_age"),
    [
        (lightgbm(), True),
        (HistGradientBoostingClassifier(max_iter=5), True),
        (HistGradientBoostingClassifier(max_iter=5, monotonic_cst=[1, 0]), False),
        (lightgbm(monotone_constraints="1,0"), False),
        (LogisticRegression(), False),
        (make_pipeline(StandardScaler(), LogisticRegression()), False),
    ],
)
def test_only_boosters_without_settings_by_column_get_the_age(
    estimator: Any, has_age: bool
) -> None:
    model = selector(estimator).fit(NUMBERS, LABELS, segments=MONTH)
    assert any(line.has_age for line in model.search_) == has_age


def test_an_estimator_without_weights_gets_resampled_rows() -> None:
    model = selector(KNeighborsClassifier()).fit(NUMBERS, LABELS, segments=MONTH)
    alone = KNeighborsClassifier().fit(NUMBERS, LABELS)
    test = TEST[["price", "visits"]].to_numpy()
    assert model.score(test, TEST_LABELS) > alone.score(test, TEST_LABELS) + 0.1
    weighted = selector(KNeighborsClassifier()).fit(
        NUMBERS, LABELS, segments=MONTH, sample_weight=np.linspace(0.1, 1, len(LABELS))
    )
    assert weighted.score(test, TEST_LABELS) > 0.7


def test_an_estimator_without_probabilities_goes_by_accuracy() -> None:
    model = selector(LinearSVC()).fit(NUMBERS / 100, LABELS, segments=MONTH)
    assert model.metric_.name == "accuracy"
    assert not hasattr(model, "predict_proba")
    assert model.score(TEST[["price", "visits"]].to_numpy() / 100, TEST_LABELS) > 0.7


def pipeline() -> Any:
    encode = make_column_transformer(
        (OneHotEncoder(), ["channel"]), (StandardScaler(), ["price", "visits"])
    )
    return make_pipeline(encode, LogisticRegression())


@pytest.mark.parametrize("with_routing", [False, True])
def test_a_pipeline_inside_gets_the_frame_as_it_is_and_weights(with_routing: bool) -> None:
    weight = np.linspace(0.5, 1, len(LABELS))
    with config_context(enable_metadata_routing=with_routing):
        model = selector(pipeline()).fit(TABLE, LABELS, segments=MONTH, sample_weight=weight)
    assert model.score(TEST, TEST_LABELS) > 0.9


@pytest.mark.usefixtures("routing")
def test_it_works_at_the_end_of_a_pipeline() -> None:
    inner = selector(LogisticRegression()).set_fit_request(segments=True, sample_weight=True)
    model = make_pipeline(StandardScaler().set_fit_request(sample_weight=False), inner)
    model.fit(NUMBERS, LABELS, segments=MONTH, sample_weight=np.ones(len(LABELS)))
    assert model.score(TEST[["price", "visits"]].to_numpy(), TEST_LABELS) > 0.8
    assert len(model[-1].selection_) == 4


@pytest.mark.usefixtures("routing")
def test_a_grid_search_routes_segments() -> None:
    model = selector(lightgbm()).set_fit_request(segments=True, sample_weight=False)
    grid = GridSearchCV(model, {"estimator__num_leaves": [2, 8]}, cv=2)
    grid.fit(TABLE, LABELS, segments=MONTH)
    assert len(grid.best_estimator_.selection_) == 4


def test_without_segments_the_estimator_is_simply_trained() -> None:
    model = selector(LogisticRegression()).fit(NUMBERS, LABELS)
    plain = LogisticRegression().fit(NUMBERS, LABELS)
    np.testing.assert_allclose(model.predict_proba(NUMBERS), plain.predict_proba(NUMBERS))
    assert "no past segment" in model.explain()
    assert (model.sample_weight_ == 1).all()
    assert [line.share for line in model.search_] == [1.0]


def test_rows_of_weight_zero_count_as_if_they_were_not_there() -> None:
    model = selector(DecisionTreeClassifier(max_depth=3))
    weight = np.where(MONTH == "May", 0.0, 1.0)
    with_zeros = clone(model).fit(NUMBERS, LABELS, segments=MONTH, sample_weight=weight)
    rest = MONTH != "May"
    without = clone(model).fit(NUMBERS[rest], LABELS[rest], segments=MONTH[rest])
    assert np.array_equal(with_zeros.predict_proba(NUMBERS), without.predict_proba(NUMBERS))
    assert not with_zeros.sample_weight_[~rest].any()
    assert np.array_equal(with_zeros.sample_weight_[rest], without.sample_weight_)


def test_one_set_alone_is_trained_if_nothing_may_be_blended() -> None:
    model = selector(lightgbm(), blend=False).fit(TABLE, LABELS, segments=MONTH)
    assert len(model.estimators_) == 1
    assert model.shares_.tolist() == [1.0]
    assert {use.weight for use in model.selection_} == {0.0, 1.0}


def test_judging_fits_can_be_kept_small() -> None:
    model = selector(lightgbm(), judged_rows=100).fit(TABLE, LABELS, segments=MONTH)
    assert [use.name for use in model.selection_ if use.used] == ["April", "June"]
    assert max(line.n_rows for line in model.search_) == len(TABLE)


@pytest.mark.parametrize("scoring", ["roc_auc", "accuracy", "precision_at_10%"])
def test_a_metric_steers_the_choice(scoring: str) -> None:
    model = selector(lightgbm(), scoring=scoring).fit(TABLE, LABELS, segments=MONTH)
    assert model.metric_.name == scoring
    assert model.score(TEST, TEST_LABELS) > 0.9


def rare(seed: int) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """3 % positives; April has far more in the same order, and May has them at the other end."""
    rng = np.random.default_rng(seed)
    month = np.repeat(["April", "May", "June", "July"], [600, 600, 600, 400])
    X = rng.normal(size=(len(month), 3))
    odds = 2.5 * np.where(month == "May", -1, 1) * X[:, 0] + np.where(month == "April", 0, -5.7)
    return X, (rng.random(len(month)) < 1 / (1 + np.exp(-odds))).astype(int), month


def test_auc_of_rare_positives_departs_from_log_loss_only_for_one_set_that_is_surely_ahead() -> (
    None
):
    departs = []
    for seed in range(6):
        X, y, month = rare(seed)
        current = month == "July"
        assert 0.01 < y[current].mean() < 0.06
        by_loss, by_auc = (
            selector(lightgbm(), scoring=scoring).fit(X, y, segments=month)
            for scoring in (None, "roc_auc")
        )
        judged, again = (
            [line._replace(score=0, share=0) for line in model.search_]
            for model in (by_loss, by_auc)
        )
        assert judged == again
        shares = [line.share for line in by_auc.search_]
        departs.append(shares != [line.share for line in by_loss.search_])
        if departs[-1]:
            assert sorted(shares)[-2:] == [0, 1]
            judge = Judge(by_auc.metric_, by_auc.classes_)
            held_out = [np.asarray(model.held_out_) for model in (by_auc, by_loss)]
            ours, theirs = (judge.scores(y[current], chances) for chances in held_out)
            ahead, *left_out = ours - theirs
            error = np.sqrt((1 - 1 / len(left_out)) * np.sum((left_out - np.mean(left_out)) ** 2))
            assert ahead > error
    assert 0 < sum(departs) < len(departs)


def test_with_costs_the_cheapest_answer_is_given() -> None:
    costs = {("yes", "no"): 50.0, ("no", "yes"): 1.0}
    model = selector(lightgbm(), scoring=costs).fit(TABLE, LABELS, segments=MONTH)
    plain = selector(lightgbm()).fit(TABLE, LABELS, segments=MONTH)
    assert (model.predict(TEST) == "yes").sum() > (plain.predict(TEST) == "yes").sum()


def test_classes_that_the_present_lacks_are_known() -> None:
    y = np.where(MONTH == "April", "old", LABELS)
    model = selector(XGBClassifier(n_estimators=5, n_jobs=1)).fit(NUMBERS, y, segments=MONTH)
    assert model.classes_.tolist() == ["no", "old", "yes"]
    assert model.predict_proba(NUMBERS).shape == (len(y), 3)


def test_a_present_of_one_class_leans_on_the_past() -> None:
    rows = (MONTH != "August") | (LABELS == "yes")
    model = selector(LogisticRegression()).fit(NUMBERS[rows], LABELS[rows], segments=MONTH[rows])
    assert set(model.predict(NUMBERS)) == {"no", "yes"}


@pytest.mark.parametrize(
    ("settings", "word"),
    [
        ({"estimator": LinearRegression()}, "y holds text"),
        ({"estimator": "lightgbm"}, "estimator"),
        ({"scoring": "rocauc"}, "rocauc"),
        ({"n_folds": 1}, "n_folds"),
        ({"judged_rows": 0}, "judged_rows"),
        ({"quilt": LogisticRegression()}, "quilt"),
    ],
)
def test_bad_settings_are_refused_by_name(settings: dict[str, Any], word: str) -> None:
    model = QuiltSelector(**{"estimator": LogisticRegression(), **settings})
    with pytest.raises(InputError, match=word):
        model.fit(NUMBERS, LABELS, segments=MONTH)


def test_bad_segments_and_labels_are_refused() -> None:
    model = selector(LogisticRegression())
    with pytest.raises(InputError, match="segments"):
        model.fit(NUMBERS, LABELS, segments=MONTH[:-1])
    with pytest.raises(InputError, match="August"):
        model.fit(NUMBERS[:1601], LABELS[:1601], segments=MONTH[:1601])
    with pytest.raises(InputError, match="y"):
        model.fit(NUMBERS, [None] * len(NUMBERS), segments=MONTH)
    with pytest.raises(InputError, match="'channel'"):
        selector(lightgbm()).fit(TABLE, LABELS, segments=MONTH).predict(TEST[["price"]])


# select_segments


def test_the_answer_alone_has_weights_of_segments_and_rows() -> None:
    selection = select_segments(TABLE, LABELS, MONTH, random_state=0)
    assert [use.name for use in selection if use.used] == ["April", "June"]
    weights = selection.row_weights(MONTH)
    assert weights.shape == MONTH.shape
    assert (weights[MONTH == "August"] == 1).all()
    assert weights[0] == selection.of("April").weight
    with pytest.raises(InputError, match="May 1st"):
        selection.row_weights(["May 1st"])


def test_weights_of_another_length_are_a_damaged_record() -> None:
    selection = select_segments(TABLE, LABELS, MONTH, random_state=0, max_epochs=2)
    record = replace(selection, weights=(1.0,)).to_json()
    with pytest.raises(ValueError, match="do not belong together"):
        Selection.from_json(record)
