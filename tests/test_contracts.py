"""Every learner, method and search obeys the laws of its kind, because it is exported.

A class is found through the `__all__` of its module. One whose constructor needs arguments has
a line in `FACTORIES`; one that has none fails here until it gets its line.
"""

from __future__ import annotations

import importlib
import inspect
import json
import pkgutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from torch import nn

import driftquilt.learners
import driftquilt.paper.baselines
import driftquilt.quilt
import driftquilt.search
from driftquilt.core.loss import Loss
from driftquilt.core.segment import Segment, join
from driftquilt.core.training import Rule, Run, Task, train
from driftquilt.errors import ModelFileError
from driftquilt.learners.base import Learner, Model
from driftquilt.learners.mlp import MLP, MLPRegression
from driftquilt.learners.torch_module import TorchLearner
from driftquilt.quilt.method import Training
from driftquilt.quilt.regression import RegressionQuilt
from driftquilt.search.base import Everything, Search, Trial
from driftquilt.search.shared import Shared

CLASSES = 3


def net(n_features: int, n_classes: int) -> nn.Module:
    layers = [nn.Linear(n_features, 6), nn.ReLU(), nn.Dropout(0.2), nn.Linear(6, n_classes)]
    return nn.Sequential(*layers)


#: As many outputs as there are classes: their codes are the numbers here.
NUMBERS = MLPRegression(6, 0.02, loss=Loss("quantile", (0.2, 0.5, 0.8)))

#: How to make what cannot be made without arguments.
FACTORIES: dict[type, Callable[[], Any]] = {
    TorchLearner: lambda: TorchLearner(net, batch_size=32),
    Shared: lambda: Shared((0.1, 0.4, 0.8, 1.6)),
    MLPRegression: lambda: NUMBERS,
    RegressionQuilt: lambda: RegressionQuilt(learner=NUMBERS, max_epochs=6),
}


def exported(package: ModuleType) -> Iterator[type]:
    """The classes that the modules of a package list and that can be made."""
    for found in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
        module = importlib.import_module(found.name)
        for name in getattr(module, "__all__", ()):
            thing = getattr(module, name)
            own = inspect.isclass(thing) and thing.__module__ == module.__name__
            abstract = inspect.isabstract(thing) or getattr(thing, "_is_protocol", False)
            if own and not abstract:
                yield thing


def having(package: ModuleType, *members: str) -> list[type]:
    return [cls for cls in exported(package) if all(hasattr(cls, name) for name in members)]


def make(cls: type) -> Any:
    if cls in FACTORIES:
        return FACTORIES[cls]()
    needed = [
        name
        for name, parameter in inspect.signature(cls).parameters.items()
        if parameter.default is parameter.empty
        and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    ]
    if needed:
        pytest.fail(
            f"{cls.__module__}.{cls.__name__} cannot be tested: its constructor needs {needed}; "
            "add a line to FACTORIES in tests/test_contracts.py"
        )
    if issubclass(cls, Training):
        return cls(learner=MLP(hidden_units=6, learning_rate=0.02), max_epochs=6)
    return cls()


LEARNERS = having(driftquilt.learners, "start", "restore")
METHODS = having(driftquilt.quilt, "adapt") + having(driftquilt.paper.baselines, "adapt")
SEARCHES = having(driftquilt.search, "trials", "n_trials")

each_classifier = pytest.mark.parametrize(
    "cls", [cls for cls in LEARNERS if cls is not MLPRegression], ids=lambda cls: cls.__name__
)
each_method_of_classes = pytest.mark.parametrize(
    "cls", [cls for cls in METHODS if cls is not RegressionQuilt], ids=lambda cls: cls.__name__
)
each_learner = pytest.mark.parametrize("cls", LEARNERS, ids=lambda cls: cls.__name__)
each_method = pytest.mark.parametrize("cls", METHODS, ids=lambda cls: cls.__name__)
each_search = pytest.mark.parametrize("cls", SEARCHES, ids=lambda cls: cls.__name__)


