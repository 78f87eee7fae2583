"""Quilt among river's models: in pipelines, in river's evaluation, beside river's own.

`RiverQuilt` is a classifier and `RiverQuiltRegressor` a regressor. Each is a `QuiltStream` that
keeps its rows in memory and trains while `learn_one` waits, so the same rows and seed give the same
answers. `stream` has what it has done: events, models, explanations. Before the first row a
classifier has no answer and a regressor answers 0, as river's do; from then on they answer, also
while rows for a training are gathered.

- Rows may gain and lose features, in any order, and be empty or all new, as the words of a text
  are; a feature is numbers or text, or missing.
- Labels of a classifier are all booleans, all whole numbers or all text, of as many classes as
  come. Those of a regressor are finite numbers.
- `learn_many` is `learn_one` for each row; `predict_many` answers with the caller's kind of table.
- `clone` starts from scratch. river and `copy.deepcopy` copy models by way of pickle's protocol, so
  a copy goes on as its original would. To keep a stream on disk, use `QuiltStream(store=folder)`:
  nothing is pickled there.

>>> from river import metrics, preprocessing
>>> from river.datasets import synth
>>> from river.evaluate import progressive_val_score
>>> stream = synth.ConceptDriftStream(
...     synth.SEA(variant=0, seed=0), synth.SEA(variant=3, seed=1), position=500, width=9, seed=0
... )
>>> model = preprocessing.StandardScaler() | RiverQuilt(seed=0)
>>> accuracy = progressive_val_score(stream.take(1000), model, metrics.Accuracy())
>>> accuracy.get() > 0.9
True
>>> numbers = preprocessing.StandardScaler() | RiverQuiltRegressor(seed=0)
>>> rows = synth.Friedman(seed=0).take(1000)
>>> error = progressive_val_score(rows, numbers, metrics.MAE())
>>> error.get() < 2.5
True

Paper: Algorithm 2.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from river import base
from river.utils.dataframe import into_frame, to_native_frame, to_native_series

from driftquilt.data.frame import Label, iter_rows
from driftquilt.detectors.named import DETECTORS
from driftquilt.quilt.classifier import QuiltClassifier
from driftquilt.quilt.regressor import QuiltRegressor
from driftquilt.store.memory import MemoryStore
from driftquilt.stream import QuiltStream
from driftquilt.stream.experts.evidence import KIND
from driftquilt.stream.task import Estimator

__all__ = ["RiverQuilt", "RiverQuiltRegressor"]


class _CopiedStore(MemoryStore):
    """A store in memory that can be copied, as river copies models."""

    def __getstate__(self) -> dict[str, Any]:
        state = {name: value for name, value in vars(self).items() if name != "_lock"}
        state["_blocks"] = [piece._replace(data=bytes(piece.data)) for piece in self._blocks]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update({**vars(MemoryStore()), **state})  # with a lock of its own


class _SparseStream(QuiltStream):
    """A stream of rows that name only what they hold, such as the words of a text."""

    _takes_strangers = True


def _in_order(x: Any) -> Any:
    """Return the row in the order of its names, so that how it was written plays no part."""
    return {name: x[name] for name in sorted(x, key=str)} if isinstance(x, Mapping) else x


def _to_one(probabilities: Mapping[Label, float]) -> dict[Label, float]:
    """Return the same shares in double precision, with the sum 1."""
    total = sum(probabilities.values())
    return {label: share / total for label, share in probabilities.items()}


class _StreamInRiver(base.Estimator):
    """A stream behind the methods of river's models."""

    _estimator: ClassVar[type[Estimator]]

    def __init__(
        self,
        detector: Any = "experts",
        n_wait: int = 25,
        refresh: float | None = 2.0,
        max_segments: int = 200,
        hidden_units: int = 256,
        seed: int | None = None,
    ) -> None:
        self.detector = detector
        self.n_wait = n_wait
        self.refresh = refresh
        self.max_segments = max_segments
        self.hidden_units = hidden_units
        self.seed = seed
        self._stream = _SparseStream(
            self._estimator(hidden_units=hidden_units, random_state=seed),
            copy.deepcopy(detector),  # the parameter stays as it was given, for clones
            n_wait,
            store=_CopiedStore(),
            wait=True,
            refresh=refresh,
            max_segments=max_segments,
        )

    @property
    def stream(self) -> QuiltStream:
        """The stream underneath: its events, models and rows."""
        return self._stream

    def learn_one(self, x: dict[Any, Any], y: Any) -> None:
        self._stream.learn_one(_in_order(x), y)

    def learn_many(self, X: Any, y: Any) -> None:
        self._stream.learn_many([_in_order(x) for x in iter_rows(X)], y)

    def predict_one(self, x: dict[Any, Any], **_: Any) -> Any:
        return self._stream.predict_one(x)

    def predict_many(self, X: Any) -> Any:
        return to_native_series(self._stream.predict_many(X), name=None, like=into_frame(X))

    def __getstate__(self) -> dict[str, Any]:
        kept = {name: value for name, value in vars(self).items() if name != "_stream"}
        return {**kept, "_store": self._stream.store}

    def __setstate__(self, state: dict[str, Any]) -> None:
        store = state.pop("_store")
        vars(self).update(state)
        known = store.state["stream"]["detector"]["kind"] in (KIND, *DETECTORS)
        detector = None if known else copy.deepcopy(self.detector)
        self._stream = _SparseStream.open(store, detector=detector)

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {"n_wait": 50, "refresh": None, "hidden_units": 64, "seed": None}


