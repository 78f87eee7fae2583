"""QuiltSelector: which past rows to train your own model on, for any scikit-learn estimator.

Quilt's own net ranks the past segments. Training sets are nested along that ranking: the current
rows with nothing, the best past segment, the best quarter, half and all of them, and all of them
with the current rows weighted up to half of the total. One has the last two past segments, whatever
their rank. For boosted classifiers one more has everything and the age of each row's segment as a
column, which is 0 in whatever is predicted: the trees divide the past where that helps. The
estimator itself judges the sets: blocks in time of the labelled current rows take turns at being
held out, and what a set is worth is what a model trained on it says of rows that it was not trained
on. The latest block comes first; after it only the best sets and "everything" go on.

The model is a blend of the estimator's fits on two of these sets at most (a few more if the current
rows lack classes), as in `blending`: weights of highest likelihood, drawn back towards "everything"
as far as the held-out rows leave doubt. With `scoring`, one set alone replaces the blend where it
scores higher by more than a standard error.

>>> import numpy as np
>>> from sklearn.tree import DecisionTreeClassifier
>>> rng = np.random.default_rng(0)
>>> X = rng.normal(size=(680, 2))
>>> month = np.repeat(["April", "May", "June"], [300, 300, 80])
>>> y = np.where((X[:, 0] > 0) ^ (month == "April"), "buys", "leaves")  # April: another world
>>> model = QuiltSelector(DecisionTreeClassifier(max_depth=3), random_state=0)
>>> model.fit(X, y, segments=month).predict([[2.0, 0.0], [-2.0, 0.0]])
array(['buys', 'leaves'], dtype='<U6')
>>> {use.name: use.used for use in model.selection_}
{'April': False, 'May': True}
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any, Self, TypeVar
from zlib import crc32

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn import config_context
from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    MetaEstimatorMixin,
    RegressorMixin,
    clone,
    is_regressor,
)
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.pipeline import Pipeline
from sklearn.utils import RegressorTags, Tags, _safe_indexing, check_random_state, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, has_fit_parameter
from threadpoolctl import threadpool_limits

from driftquilt import __version__
from driftquilt.core.training import Rule
from driftquilt.data.categories import Categories
from driftquilt.data.rows import Rows
from driftquilt.errors import DriftquiltError, InputError, ModelFileError
from driftquilt.quilt.blending import (
    Judge,
    blend_numbers,
    blend_weights,
    choose_by_merit,
    choose_by_score,
    replace_mixture,
)
from driftquilt.quilt.boosters import BOOSTERS, Stored, comes_from, kind_of
from driftquilt.quilt.classifier import QuiltClassifier, refuse_one_class
from driftquilt.quilt.estimator import keep_features
from driftquilt.quilt.explanation import Selection, TriedSet
from driftquilt.quilt.metrics import (
    Metric,
    NumberMetric,
    Scoring,
    find_metric,
    find_number_metric,
)
from driftquilt.quilt.model_file import (
    NET,
    REGRESSION,
    classes_from_json,
    classes_to_json,
    read_model,
    settings_from_json,
    settings_to_json,
    threshold_of,
    write_model,
)
from driftquilt.quilt.regressor import QuiltRegressor

__all__ = ["QuiltSelector"]

S = TypeVar("S", bound="QuiltSelector")

_N_BEST = 3  # sets that go on after the first block, with "everything"
_MOST_FITS = 2  # that make up the model
_BELIEF = 1.0  # rows that speak for each set before any is seen
_NEGLIGIBLE = 0.05  # share of the model below which a fit is not worth its time
_SURE = 0.9  # probability of an answer without probabilities
_LOWEST = 1e-6  # likelihood; a model that was sure and wrong once is not out for good
_FEWEST_FOLDS = 2
_RECENT = 2  # past segments of the set that goes by time
_RANKING_EPOCHS = 15  # enough for an order of the segments
_AGE = "driftquilt_segment_age"  # name of the column
_BY_COLUMN = ("monoton", "interaction")  # begin of the names of settings that speak of columns
_MANY = 10_000  # rows of a fit that threads can speed up; they wait for each other on fewer


class QuiltSelector(MetaEstimatorMixin, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Train any classifier or regressor on the past segments that still hold.

    Of a regressor, sets are judged by the absolute error of held-out rows, or with a `scoring` such
    as "rmse" or "r2" by the squared one; there are no classes and no probabilities.

    Parameters
    ----------
    estimator : classifier or regressor
        What is trained: LightGBM, XGBoost, CatBoost, a scikit-learn classifier or pipeline. One
        whose `fit` takes no `sample_weight` is given resampled rows instead. Data frames reach it
        as they are, but for LightGBM, CatBoost, XGBoost with `enable_categorical` and
        `HistGradientBoostingClassifier` they become pandas frames in which text is categories and
        a date is its place in the day, the week and the year.
    quilt : QuiltClassifier or QuiltRegressor, optional
        What ranks the past segments; by default `QuiltClassifier(max_epochs=15)`, or for a
        regressor `QuiltRegressor(max_epochs=15)`.
    scoring : str, dict or callable, optional
        What "better" means: the name of a scikit-learn scorer, "precision_at_5%", a cost matrix
        or a scorer; by default the log loss, or the accuracy of an estimator without
        probabilities. Rows of a fit count by their weight, held-out rows of a score all alike.
    blend : bool
        Whether the model may blend the fits on several training sets; False takes one.
    n_folds : int
        Blocks of current rows that take turns at being held out.
    judged_rows : int, optional
        At most so many past rows are used in a fit that only judges a training set, drawn at
        random and weighted up; None uses all. The model itself is trained on all rows of its sets.
    random_state : int, optional
        Seed of the ranking, of drawn rows, and of every `random_state` of the estimator that is
        None.

    Attributes
    ----------
    estimators_, shares_ : list of estimators, ndarray
        The fitted estimators, largest share first, and how much of the answer each gives. One
        whose set `has_age` (`search_`) takes the age of the segment as its last column.
    estimator_ : estimator
        The one with the largest share.
    classes_ : ndarray
        The labels, sorted.
    selection_ : Selection
        Per past segment how much of the model was trained on it, and why; and every training set
        that was judged.
    sample_weight_ : ndarray
        What each row given to `fit` counts, where a current row counts 1; for use elsewhere.
    search_ : list of TriedSet
        Every training set that was judged, with its score.
    metric_ : Metric or NumberMetric
        What `scoring` stands for.
    quilt_ : QuiltClassifier, QuiltRegressor or None
        What ranked the past segments, fitted; None without a past, and in a loaded model.
    held_out_ : ndarray or None
        Probabilities of the current rows, or numbers (n, 1), in their order, by fits that were not
        trained on them; None without a past, and in a loaded model.
    threshold_ : float or None
        Of two classes, the probability from which on `predict` answers the second one; None for
        the most probable class, or with a cost matrix the cheapest. Set it after `fit`, which
        forgets it; `save` keeps it.

    """

    def __init__(
        self,
        estimator: Any,
        *,
        quilt: QuiltClassifier | None = None,
        scoring: Scoring | None = None,
        blend: bool = True,
        n_folds: int = 2,
        judged_rows: int | None = 2_000,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.estimator = estimator
        self.quilt = quilt
        self.scoring = scoring
        self.blend = blend
        self.n_folds = n_folds
        self.judged_rows = judged_rows
        self.random_state = random_state

    def fit(
        self,
        X: Any,
        y: Any,
        segments: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Choose past segments and train the estimator.

        `segments` is the segment that each row belongs to. They count in order of first
        appearance; the last one is the current segment. None means that all rows are current,
        and the estimator is simply trained. Rows of weight 0 count as if they were not there.
        """
        self._check_parameters()
        seen = Rows.read(X, y, segments, sample_weight, numbers=self._is_regression)
        kept, rows = np.flatnonzero(seen.weight > 0), seen.weighing(seen.weight)
        if not self._is_regression:
            refuse_one_class(rows)
        seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        estimator = self.estimator if self.random_state is None else _seeded(self.estimator, seed)
        trainer = _Trainer(estimator, X, kept, rows, seed)
        ranking = self._rank(rows, seed)
        self.threshold_: float | None = None
        search = _Search(trainer, rows, ranking.ranking, self.n_folds, self.judged_rows)
        self.metric_: Any = self._find_metric()
        search.metric = self.metric_
        sets = search.judge()
        coverage = getattr(self.quilt_, "coverage_", 1.0) ** 2
        shares = search.share(sets, blend=self.blend, coverage=coverage)
        by_share = np.argsort(-shares, kind="stable")[: np.count_nonzero(shares)]
        self.held_out_ = search.held_out(sets, shares)
        self._fits = [search.train(sets[number]) for number in by_share]
        self._categories = trainer.categories
        self.estimators_ = [fit.model for fit in self._fits]
        self.shares_, self.estimator_ = shares[by_share], self.estimators_[0]
        self.classes_ = rows.classes
        self.selection_ = search.explain(ranking, sets, shares)
        self.search_ = list(self.selection_.sets)
        self.sample_weight_ = np.zeros(len(seen.y))
        self.sample_weight_[kept] = rows.weight * search.row_weights(sets, shares)
        self._keep_features(seen)
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the most probable class of each row.

        With a cost matrix as `scoring`, it is the cheapest class. With `threshold_`, it is the
        second of two classes from that probability on. Of a regressor it is the weighted mean of
        its fits.
        """
        if self._is_regression:
            numbers: NDArray[Any] = self._chances(X)[:, 0]
            return numbers
        return self.answers(self._chances(X))

    def score(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> float:
        """Return the accuracy, or of a regressor R2."""
        kind = RegressorMixin if self._is_regression else ClassifierMixin
        return float(kind.score(self, X, y, sample_weight))

    @property
    def _is_regression(self) -> bool:
        return bool(is_regressor(self.estimator))

    def answers(self, probabilities: NDArray[Any]) -> NDArray[Any]:
        """Return the classes that `predict` answers with at these probabilities."""
        if self.threshold_ is not None:
            codes = (probabilities * [self.threshold_, 1 - self.threshold_]).argmax(axis=1)
        else:
            codes = self.metric_.decide(probabilities, self.classes_)
        labels: NDArray[Any] = self.classes_[codes]
        return labels

    @available_if(lambda self: hasattr(self.estimator, "predict_proba"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Class probabilities of each row, in the order of `classes_`."""
        return self._chances(X)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write estimators, categories, settings and explanation to one safetensors file.

        Each estimator is in the format of its library: LightGBM, XGBoost, CatBoost; those of
        scikit-learn, pipelines included, take the extra `hgb`. Others, and your own classes, are
        code and refused. The rows seen are not part of it.
        """
        check_is_fitted(self)
        write_model(path, *_pack(self))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a model that `save` wrote; it predicts as the saved one did, bit for bit."""
        tensors, record = read_model(path)
        if record.get("kind", NET) == NET:
            raise ModelFileError(f"{path} holds a net; read it with QuiltClassifier.load")
        try:
            return _unpack(cls, tensors, record)
        except DriftquiltError:
            raise
        except Exception as error:  # every library has errors of its own
            raise ModelFileError(f"{path} is not a selector's model file: {error!r}") from error

    def explain(self) -> str:
        """One sentence per past segment: what it counts in the model, and why."""
        check_is_fitted(self)
        text: str = self.selection_.explain()
        return text

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator).input_tags
        if self._is_regression:
            tags.estimator_type, tags.classifier_tags = "regressor", None
            tags.regressor_tags = RegressorTags()
        tags.input_tags.allow_nan = inner.allow_nan
        tags.input_tags.string, tags.input_tags.categorical = inner.string, inner.categorical
        return tags

    def _chances(self, X: Any) -> NDArray[np.float64]:
        check_is_fitted(self)
        table = self._categories.apply(X)
        answers = [fit.chances(table, len(self.classes_)) for fit in self._fits]
        chances: NDArray[np.float64] = np.tensordot(self.shares_, np.stack(answers), axes=1)
        return chances

    def _check_parameters(self) -> None:
        if not hasattr(self.estimator, "fit"):
            raise InputError(
                f"estimator must be a classifier or a regressor, but got {self.estimator!r}"
            )
        kind = QuiltRegressor if self._is_regression else QuiltClassifier
        if self.quilt is not None and not isinstance(self.quilt, kind):
            raise InputError(f"quilt must be None or a {kind.__name__}, but got {self.quilt!r}")
        if not _is_count(self.n_folds) or self.n_folds < _FEWEST_FOLDS:
            raise InputError(
                f"n_folds must be a whole number of at least 2, but got {self.n_folds!r}"
            )
        if self.judged_rows is not None and not _is_count(self.judged_rows):
            raise InputError(
                f"judged_rows must be None or a whole number of at least 1, but got "
                f"{self.judged_rows!r}"
            )
        self._find_metric()

    def _rank(self, rows: Rows, seed: int) -> Selection:
        """Let Quilt score the past segments; there is nothing to score without a past."""
        self.quilt_: QuiltClassifier | QuiltRegressor | None = None
        if len(rows.segments) == 1:
            return Selection((), (), (), Rule(), rows.segments[0], len(rows.y))
        kind = QuiltRegressor if self._is_regression else QuiltClassifier
        quilt = kind(max_epochs=_RANKING_EPOCHS) if self.quilt is None else clone(self.quilt)
        if quilt.random_state is None and self.random_state is not None:
            quilt.set_params(random_state=seed)
        self.quilt_ = quilt.fit_rows(rows).forget_rows()
        selection: Selection = self.quilt_.selection_
        return selection

    def _find_metric(self) -> Metric | NumberMetric:
        if self._is_regression:
            metric = find_number_metric(self.scoring)
            if metric.takes_intervals:
                raise InputError(
                    f"scoring {metric.name!r} scores intervals, which only QuiltRegressor gives; "
                    'take "mae" or "rmse"'
                )
            return metric
        has_chances = hasattr(self.estimator, "predict_proba")
        return find_metric(self.scoring or (None if has_chances else "accuracy"))

    def _keep_features(self, rows: Rows) -> None:
        if hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        assert not isinstance(rows.features, np.ndarray)  # noqa: S101
        keep_features(self, rows.features)


@dataclass(frozen=True, eq=False)
class _Fit:
    """A fitted estimator; `codes` are the codes of the classes that it knows.

    If it `has_age`, it takes the age of a row's segment as one more column.
    """

    model: Any
    labels: NDArray[Any]
    codes: NDArray[np.intp]
    has_age: bool = False

    @classmethod
    def of_one_class(cls, labels: NDArray[Any], codes: NDArray[np.intp]) -> _Fit:
        """Make a fit that always answers with its one class."""
        return cls(DummyClassifier().fit(np.zeros((1, 1)), labels), labels, codes)

    def chances(self, X: Any, n_classes: int) -> NDArray[np.float64]:
        """Return the class probabilities of each row, (n, C); numbers are (n, 1)."""
        X = _add_age(X, 0) if self.has_age else X
        if not n_classes:
            return np.asarray(self.model.predict(X), dtype=np.float64).reshape(-1, 1)
        if hasattr(self.model, "predict_proba"):
            known = np.asarray(self.model.predict_proba(X), dtype=np.float64)
            chances = np.zeros((len(known), n_classes))
            chances[:, self.codes] = known
            return chances
        answers = self.codes[np.searchsorted(self.labels, self.model.predict(X))]
        chances = np.full((len(answers), n_classes), (1 - _SURE) / max(n_classes - 1, 1))
        chances[np.arange(len(answers)), answers] = _SURE
        return chances


class _Trainer:
    """Fits of one estimator on some of the rows, which it is given as it wants them."""

    def __init__(
        self,
        estimator: Any,
        X: Any,
        kept: NDArray[np.intp],
        rows: Rows,
        seed: int,
    ) -> None:
        self.estimator = estimator
        self.categories = _categories(estimator, X)
        self.X = self.categories.apply(X if hasattr(X, "__getitem__") else np.asarray(X))
        self.kept, self.classes, self.y, self.seed = kept, rows.classes, rows.y, seed
        self.age = len(rows.segments) - 1 - rows.codes
        self.takes_age = _takes_age(estimator, self.X)

    def fit(
        self, rows: NDArray[np.intp], weight: NDArray[np.float64], *, has_age: bool = False
    ) -> _Fit:
        """Fit a fresh estimator on rows of these numbers, each with its weight."""
        keyword = _weight_keyword(self.estimator)
        is_weighted = bool((weight != weight[0]).any())
        if is_weighted and not keyword:
            rows = _resample(rows, weight, self.seed)
        no_codes = np.zeros(0, dtype=np.intp)
        codes, places = no_codes, no_codes
        if len(self.classes):
            codes, places = np.unique(self.y[rows], return_inverse=True)
        if len(codes) == 1:  # which many estimators refuse
            return _Fit.of_one_class(self.classes[codes], codes)
        options: dict[str, Any] = {keyword: weight} if is_weighted and keyword else {}
        if comes_from(self.estimator, "catboost") and self.categories.values:
            options["cat_features"] = list(self.categories.text_columns)
        # XGBoost takes labels from 0 on without a gap.
        is_coded = comes_from(_last_step(self.estimator), "xgboost")
        labels = np.arange(len(codes)) if is_coded else self.classes[codes]
        target = labels[places] if len(self.classes) else self.y[rows]
        model = clone(self.estimator)
        # Only this class gives the steps of a pipeline their weights.
        is_pipeline = isinstance(model, Pipeline)
        with (
            config_context(**({"enable_metadata_routing": False} if is_pipeline else {})),
            threadpool_limits(1 if len(rows) < _MANY else None, "openmp"),
        ):
            X = self.take(rows)
            X = _add_age(X, self.age[rows]) if has_age else X
            model.fit(X, target, **options)
        return _Fit(model, labels, codes, has_age)

    def take(self, rows: NDArray[np.intp]) -> Any:
        """Return rows of these numbers as the estimator takes them."""
        return _safe_indexing(self.X, self.kept[rows])


@dataclass(frozen=True, eq=False)
class _Set:
    """The current rows and some past ones; what its held-out fits say is filled in block by block.

    past     numbers of its past rows
    chances  (n_current, C), NaN where it was not judged
    """

    n_segments: int
    balanced: bool
    recent: bool
    has_age: bool
    past: NDArray[np.intp]
    chances: NDArray[np.float64]

    @property
    def judged(self) -> NDArray[np.bool_]:
        """Which of the current rows it was judged on."""
        mask: NDArray[np.bool_] = ~np.isnan(self.chances[:, 0])
        return mask


def _mix_two(
    mixture: NDArray[np.float64], likelihood: NDArray[np.float64], weight: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return a mixture of two sets at most, the one that makes the held-out rows likeliest.

    It is "everything" with one other set, or the two that have most of the mixture, which need not
    be good without the third.

    >>> rows = np.array([[0.5, 0.5, 0.5, 0.5], [0.9, 0.9, 0.2, 0.2], [0.8, 0.8, 0.5, 0.5]])
    >>> _mix_two(np.array([0.3, 0.4, 0.3]), np.repeat(rows, 50, axis=1), np.ones(200)).round(2)
    array([0., 0., 1.])
    """
    if np.count_nonzero(mixture) <= _MOST_FITS:
        return mixture
    largest = mixture.copy()
    largest[np.argsort(-mixture, kind="stable")[_MOST_FITS:]] = 0.0
    options = [largest / largest.sum()]
    for other in range(1, len(mixture)):
        pair = [0, other]
        belief = np.full(2, _BELIEF)
        shares = blend_weights(likelihood[pair], weight, belief=belief, negligible=_NEGLIGIBLE)
        options.append(np.zeros(len(mixture)))
        options[-1][pair] = shares
    merit = [np.average(np.log(one @ likelihood), weights=weight) for one in options]
    best: NDArray[np.float64] = options[int(np.argmax(merit))]
    return best


class _Search:
    """Training sets along a ranking of past segments, and what the estimator makes of them.

    `order` are the codes of the past segments, the best first.
    """

    def __init__(
        self,
        trainer: _Trainer,
        rows: Rows,
        order: Sequence[int],
        n_folds: int,
        judged_rows: int | None,
    ) -> None:
        self.trainer, self.rows, self.order = trainer, rows, order
        self.n_folds, self.judged_rows = n_folds, judged_rows
        self.metric: Metric | NumberMetric = find_metric(None)
        is_current = rows.codes == len(order)
        self.current, self.past = np.flatnonzero(is_current), np.flatnonzero(~is_current)
        self.rank = np.empty(len(order) + 1, dtype=np.intp)
        self.rank[[*order, len(order)]] = np.arange(len(order) + 1)

    def sets(self) -> list[_Set]:
        """Return every training set, "everything" first."""
        n = len(self.order)
        sizes = sorted({0, 1, n // 4, -(-n // 2)} - {n})
        sets = [self._make_set(size) for size in (n, *sizes)]
        if not n:
            return sets[:1]
        sets.append(self._make_set(n, balanced=True))
        if self.trainer.takes_age:
            sets.append(self._make_set(n, has_age=True))
        recent = self._make_set(_RECENT, recent=True)
        is_new = not any(np.array_equal(recent.past, one.past) for one in sets)
        return [*sets, recent] if is_new else sets

    def judge(self) -> list[_Set]:
        """Hold blocks of current rows out, the latest first; give up poor sets after that one."""
        sets = self.sets()
        if len(sets) == 1:
            return sets
        running = sets
        for block in np.array_split(np.arange(len(self.current)), self.n_folds)[::-1]:
            if not len(block):
                continue
            for one in running:
                one.chances[block] = self._hold_out(one, block)
            if running is sets:
                merit = [self._merit(one, block).mean() for one in sets]
                best = np.argsort(merit)[::-1][:_N_BEST]
                running = [sets[number] for number in sorted({0, *best.tolist()})]
        return sets

    def share(
        self, sets: Sequence[_Set], *, blend: bool, coverage: float = 1.0
    ) -> NDArray[np.float64]:
        """Return how much of the model each set is to make up.

        Of a regression, `coverage` is how far held-out rows are trusted.
        """
        if len(sets) == 1:
            return np.ones(1)
        whole = [number for number, one in enumerate(sets) if one.judged.all()]
        metric, shares = self.metric, np.zeros(len(sets))
        if isinstance(metric, NumberMetric):
            shares[whole] = self._share_numbers([sets[k] for k in whole], coverage, blend=blend)
            return shares
        likelihood = np.stack([np.exp(self._merit(sets[number], slice(None))) for number in whole])
        y, weight = self.rows.y, self.rows.weight[self.current]
        coverage = float(np.isin(y[self.past], np.unique(y[self.current])).mean())
        belief = np.full(len(whole), _BELIEF)
        mixture = blend_weights(likelihood, weight, coverage, belief=belief, negligible=_NEGLIGIBLE)
        if coverage == 1:  # else the present says too little of a set to leave it out
            mixture = _mix_two(mixture, likelihood, weight)
        # Preferred ones come late: those that use more of the past, the blend after all.
        singles = sorted(range(len(whole)), key=lambda k: (sets[whole[k]].n_segments, k == 0))
        options = [*np.eye(len(whole))[singles], *([mixture] if blend else [])]
        if not blend or metric.name != "log_loss":
            chances = np.stack([sets[number].chances for number in whole])
            blends = [np.tensordot(v, chances, axes=1) for v in options]
            judge = Judge(metric, self.rows.classes)
            scores = [judge.scores(y[self.current], one) for one in blends]
            choose = replace_mixture if blend else choose_by_score
            mixture = options[choose(np.array(scores))]
        shares[whole] = mixture
        return shares

    def _share_numbers(
        self, sets: Sequence[_Set], coverage: float, *, blend: bool
    ) -> NDArray[np.float64]:
        """Return the shares of sets that were judged on all rows, "everything" first."""
        weight = self.rows.weight[self.current]
        if blend:
            outputs = np.stack([one.chances for one in sets])
            return blend_numbers(outputs, self._errors, weight, coverage, negligible=_NEGLIGIBLE)
        by_past = sorted(range(len(sets)), key=lambda k: (sets[k].n_segments, k == 0))
        merit = np.stack([-self._errors(sets[k].chances) for k in by_past])
        shares: NDArray[np.float64] = np.eye(len(sets))[by_past[choose_by_merit(merit, weight)]]
        return shares

    def _errors(self, predicted: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the error of each current row, as the metric counts it."""
        off = predicted[:, 0] - self.rows.y[self.current]
        is_squared = isinstance(self.metric, NumberMetric) and self.metric.is_squared
        errors: NDArray[np.float64] = off**2 if is_squared else np.abs(off)
        return errors

    def held_out(
        self, sets: Sequence[_Set], shares: NDArray[np.float64]
    ) -> NDArray[np.float64] | None:
        """Return what fits of these shares say of current rows they were not trained on."""
        if len(sets) == 1:
            return None
        used = np.flatnonzero(shares).tolist()
        judged = np.stack([sets[number].chances for number in used])
        chances: NDArray[np.float64] = np.tensordot(shares[used], judged, axes=1)
        return chances

    def train(self, one: _Set) -> _Fit:
        """Train on all rows of a set."""
        return self._fit(one, one.past, self.current)

    def row_weights(self, sets: Sequence[_Set], shares: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return what each row counts in the model, where a current row counts 1."""
        weights = np.zeros(len(self.rows.y))
        weights[self.current] = 1.0
        for one, share in zip(sets, shares, strict=True):
            weights[one.past] += share * self._past_weight(one, self.current)
        return weights

    def _lines(self, sets: Sequence[_Set], shares: NDArray[np.float64]) -> list[TriedSet]:
        """Return every set in a line."""
        return [
            TriedSet(
                one.n_segments,
                one.balanced,
                len(one.past) + len(self.current),
                int(one.judged.sum()),
                self._score(one),
                float(share),
                one.recent,
                one.has_age,
            )
            for one, share in zip(sets, shares, strict=True)
        ]

    def _score(self, one: _Set) -> float:
        y, chances = self.rows.y[self.current][one.judged], one.chances[one.judged]
        if isinstance(self.metric, NumberMetric):
            return self.metric.score(y, chances[:, 0])
        return self.metric.score(y, chances, self.rows.classes)

    def explain(
        self, ranking: Selection, sets: Sequence[_Set], shares: NDArray[np.float64]
    ) -> Selection:
        """Return the ranking with the sets that were judged and the weights of rows."""
        n = len(self.order)
        lines, metric = tuple(self._lines(sets, shares)), self.metric.name
        if not n:
            return replace(ranking, sets=lines, metric=metric)
        by_row, weights = self.row_weights(sets, shares), np.zeros(n)
        weights[self.rows.codes[self.past]] = by_row[self.past]
        whole = sum(s for one, s in zip(sets, shares, strict=True) if one.n_segments == n)
        alone = sum(s for one, s in zip(sets, shares, strict=True) if one.n_segments == 0)
        blend = (float(whole), float(max(1 - whole - alone, 0.0)), float(alone))
        weighed = replace(ranking, weights=tuple(weights.tolist()), blend=blend)
        return replace(weighed, sets=lines, metric=metric)

    def _make_set(
        self,
        n_segments: int,
        *,
        balanced: bool = False,
        recent: bool = False,
        has_age: bool = False,
    ) -> _Set:
        codes, n = self.rows.codes[self.past], len(self.order)
        past = self.past[codes >= n - n_segments if recent else self.rank[codes] < n_segments]
        chances = np.full((len(self.current), max(len(self.rows.classes), 1)), np.nan)
        return _Set(n_segments, balanced, recent, has_age, past, chances)

    def _hold_out(self, one: _Set, block: NDArray[np.intp]) -> NDArray[np.float64]:
        """Return what a fit without a block of current rows says of them."""
        past = one.past
        if self.judged_rows is not None and len(past) > self.judged_rows:
            rng = np.random.default_rng(self.trainer.seed)
            past = np.sort(rng.choice(past, self.judged_rows, replace=False))
        fit = self._fit(one, past, np.delete(self.current, block))
        return fit.chances(self.trainer.take(self.current[block]), len(self.rows.classes))

    def _fit(self, one: _Set, past: NDArray[np.intp], current: NDArray[np.intp]) -> _Fit:
        """Fit on current rows and on past ones, which stand for all past rows of the set."""
        drawn = len(one.past) / max(len(past), 1)
        weight = self.rows.weight.copy()
        weight[past] *= drawn * self._past_weight(one, current)
        rows = np.sort(np.concatenate([past, current]))
        total = drawn * self.rows.weight[past].sum() + self.rows.weight[current].sum()
        weights = weight[rows] * (total / weight[rows].sum())
        return self.trainer.fit(rows, weights, has_age=one.has_age)

    def _past_weight(self, one: _Set, current: NDArray[np.intp]) -> float:
        """Return what a past row counts beside a current one."""
        if not one.balanced:
            return 1.0
        ratio = self.rows.weight[current].sum() / self.rows.weight[one.past].sum()
        return min(1.0, float(ratio))

    def _merit(self, one: _Set, rows: Any) -> NDArray[np.float64]:
        """Return the log-likelihood of each row; of numbers the negated error."""
        if isinstance(self.metric, NumberMetric):
            merit: NDArray[np.float64] = -self._errors(one.chances)[rows]
            return merit
        codes = self.rows.y[self.current][rows]
        of_truth = one.chances[rows][np.arange(len(codes)), codes]
        logs: NDArray[np.float64] = np.log(np.maximum(of_truth, _LOWEST))
        return logs


def _pack(model: QuiltSelector) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """Estimators as bytes, and a record of everything else, of a fitted selector."""
    stored = Stored.of(model.estimator)
    tensors = {
        str(number): np.frombuffer(stored.dump(fit.model), dtype=np.uint8)
        for number, fit in enumerate(model._fits)
        if len(fit.codes) != 1
    }
    fits = [[classes_to_json(f.labels), f.codes.tolist(), f.has_age] for f in model._fits]
    record = {
        "version": __version__,
        "kind": kind_of(model.estimator),
        "estimator": stored.to_json(),
        "settings": _settings_to_json(model.get_params(deep=False)),
        "classes": classes_to_json(model.classes_),
        "fits": fits,
        "checksums": {number: crc32(part.tobytes()) for number, part in tensors.items()},
        "shares": model.shares_.tolist(),
        "categories": model._categories.to_json(),
        "n_features": int(model.n_features_in_),
        "names": list(getattr(model, "feature_names_in_", ())) or None,
        "threshold": model.threshold_,
        **({"task": REGRESSION} if model._is_regression else {}),
        "selection": model.selection_.to_json(),
    }
    return tensors, record


def _unpack(cls: type[S], tensors: dict[str, NDArray[Any]], record: dict[str, Any]) -> S:
    """Return the selector that `_pack` took apart."""
    stored, fits = Stored.from_json(record["estimator"]), list[_Fit]()
    for number, (labels, codes, has_age) in enumerate(record["fits"]):
        known = classes_from_json(labels), np.array(codes, dtype=np.intp)
        content = tensors.get(str(number))
        if content is None:
            fits.append(_Fit.of_one_class(*known))
        else:
            damaged = crc32(content.tobytes()) != record["checksums"][str(number)]
            if damaged:  # a library may crash on it
                raise ValueError(f"estimator {number} is damaged")
            fits.append(_Fit(stored.load(content.tobytes()), *known, has_age))
    models = [fit.model for fit in fits if len(fit.codes) != 1]
    model = cls(stored.make(models), **_settings_from_json(record["settings"]))
    model._fits, model._categories = fits, Categories.from_json(record["categories"])
    model.classes_ = classes_from_json(record["classes"])
    model.estimators_, model.shares_ = [fit.model for fit in fits], np.array(record["shares"])
    model.estimator_ = model.estimators_[0]
    model.metric_ = model._find_metric()
    model.threshold_ = threshold_of(record, len(model.classes_))
    # Files of before the sets were part of the selection have them beside it.
    sets = {"sets": record.get("search", ()), "metric": model.metric_.name}
    model.selection_ = Selection.from_json({**sets, **record["selection"]})
    model.search_ = list(model.selection_.sets)
    model.quilt_ = model.held_out_ = None
    model.n_features_in_ = record["n_features"]
    if record["names"] is not None:
        model.feature_names_in_ = np.array(record["names"], dtype=object)
    codes = [code for fit in fits for code in fit.codes.tolist()]
    if len(fits) != len(model.shares_) or max(codes, default=-1) >= len(model.classes_):
        raise ValueError("shares, estimators and classes do not belong together")
    return model


def _settings_to_json(settings: dict[str, Any]) -> dict[str, Any]:
    quilt, state = settings["quilt"], settings["random_state"]
    if getattr(quilt, "learner", None) is not None:
        raise InputError("a model whose quilt has your own learner cannot be saved: it is code")
    scoring, metric, is_regression = settings["scoring"], None, is_regressor(settings["estimator"])
    if scoring is not None and not is_regression:
        metric = find_metric(scoring)
    if metric is not None and not metric.is_named:
        raise InputError(
            f"a model with the scoring {metric.name!r} cannot be saved: it is code; give the name "
            "of a scorer or a cost matrix"
        )
    costs = metric and metric.costs and [[*pair, cost] for pair, cost in metric.costs.items()]
    return {
        "quilt": None if quilt is None else settings_to_json(quilt.get_params(deep=False)),
        "scoring": find_number_metric(scoring).name
        if scoring is not None and is_regression
        else costs or (metric and metric.name),
        "blend": bool(settings["blend"]),
        "n_folds": int(settings["n_folds"]),
        "judged_rows": None if settings["judged_rows"] is None else int(settings["judged_rows"]),
        "random_state": int(state) if isinstance(state, Integral) else None,
    }


def _settings_from_json(settings: dict[str, Any]) -> dict[str, Any]:
    quilt, scoring = settings["quilt"], settings["scoring"]
    if isinstance(scoring, list):
        scoring = {(truth, answer): cost for truth, answer, cost in scoring}
    kind = QuiltRegressor if "quantiles" in (quilt or {}) else QuiltClassifier
    made = None if quilt is None else kind(**settings_from_json(quilt))
    return {**settings, "quilt": made, "scoring": scoring}


def _categories(estimator: Any, X: Any) -> Categories:
    """Return how text columns reach an estimator."""
    if comes_from(estimator, "lightgbm"):
        return Categories.fit(X)
    if comes_from(estimator, "xgboost") and estimator.get_params().get("enable_categorical"):
        return Categories.fit(X)
    if comes_from(estimator, "catboost") and estimator.get_params().get("cat_features") is None:
        return Categories.fit(X, missing="")
    if isinstance(estimator, HistGradientBoostingClassifier | HistGradientBoostingRegressor):
        by_type = isinstance(estimator.categorical_features, str)
        return Categories.fit(X, limit=estimator.max_bins) if by_type else Categories()
    return Categories()


def _takes_age(estimator: Any, X: Any) -> bool:
    """Return whether the age of a segment can be one more column.

    Only gradient boosting divides the past by it, and no setting may speak of single columns.
    """
    if is_regressor(estimator):  # for which it was not measured
        return False
    if kind_of(estimator) not in BOOSTERS or not (isinstance(X, np.ndarray) or _is_pandas(X)):
        return False
    settings = {name: value for name, value in estimator.get_params().items() if value is not None}
    by_column = (list, tuple, dict, np.ndarray)
    return (
        not any(isinstance(value, by_column) for value in settings.values())
        and not any(name.startswith(_BY_COLUMN) for name in settings)
        and _AGE not in getattr(X, "columns", ())
    )


def _is_pandas(X: Any) -> bool:
    return bool(nw.dependencies.is_pandas_dataframe(X))


def _add_age(X: Any, age: ArrayLike) -> Any:
    """Return the rows with the age of their segment as the last column."""
    if _is_pandas(X):
        return X.assign(**{_AGE: age})
    matrix = np.asarray(X)
    return np.column_stack([matrix, np.broadcast_to(age, len(matrix))])


def _last_step(estimator: Any) -> Any:
    return estimator.steps[-1][1] if isinstance(estimator, Pipeline) else estimator


def _weight_keyword(estimator: Any) -> str:
    """Return the name under which `fit` takes weights; empty if it does not."""
    if not has_fit_parameter(_last_step(estimator), "sample_weight"):
        return ""
    if isinstance(estimator, Pipeline):
        return f"{estimator.steps[-1][0]}__sample_weight"
    return "sample_weight"


def _resample(rows: NDArray[np.intp], weight: NDArray[np.float64], seed: int) -> NDArray[np.intp]:
    """Draw as many rows as there are, each as often as its weight says, or once more or less.

    >>> _resample(np.array([7, 8, 9]), np.array([2.0, 0.0, 1.0]), seed=0)
    array([7, 7, 9])
    """
    start = np.random.default_rng(seed).random()
    at = (start + np.arange(len(rows))) / len(rows) * weight.sum()
    places = np.searchsorted(np.cumsum(weight), at, side="right")
    drawn: NDArray[np.intp] = rows[np.minimum(places, len(rows) - 1)]
    return drawn


def _seeded(estimator: Any, seed: int) -> Any:
    """Return a copy of which every `random_state` that is None is the seed."""
    unset = [
        name
        for name, value in estimator.get_params().items()
        if name.rpartition("__")[2] == "random_state" and value is None
    ]
    return clone(estimator).set_params(**dict.fromkeys(unset, seed))


def _is_count(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= 1