def segment(name: str, seed: int, n_rows: int = 70, flipped: bool = False) -> Segment:
    """Rows of three classes in read-only arrays; `flipped` is another concept."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 4)).astype(np.float32)
    y = (X[:, 0] > 0).astype(np.int64) + (X[:, 1] > 0)
    weight = rng.uniform(0.5, 2, n_rows).astype(np.float32)
    y = CLASSES - 1 - y if flipped else y
    for array in (X, y, weight):
        array.flags.writeable = False
    return Segment(name, X, y, weight)


APRIL, MAY, JUNE = segment("April", 1, flipped=True), segment("May", 2), segment("June", 3)
HISTORY = [APRIL, MAY]


def bytes_of(*segments: Segment) -> list[bytes]:
    return [array.tobytes() for s in segments for array in (s.X, s.y, s.weight)]


def weights(model: Model) -> dict[str, bytes]:
    return {name: tensor.tobytes() for name, tensor in model.tensors().items()}


def train_on(model: Model, *segments: Segment, epochs: int = 2, rate: float = 1.0) -> Model:
    for epoch in range(epochs):
        model.train_epoch(segments, np.random.default_rng(epoch), rate)
    return model


def start(learner: Learner, seed: int = 0) -> Model:
    return learner.start(MAY.X, CLASSES, seed)


def writeable(rows: Segment) -> Segment:
    return Segment(rows.name, rows.X.copy(), rows.y.copy(), rows.weight.copy())


def ask(model: Any, X: NDArray[np.float32]) -> NDArray[np.float32]:
    """Class probabilities, or numbers."""
    answer: NDArray[np.float32]
    answer = (model.predict_proba if hasattr(model, "predict_proba") else model.predict)(X)
    return answer


def loss(model: Model, rows: Segment) -> float:
    if not hasattr(model, "predict_proba"):
        return float(model.head_gradients([rows])[1][0])
    likelihood = model.predict_proba(rows.X)[np.arange(len(rows)), rows.y]
    return float(np.average(-np.log(likelihood), weights=rows.weight))


def test_something_of_every_kind_was_found() -> None:
    assert {MLP, TorchLearner} <= set(LEARNERS)
    assert {"Quilt", "FullData", "CurrentSegment"} <= {cls.__name__ for cls in METHODS}
    assert {"Shared", "Bayes"} <= {cls.__name__ for cls in SEARCHES}
    assert set(FACTORIES) <= {*LEARNERS, *METHODS, *SEARCHES}


# Learners


@each_learner
def test_a_start_repeats_bit_for_bit(cls: type) -> None:
    assert weights(start(make(cls))) == weights(start(make(cls)))


@each_learner
def test_training_repeats_bit_for_bit_and_draws_from_its_generator_alone(cls: type) -> None:
    learner = make(cls)
    first = train_on(start(learner), APRIL, MAY)
    np.random.seed(99)  # noqa: NPY002
    state = np.random.get_state()[1].tobytes()  # type: ignore[index]  # noqa: NPY002
    second = train_on(start(learner), APRIL, MAY)
    assert weights(first) == weights(second)
    assert np.random.get_state()[1].tobytes() == state  # type: ignore[index]  # noqa: NPY002


@each_learner
def test_training_draws_the_order_of_rows_first(cls: type) -> None:
    class Watched(np.random.Generator):
        asked: list[Any]

        def permutation(self, x: Any, axis: int = 0) -> Any:
            self.asked.append(x)
            return super().permutation(x, axis)

    rng = Watched(np.random.PCG64(0))
    rng.asked = []
    start(make(cls)).train_epoch([APRIL, MAY], rng, 1.0)
    assert rng.asked == [len(APRIL) + len(MAY)]


@each_learner
def test_rows_are_neither_changed_nor_kept(cls: type) -> None:
    learner, rows = make(cls), writeable(MAY)
    before = bytes_of(rows)
    model = train_on(learner.start(rows.X, CLASSES, 0), rows)
    model.head_gradients([rows])
    ask(model, rows.X)
    if hasattr(model, "learn_one"):
        model.learn_one(rows.X[0], int(rows.y[0]))
    assert bytes_of(rows) == before
    untouched = model.copy()
    rows.X[:], rows.y[:], rows.weight[:] = 0, 0, 1
    assert weights(train_on(model, JUNE)) == weights(train_on(untouched, JUNE))


@each_learner
def test_a_copy_goes_on_alike_and_leaves_the_other_alone(cls: type) -> None:
    model = train_on(start(make(cls)), MAY)
    twin, before = model.copy(), weights(model)
    after = weights(train_on(twin, APRIL))
    assert weights(model) == before != after
    assert weights(train_on(model, APRIL)) == after
    assert weights(twin) == after


@each_learner
def test_a_restored_model_predicts_exactly_alike(cls: type) -> None:
    learner = make(cls)
    model = train_on(start(learner), MAY)
    tensors = model.tensors()
    restored = learner.restore(tensors, CLASSES)
    assert np.array_equal(ask(restored, JUNE.X), ask(model, JUNE.X))
    kept = {name: tensor.copy() for name, tensor in tensors.items()}
    train_on(restored, APRIL)
    assert all(np.array_equal(tensors[name], kept[name]) for name in kept)
    again = train_on(learner.restore(tensors, CLASSES), APRIL)
    assert weights(again) == weights(restored)


@each_learner
def test_tensors_are_copies(cls: type) -> None:
    model = start(make(cls))
    tensors, before = model.tensors(), weights(model)
    train_on(model, MAY)
    assert {name: tensor.tobytes() for name, tensor in tensors.items()} == before
    before = weights(model)
    for tensor in model.tensors().values():
        tensor[...] = 1
    assert weights(model) == before


@each_learner
def test_tensors_that_do_not_fit_are_refused(cls: type) -> None:
    learner = make(cls)
    tensors = start(learner).tensors()
    short = {name: tensor.ravel()[:-1] for name, tensor in tensors.items()}
    for bad, n_classes in [({}, CLASSES), (short, CLASSES), (tensors, CLASSES + 1)]:
        with pytest.raises(ModelFileError):
            learner.restore(bad, n_classes)


@each_classifier
def test_probabilities_have_a_column_per_class_and_sum_to_one(cls: type) -> None:
    model = start(make(cls))
    probabilities = model.predict_proba(JUNE.X)
    assert model.n_classes == CLASSES
    assert probabilities.dtype == np.float32
    assert probabilities.shape == (len(JUNE), CLASSES)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, rtol=1e-5)


@each_learner
def test_head_gradients_come_one_per_segment_with_its_loss(cls: type) -> None:
    model = train_on(start(make(cls)), MAY)
    gradients, losses = model.head_gradients(HISTORY)
    assert gradients.dtype == losses.dtype == np.float64
    assert gradients.shape[0] == len(losses) == 2
    assert gradients.shape[1] % CLASSES == 0
    np.testing.assert_allclose(losses, [loss(model, rows) for rows in HISTORY], rtol=1e-4)
    none, no_losses = model.head_gradients([])
    assert none.shape == (0, gradients.shape[1])
    assert no_losses.shape == (0,)


@each_learner
def test_a_rate_of_zero_teaches_nothing_and_more_epochs_teach(cls: type) -> None:
    model = start(make(cls))
    before, untrained = weights(model), loss(model, MAY)
    assert weights(train_on(model, MAY, rate=0.0)) == before
    assert loss(train_on(start(make(cls)), MAY, epochs=30), MAY) < untrained


@each_classifier
def test_one_plain_step_lowers_the_loss_of_its_row(cls: type) -> None:
    model = start(make(cls))
    row = MAY.take(slice(0, 1))
    before = loss(model, row)
    model.learn_one(row.X[0], int(row.y[0]))
    assert loss(model, row) < before


@each_learner
def test_settings_are_json_and_the_same_for_the_same_recipe(cls: type) -> None:
    assert json.loads(json.dumps(make(cls).settings())) == make(cls).settings()


# Methods


def adapt(
    cls: type, history: list[Segment], current: Segment, X: NDArray[Any] = JUNE.X
) -> NDArray[np.float32]:
    model: Any = make(cls).adapt(history, current)
    answer: NDArray[np.float32]
    answer = (model.predict if cls is RegressionQuilt else model.predict_proba)(X)
    return answer


@each_method
def test_a_method_repeats_bit_for_bit(cls: type) -> None:
    assert np.array_equal(adapt(cls, HISTORY, JUNE), adapt(cls, HISTORY, JUNE))


@each_method
def test_a_method_leaves_segments_as_they_are(cls: type) -> None:
    copies = [writeable(rows) for rows in (APRIL, MAY, JUNE)]
    adapt(cls, copies[:2], copies[2])
    assert bytes_of(*copies) == bytes_of(APRIL, MAY, JUNE)


@each_method_of_classes
def test_a_method_works_without_a_history(cls: type) -> None:
    probabilities = adapt(cls, [], JUNE)
    assert probabilities.shape == (len(JUNE), CLASSES)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, rtol=1e-5)


@each_method
def test_a_method_knows_the_classes_of_every_segment(cls: type) -> None:
    current = JUNE.take(JUNE.y < 2)
    past = [Segment("March", MAY.X, np.minimum(MAY.y, 1), MAY.weight), APRIL]
    answer = adapt(cls, past, current)
    assert answer.shape[1] == CLASSES
    assert answer.dtype == np.float32


@each_method_of_classes
def test_a_method_needs_no_more_than_two_rows(cls: type) -> None:
    np.testing.assert_allclose(adapt(cls, [], MAY.take(slice(2))).sum(axis=1), 1, rtol=1e-5)


@each_method
def test_no_rows_asked_are_no_rows_answered(cls: type) -> None:
    answer = adapt(cls, HISTORY, JUNE, JUNE.X[:0])
    assert answer.shape == (0, CLASSES)
    assert answer.dtype == np.float32


# Searches

TASK = Task(HISTORY, JUNE.take(slice(0, 35)), JUNE.take(slice(35, None)), max_epochs=6, seed=5)


def begin() -> Model:
    return MLP(hidden_units=6, learning_rate=0.02).start(JUNE.X, CLASSES, seed=5)


def trials(cls: type) -> list[Trial[Model]]:
    search: Search = make(cls)
    return list(search.trials(TASK, begin))


def alone(bound: float, task: Task = TASK) -> Run[Model]:
    run = Run(task, begin())
    for _ in train(run, bound):
        pass
    return run


def on_everything() -> Task:
    """Without tests, and with the last fifth of each past segment to validate."""
    ends = [len(segment) - len(segment) // 5 for segment in HISTORY]
    last = [segment.take(slice(end, None)) for segment, end in zip(HISTORY, ends, strict=True)]
    return replace(
        TASK,
        history=[segment.take(slice(0, end)) for segment, end in zip(HISTORY, ends, strict=True)],
        validation=join([*last, TASK.validation]),
        rule=Rule(use_disparity=False, use_gain=False),
        evenly=True,
    )


@each_search
def test_a_search_makes_as_many_trials_as_it_says(cls: type) -> None:
    assert len(trials(cls)) == make(cls).n_trials >= 1


@each_search
def test_a_trial_is_what_its_bound_alone_would_have_given(cls: type) -> None:
    for trial in trials(cls):
        run = alone(trial.disparity_max, on_everything() if cls is Everything else TASK)
        assert trial.validation_loss == run.best_loss
        assert weights(trial.model) == weights(run.best)
        chosen = [epoch.selected.tolist() for epoch in trial.epochs]
        assert chosen == [epoch.selected.tolist() for epoch in run.epochs]


@each_search
def test_a_search_repeats_bit_for_bit(cls: type) -> None:
    first, second = trials(cls), trials(cls)
    assert [t.disparity_max for t in first] == [t.disparity_max for t in second]
    assert [weights(t.model) for t in first] == [weights(t.model) for t in second]


@each_search
def test_a_search_leaves_rows_as_they_are(cls: type) -> None:
    before = bytes_of(APRIL, MAY, JUNE)
    trials(cls)
    assert bytes_of(APRIL, MAY, JUNE) == before


def test_a_class_that_needs_arguments_fails_with_what_to_do() -> None:
    class Needy:
        def __init__(self, depth: int) -> None:
            self.depth = depth

    with pytest.raises(pytest.fail.Exception, match=r"needs \['depth'\]; add a line to FACTORIES"):
        make(Needy)
