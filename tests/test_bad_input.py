"""Input that cannot be used is refused with one of our errors, which says what, where and why."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from torch import nn

from driftquilt import QuiltClassifier, QuiltRegressor, TorchLearner
from driftquilt.errors import DriftquiltError, InputError, LearnerError
from driftquilt.learners.mlp import MLP
from driftquilt.quilt.estimator import PARAMETERS
from driftquilt.quilt.executor import Threads
from driftquilt.search.bayes import Bayes
from driftquilt.search.shared import Shared

rng = np.random.default_rng(0)
N = 60
X = rng.normal(size=(N, 2))
Y = (X[:, 0] > 0).astype(np.int64)
SEGMENTS = np.repeat([1, 2, 3], N // 3)
IMAGES = rng.normal(size=(N, 1, 4, 4))


def quilt(**settings: Any) -> QuiltClassifier:
    return QuiltClassifier(**{"hidden_units": 4, "max_epochs": 3, "random_state": 0, **settings})


class NoTrials:
    """A search that tries nothing."""

    n_trials = 0

    def trials(self, *_: Any) -> Any:
        return iter(())


def with_value(value: float, row: int = 7, column: int = 1) -> Any:
    rows = X.copy()
    rows[row, column] = value
    return rows


def flat_net(_: int, n_classes: int) -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(16, n_classes), nn.Softmax(dim=1))


def no_linear(n_channels: int, n_classes: int) -> nn.Module:
    return nn.Sequential(nn.Conv2d(n_channels, n_classes, 4), nn.Flatten())


FITS: dict[str, tuple[Callable[[], Any], str]] = {
    "one row": (lambda: quilt().fit(X[:1], Y[:1]), r"1 sample\(s\)"),
    "one class": (
        lambda: quilt().fit(X, np.zeros(N, int)),
        r"1 class\(es\) \[0\]; training needs at least two",
    ),
    "current segment too small": (
        lambda: quilt().fit(X, Y, segments=[1] * (N - 1) + [2]),
        r"current segment 2 has 1 row\(s\).*at least 4.*n_folds=4",
    ),
    "fewer rows than folds": (
        lambda: quilt(n_folds=7).fit(X[:6], [0, 1] * 3),
        r"has 6 row\(s\).*at least 7.*n_folds=7",
    ),
    "labels too short": (lambda: quilt().fit(X, Y[:-1]), r"\[60, 59\].*values of y"),
    "segments too long": (
        lambda: quilt().fit(X, Y, segments=[1] * 61),
        r"\[60, 61\].*values of segments",
    ),
    "weights too short": (
        lambda: quilt().fit(X, Y, sample_weight=[1.0]),
        r"\[60, 1\].*values of sample_weight",
    ),
    "negative weight": (
        lambda: quilt().fit(X, Y, sample_weight=np.where(np.arange(N) == 4, -1, 1)),
        r"sample_weight, row 4 is -1",
    ),
    "no weight at all": (
        lambda: quilt().fit(X, Y, sample_weight=np.zeros(N)),
        "zero for every row",
    ),
    "no class weight at all": (
        lambda: quilt(class_weight={0: 0, 1: 0}).fit(X, Y),
        r"found 0 sample\(s\)",
    ),
    "missing column": (
        lambda: quilt().fit({"a": X[:, 0], "b": [None] * N}, Y),
        "column 'b' has no value in any of the 60 rows",
    ),
    "infinite": (lambda: quilt().fit(with_value(np.inf), Y), "column 'x1', row 7 holds inf"),
    "infinite by name": (
        lambda: quilt().fit({"age": X[:, 0], "paid": with_value(-np.inf)[:, 1]}, Y),
        "column 'paid', row 7 holds -inf",
    ),
    "beyond float32": (lambda: quilt().fit(with_value(1e39), Y), r"row 7 holds 1e\+39.*float32"),
    "infinite, not encoded": (
        lambda: quilt(encode=False).fit(with_value(np.inf), Y),
        "X, row 7 holds a value that is missing or infinite",
    ),
    "missing, not encoded": (
        lambda: quilt(encode=False).fit(with_value(np.nan), Y),
        "X, row 7 holds a value that is missing or infinite",
    ),
    "beyond float32, not encoded": (
        lambda: quilt(encode=False).fit(with_value(1e39), Y),
        "X, row 7 holds a value that is missing or infinite",
    ),
    "text, not encoded": (
        lambda: quilt(encode=False).fit(np.full((N, 2), "a"), Y),
        "with encode=False only numbers",
    ),
    "ragged, not encoded": (
        lambda: quilt(encode=False).fit([[1.0], [1.0, 2.0]], [0, 1]),
        "rows of X differ in shape",
    ),
    "no features, not encoded": (
        lambda: quilt(encode=False).fit(np.ones((N, 0)), Y),
        r"shape \(60, 0\)",
    ),
    "images for the default learner": (
        lambda: quilt(encode=False).fit(IMAGES, Y),
        r"\(60, 1, 4, 4\).*two-dimensional.*TorchLearner",
    ),
    "images as a table": (lambda: quilt().fit(IMAGES, Y), "Found array with dim 4"),
    "one dimension": (lambda: quilt().fit(X[:, 0], Y), "Expected 2D array"),
    "ragged": (lambda: quilt().fit([[1.0], [1.0, 2.0]], [0, 1]), "differ in length"),
    "softmax after the head": (
        lambda: quilt(learner=TorchLearner(flat_net), encode=False).fit(IMAGES, Y),
        "without softmax",
    ),
    "no linear layer": (
        lambda: quilt(learner=TorchLearner(no_linear), encode=False).fit(IMAGES, Y),
        "no linear layer",
    ),
    "missing label": (
        lambda: quilt().fit(X, np.where(np.arange(N) == 5, np.nan, Y)),
        "y is missing .* in 1 of 60 rows, first in row 5",
    ),
    "continuous labels": (lambda: quilt().fit(X, X[:, 0]), "Unknown label type: continuous"),
    "no labels": (lambda: quilt().fit(X, None), "requires y"),
    "missing segment": (
        lambda: quilt().fit(X, Y, segments=[None, *SEGMENTS[1:].tolist()]),
        "segments is missing .* first in row 0",
    ),
    "missing date": (
        lambda: quilt().fit(X, Y, segments=np.array(["NaT"] * N, "M8[D]")),
        "segments is missing .* in 60 of 60 rows",
    ),
    "sparse": (lambda: quilt().fit(sparse.csr_matrix(X), Y), r"sparse csr_matrix.*toarray\(\)"),
    "sparse, not encoded": (
        lambda: quilt(encode=False).fit(sparse.csr_matrix(X), Y),
        r"sparse csr_matrix.*toarray\(\)",
    ),
    "no rows": (lambda: quilt().fit(X[:0], Y[:0]), r"0 sample\(s\)"),
    "no rows, not encoded": (lambda: quilt(encode=False).fit(X[:0], Y[:0]), r"shape \(0, 2\)"),
    "no columns": (lambda: quilt().fit({}, Y), r"0 sample\(s\)"),
}


@pytest.mark.parametrize(("fit", "message"), FITS.values(), ids=FITS.keys())
def test_rows_that_cannot_be_trained_on_are_refused(fit: Callable[[], Any], message: str) -> None:
    with pytest.raises(DriftquiltError, match=message):
        fit()


# Prediction


def named() -> QuiltClassifier:
    return quilt().fit({"age": X[:, 0], "paid": X[:, 1]}, Y)


@pytest.mark.parametrize(
    ("predict", "message"),
    [
        pytest.param(
            lambda: named().predict({"age": [1.0], "payed": [1.0]}),
            r"lacks columns .* 'paid' \(did you mean 'payed'\?\)",
            id="column missing",
        ),
        pytest.param(
            lambda: quilt().fit(X, Y).predict(np.ones((1, 3))),
            "X has 3 features, but QuiltClassifier is expecting 2",
            id="wrong number of columns",
        ),
        pytest.param(
            lambda: named().predict({"age": ["old"], "paid": [1.0]}),
            "column 'age' was numbers at fit and is text now .*row 0 holds 'old'",
            id="another kind",
        ),
        pytest.param(
            lambda: named().predict({"age": [1.0, np.inf], "paid": [1.0, 2.0]}),
            "column 'age', row 1 holds inf",
            id="infinite",
        ),
        pytest.param(lambda: named().predict(np.ones((0, 2))), r"0 sample\(s\)", id="no rows"),
        pytest.param(
            lambda: named().predict(sparse.csr_matrix(X)), "sparse csr_matrix", id="sparse"
        ),
        pytest.param(
            lambda: quilt(encode=False).fit(X, Y).predict(np.ones((1, 3))),
            r"rows of shape \(3,\).*trained on rows of shape \(2,\)",
            id="row shape",
        ),
    ],
)
def test_rows_that_cannot_be_predicted_are_refused(
    predict: Callable[[], Any], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        predict()


# Settings

BAD_SETTINGS: dict[str, list[Any]] = {
    "search": ["grid", None, 3, Bayes, Shared, NoTrials()],
    "disparity_max": [-0.1, "1", True, float("nan")],
    "n_folds": [0, -1, 1.5, True, "2", None],
    "blend": [1, None, "yes"],
    "use_disparity": [1, None, "yes"],
    "use_gain": [0, None, "no"],
    "init": ["warm", None, np.array(["random", "previous"])],
    "hidden_units": [0, 2.0, None],
    "learning_rate": [0, 1, -1e-3, "fast", float("nan")],
    "batch_size": [0, 1.5, None],
    "learner": [3, "mlp", object(), MLP, nn.Linear(2, 2)],
    "encode": [1, None, True, "quantiles"],
    "scoring": [3, 0.5, ["roc_auc"], ("yes", "no")],
    "class_weight": ["equal", 2, np.array([1, 2]), {0: -1}, {0: "a"}, {0: np.nan}, {0: np.inf}],
    "max_epochs": [0, 1.5, None],
    "patience": [0, 2.5, None],
    "score_rows": [0, -1, 1.5, True, "all"],
    "score_every": [0, 2.5, True, None],
    "epoch_rows": [0, -1, 1.5, True, "all"],
    "averaging": [-0.1, 1, 1.5, True, "most", None, float("nan")],
    "engine": ["spark", None, 2, Threads],
    "n_jobs": [0, -1, 1.5, True, "all"],
    "progress": [1, None],
    "random_state": ["a", -1, 2**32, 0.5, True, np.random.default_rng(0)],
}
BAD = [(name, value) for name, values in BAD_SETTINGS.items() for value in values]


def test_every_setting_has_a_rule_and_bad_values_here() -> None:
    classes, numbers = ({*kind().get_params()} for kind in (QuiltClassifier, QuiltRegressor))
    assert classes | numbers == {*PARAMETERS}
    assert classes == {*BAD_SETTINGS}


@pytest.mark.parametrize(("name", "value"), BAD, ids=[f"{n}-{v!r:.20}" for n, v in BAD])
def test_a_setting_out_of_range_is_refused_by_name(name: str, value: Any) -> None:
    clf = quilt(**{name: value})
    with pytest.raises(InputError, match=f"^{name} must be .*, but got "):
        clf.fit(X, Y, segments=SEGMENTS)
    with pytest.raises(InputError, match=f"^{name} must be .*, but got "):
        clf.partial_fit(X, Y, segments=SEGMENTS)


def test_every_default_is_a_good_value() -> None:
    clf = QuiltClassifier(hidden_units=4, max_epochs=1).fit(X, Y, segments=SEGMENTS)
    assert len(clf.predict(X)) == len(Y)


# A fit that fails


@pytest.mark.parametrize(
    "fail",
    [
        pytest.param(lambda clf: clf.fit(X, np.zeros(N, int)), id="one class"),
        pytest.param(lambda clf: clf.fit({"a": X[:, 0]}, Y[:-1]), id="labels too short"),
        pytest.param(lambda clf: clf.fit(X, Y, [1] * (N - 1) + [2]), id="segment too small"),
        pytest.param(lambda clf: clf.partial_fit(X[:, :1], Y), id="a batch of other columns"),
        pytest.param(lambda clf: clf.set_params(n_folds=0).fit(X, Y), id="setting"),
        pytest.param(
            lambda clf: clf.set_params(learner=TorchLearner(flat_net)).fit(X, Y), id="learner"
        ),
    ],
)
def test_a_fit_that_fails_leaves_the_fitted_model_as_it_was(
    fail: Callable[[QuiltClassifier], Any],
) -> None:
    clf = quilt().fit(X, Y, segments=SEGMENTS)
    before, state = clf.predict_proba(X), dict(vars(clf))
    with pytest.raises((InputError, LearnerError)):
        fail(clf)
    assert np.array_equal(clf.predict_proba(X), before)
    settings = set(clf.get_params())
    after = {name: value for name, value in vars(clf).items() if name not in settings}
    assert all(value is state[name] for name, value in after.items())
    clf.set_params(n_folds=4, learner=None).partial_fit(X[:10], Y[:10])
    again = quilt().fit(np.r_[X, X[:10]], np.r_[Y, Y[:10]], segments=np.r_[SEGMENTS, [3] * 10])
    assert np.array_equal(clf.predict_proba(X), again.predict_proba(X))
