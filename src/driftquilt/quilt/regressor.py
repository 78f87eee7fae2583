"""QuiltRegressor: scikit-learn's contract over `quilt.regression`, for targets that are numbers.

It is `QuiltClassifier`'s sibling: the same rows, segments, encoding and search, with a net whose
outputs are numbers. By default these are quantiles, so that it gives intervals along with answers.

>>> rng = np.random.default_rng(0)
>>> X = rng.normal(size=(700, 2))
>>> month = np.repeat(["April", "May", "June"], [300, 300, 100])
>>> price = 50 + 10 * np.where(month == "April", -1, 1) * X[:, 0]    # April: another world
>>> model = QuiltRegressor(hidden_units=32, random_state=0).fit(X, price, segments=month)
>>> {use.name: use.used for use in model.selection_}
{'April': False, 'May': True}
>>> bool(model.score(X[600:], price[600:]) > 0.9)
True
>>> low, high = model.predict_interval([[0.5, 0.0]], coverage=0.8)[0]
>>> bool(low < 55 < high)
True
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from driftquilt.core.loss import Loss, LossName
from driftquilt.core.sampling import spread_out
from driftquilt.data.frame import read_frame
from driftquilt.data.labels import warn_of_order
from driftquilt.data.rows import Rows, Target, weighted_quantiles
from driftquilt.errors import InputError
from driftquilt.learners.mlp import MLPRegression
from driftquilt.quilt.estimator import (
    DEFAULT_PRESET,
    QuiltEstimator,
    RemoteHistory,
    check_parameters,
    to_matrix,
)
from driftquilt.quilt.executor import Executor, one_blas_thread
from driftquilt.quilt.method import Average, Quilt
from driftquilt.quilt.model_file import HELD_OUT, REGRESSION
from driftquilt.quilt.regression import DEFAULT_REGRESSION, RegressionQuilt, coverage
from driftquilt.search.base import Search

__all__ = ["HeldOut", "QuiltRegressor", "expect_coverage"]

_LOSS = DEFAULT_REGRESSION.learner.loss
_MAX_HELD_OUT = 2_000  # rows that intervals are corrected by


class HeldOut(NamedTuple):
    """Labelled current rows and what models that were not trained on them say of each.

    outputs  (n, Q)  on the scale of the target
    y        (n,)
    weight   (n,)
    """

    outputs: NDArray[np.float64]
    y: NDArray[np.float64]
    weight: NDArray[np.float64]


class QuiltRegressor(RegressorMixin, QuiltEstimator):  # type: ignore[misc]
    """A regressor for the present that trains on the past segments which still hold.

    Parameters that are not listed here are those of `QuiltClassifier`.

    Parameters
    ----------
    loss : "quantile", "huber" or "squared"
        What the net is trained by, and what chooses the bound and the blend. With "quantile", the
        answer is the median, and intervals follow the rows; with "squared" it is the mean. Of
        "huber", which bears a few extreme targets, and of "squared", intervals are equally wide
        for all rows.
    quantiles : tuple of float
        Those that a net with the loss "quantile" learns, between 0 and 1; the answer is the one
        nearest to the median. Where intervals need others, these are interpolated.
    encode : "robust" or "standard"
        How columns are imputed, encoded and scaled.

    Attributes
    ----------
    selection_, disparity_max_, search_, model_, encoder_, learner_
        As those of `QuiltClassifier`.
    coverage_ : float
        How much the first rows of past segments, as many as are labelled in the current one, look
        like the rest of them; from 0 to 1. The blend is drawn back to all data by as much.
    target_ : Target
        Middle and spread of the target, on which scale the net learns.
    held_out_ : HeldOut
        Predictions of current rows by models that were not trained on them, at most 2,000; they
        correct the intervals.

    """

    task = REGRESSION
    target_: Target
    coverage_: float
    held_out_: HeldOut
    _method: ClassVar[type[Quilt]] = RegressionQuilt

    def __init__(
        self,
        *,
        loss: LossName = _LOSS.name,
        quantiles: Sequence[float] = _LOSS.levels,
        search: str | Search = DEFAULT_PRESET.search,
        disparity_max: float | None = None,
        n_folds: int = DEFAULT_PRESET.n_folds,
        blend: bool = DEFAULT_PRESET.blend,
        use_disparity: bool = True,
        use_gain: bool = True,
        init: str = "random",
        hidden_units: int = DEFAULT_PRESET.hidden_units,
        learning_rate: float | None = DEFAULT_PRESET.learning_rate,
        batch_size: int = DEFAULT_PRESET.batch_size,
        encode: str = DEFAULT_PRESET.encode,
        max_epochs: int = DEFAULT_PRESET.max_epochs,
        patience: int = DEFAULT_PRESET.patience,
        score_rows: int | None = DEFAULT_PRESET.score_rows,
        score_every: int = DEFAULT_PRESET.score_every,
        epoch_rows: int | None = DEFAULT_PRESET.epoch_rows,
        averaging: float = DEFAULT_PRESET.averaging,
        engine: str | Executor = "local",
        n_jobs: int | None = None,
        progress: bool = False,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        super().__init__(
            search=search,
            disparity_max=disparity_max,
            n_folds=n_folds,
            blend=blend,
            use_disparity=use_disparity,
            use_gain=use_gain,
            init=init,
            hidden_units=hidden_units,
            learning_rate=learning_rate,
            batch_size=batch_size,
            encode=encode,
            max_epochs=max_epochs,
            patience=patience,
            score_rows=score_rows,
            score_every=score_every,
            epoch_rows=epoch_rows,
            averaging=averaging,
            engine=engine,
            n_jobs=n_jobs,
            progress=progress,
            random_state=random_state,
        )
        self.loss = loss
        self.quantiles = quantiles

    def partial_fit(
        self,
        X: Any,
        y: Any,
        segments: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Add a batch to the rows seen so far, then select and train again.

        Rows whose segment is known join it, others open new segments; without `segments` the
        batch continues the last one. The outcome is that of `fit` on all batches together.
        """
        check_parameters(self.get_params(deep=False))
        rows = self._read(X, y, segments, sample_weight)
        return self.fit_rows(self._join(rows, has_segments=segments is not None))

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Return the number for each row: the median, or the mean with the loss "squared"."""
        outputs = self._outputs(X)
        return self.target_.restore(outputs[:, self.net_loss.middle])

    def predict_encoded(self, X: NDArray[Any]) -> NDArray[np.float64]:
        """Return the number (n, 1) for each row that was encoded before."""
        outputs = _in_order(self.model_, X)
        return self.target_.restore(outputs[:, [self.net_loss.middle]])

    def predict_interval(self, X: Any, coverage: float = 0.8) -> NDArray[np.float64]:
        """Return both ends (n, 2) of intervals that hold such a share of the targets.

        They are moved apart, or together, until they hold that share of the labelled current rows
        for models that were not trained on them.
        """
        outputs = self._outputs(X)
        weights, shift = self.interval_rule(coverage)
        ends, middle = outputs @ weights + shift, outputs[:, [self.net_loss.middle]]
        low, high = np.minimum(ends[:, :1], middle), np.maximum(ends[:, 1:], middle)
        return self.target_.restore(np.hstack([low, high]))

    def held_out_numbers(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return labelled current rows (n,) and predictions (n, 1) by nets that did not see them.

        There are at most 2,000.
        """
        outputs, y, _ = self.held_out_
        answers = outputs[:, [self.net_loss.middle]]
        return self.target_.restore(y), self.target_.restore(answers)

    def interval_rule(self, coverage: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return weights (Q, 2) of the net's outputs in both ends of intervals, and a shift (2,).

        Weights interpolate between quantiles; the shift is what the held-out rows ask for.
        """
        expect_coverage(coverage)
        outputs, y, weight = self.held_out_
        levels = np.array(self.net_loss.levels)
        wanted = np.array([(1 - coverage) / 2, (1 + coverage) / 2])
        weights = np.stack([np.interp(wanted, levels, one) for one in np.eye(len(levels))])
        low, high = (outputs @ weights).T
        beyond = np.maximum(low - y, y - high)
        level = min(coverage * (1 + 1 / len(y)), 1.0)
        shift = float(weighted_quantiles(beyond, weight, [level])[0])
        return weights, np.array([-shift, shift])

    def to_onnx(self, *, missing: str = "", coverage: float = 0.8) -> bytes:
        """Return the model and its encoding as one ONNX graph, for runtimes without driftquilt.

        Inputs are those of `QuiltClassifier.to_onnx`; the outputs are `prediction` (n,) and
        `interval` (n, 2), which holds such a share of the targets, both float64. It takes the extra
        `onnx`.
        """
        check_is_fitted(self)
        from driftquilt.integrations.onnx import to_onnx  # noqa: PLC0415  # few need it

        return to_onnx(self, missing, coverage)

    def make_learner(self) -> MLPRegression:
        """Make the learner that is trained."""
        levels = tuple(map(float, self.quantiles)) if self.loss == "quantile" else (0.5,)
        loss = Loss(self.loss, levels)
        return MLPRegression(self.hidden_units, self.learning_rate, self.batch_size, loss)

    def fit_rows(self, seen: Rows, remote: RemoteHistory | None = None) -> Self:
        """Select and train on rows that were read before."""
        if remote is not None:
            raise InputError("a regression reads its rows here; give fit the rows themselves")
        rows = seen.weighing(seen.weight)
        if len(rows.y) < 2:  # noqa: PLR2004
            raise InputError(f"found {len(rows.y)} sample(s); training needs at least two rows")
        warn_of_order(rows.segments)
        is_going_on = self.init == "previous" and hasattr(self, "target_")
        target = self.target_ if is_going_on else Target.fit(rows.y, rows.weight)
        scaled = rows.scaled(target)
        trained = self._train(scaled, self.make_learner().loss.n_outputs)
        self._keep(seen, trained)
        self.target_ = target
        self.coverage_ = coverage(trained.history, len(trained.current)) if trained.history else 1.0
        self.held_out_ = self._hold_out(trained.quilt, trained.history, trained.current)
        return self

    def pack_target(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Return held-out rows, and a record of the target's scale, for the model file."""
        held_out = self.held_out_._asdict()
        tensors = {f"{HELD_OUT}.{name}": values for name, values in held_out.items()}
        return tensors, {
            "task": REGRESSION,
            "target": asdict(self.target_),
            "coverage": self.coverage_,
        }

    def unpack_target(self, tensors: Mapping[str, NDArray[Any]], record: dict[str, Any]) -> int:
        """Set what `pack_target` returned; return the number of outputs."""
        self.target_, self.coverage_ = Target(**record["target"]), float(record["coverage"])
        self.held_out_ = HeldOut(*(tensors[f"{HELD_OUT}.{name}"] for name in HeldOut._fields))
        outputs, y, weight = self.held_out_
        if outputs.shape != (len(y), self.net_loss.n_outputs) or len(weight) != len(y):
            raise ValueError("held-out rows and outputs do not belong together")
        return self.net_loss.n_outputs

    @property
    def net_loss(self) -> Loss:
        """The loss that the net was trained by."""
        learner = self.learner_
        assert isinstance(learner, MLPRegression)  # noqa: S101
        return learner.loss

    def _knows(self, rows: Rows) -> bool:  # noqa: ARG002
        return True

    def _outputs(self, X: Any) -> NDArray[np.float64]:
        """Return what the net says of each row, quantiles in their order."""
        check_is_fitted(self)
        with one_blas_thread():
            return _in_order(self.model_, to_matrix(read_frame(X), self.encoder_, self.learner_))

    def _hold_out(self, quilt: Quilt, history: Any, current: Any) -> HeldOut:
        tasks = quilt.tasks(history, current)
        parts = [task.validation for task in tasks]
        with one_blas_thread():
            models = zip(self.model_.by_fold(), parts, strict=True)
            outputs = np.concatenate([_in_order(model, part.X) for model, part in models])
        y, weight = (np.concatenate([getattr(p, name) for p in parts]) for name in ("y", "weight"))
        rows = spread_out(len(y), min(len(y), _MAX_HELD_OUT))
        return HeldOut(outputs[rows], y[rows], weight[rows].astype(np.float64))


def expect_coverage(coverage: float) -> None:
    """Refuse what is not a share between 0 and 1.

    >>> expect_coverage(80)
    Traceback (most recent call last):
    driftquilt.errors.InputError: coverage is 80; it takes a share between 0 and 1
    """
    if not (isinstance(coverage, float) and 0 < coverage < 1):
        raise InputError.of_setting("coverage", coverage, "a share between 0 and 1")


def _in_order(model: Average, X: NDArray[Any]) -> NDArray[np.float64]:
    return np.sort(model.predict(X).astype(np.float64), axis=1)