class RiverQuilt(_StreamInRiver, base.MiniBatchClassifier):
    """A classifier that finds drifts and trains again on the past that still holds.

    Parameters
    ----------
    detector
        What finds drifts: "experts", a name such as "adwin", its settings as a dictionary, or a
        detector, such as one of `river.drift`.
    n_wait
        Rows of a new segment to gather before a model is trained for it.
    refresh
        Train again when the segment has grown by this factor; None: only once.
    max_segments
        Past segments to keep at most, of up to 20,000 rows each; the least used go first.
    hidden_units
        Of the nets that are trained.
    seed
        Makes everything repeatable, bit for bit on one machine.

    """

    _estimator = QuiltClassifier

    def predict_proba_one(self, x: dict[Any, Any], **_: Any) -> dict[Label, float]:
        return _to_one(self._stream.predict_proba_one(x))

    def predict_proba_many(self, X: Any) -> Any:
        answers = [self.predict_proba_one(x) for x in iter_rows(X)]
        columns = {label: [answer[label] for answer in answers] for label in self._stream.classes}
        return to_native_frame(columns, like=into_frame(X))

    @property
    def _multiclass(self) -> bool:
        return True


class RiverQuiltRegressor(_StreamInRiver, base.MiniBatchRegressor):
    """A regressor that finds drifts and trains again on the past that still holds.

    Parameters
    ----------
    detector
        What finds drifts: "experts", a name such as "adwin", its settings as a dictionary, or a
        detector, such as one of `river.drift`.
    n_wait
        Rows of a new segment to gather before a model is trained for it.
    refresh
        Train again when the segment has grown by this factor; None: only once.
    max_segments
        Past segments to keep at most, of up to 20,000 rows each; the least used go first.
    hidden_units
        Of the nets that are trained.
    seed
        Makes everything repeatable, bit for bit on one machine.

    """

    _estimator = QuiltRegressor

    def predict_one(self, x: dict[Any, Any], **_: Any) -> float:
        answer = super().predict_one(x)
        return 0.0 if answer is None else float(answer)

    def predict_many(self, X: Any) -> Any:
        answers = [0.0 if answer is None else answer for answer in self._stream.predict_many(X)]
        return to_native_series(answers, name=None, like=into_frame(X))
