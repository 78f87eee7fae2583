"""The kind of task, classes or numbers: its net, its metric, what is asked, and its words.

Everything that is decided goes the same way for both; what differs is a value here, and the
question that is asked of the held-out rows (`scoring`).

>>> NUMBERS.find_metric(None).name, type(NUMBERS.make_net()).__name__, NUMBERS.of_segment
('neg_mean_absolute_error', 'QuiltRegressor', 'error')
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_regressor

from driftquilt.decision.labels import TaskName
from driftquilt.decision.scoring import ClassQuestion, NumberQuestion
from driftquilt.errors import InputError
from driftquilt.quilt.classifier import QuiltClassifier
from driftquilt.quilt.metrics import Metric, NumberMetric, find_metric, find_number_metric
from driftquilt.quilt.models import Model
from driftquilt.quilt.regressor import QuiltRegressor

#: Share of the truths that intervals are for.
COVERAGE = 0.8


@dataclass(frozen=True)
class Task:
    """A kind of task.

    `net` is Quilt's own model for it, `question` what is asked of held-out rows. `knows` finds a
    metric by its name, None standing for the default. `of_segment` is the name of what is
    measured on each past segment, by `metric_of_segment`, and `explains` says so in a sentence.
    """

    name: TaskName
    net: type[QuiltClassifier] | type[QuiltRegressor]
    question: type[ClassQuestion] | type[NumberQuestion]
    knows: Callable[[Any], Metric | NumberMetric]
    of_segment: str
    metric_of_segment: str
    explains: str

    def make_net(self, **settings: Any) -> QuiltClassifier | QuiltRegressor:
        """Make the net; refuse class weights where there are no classes."""
        if self.net is QuiltRegressor and settings.pop("class_weight", None) is not None:
            raise InputError("class weights are for classes, but the label holds numbers")
        return self.net(**settings)

    def find_metric(self, scoring: Any) -> Metric | NumberMetric:
        """Return a metric of this task; refuse one of the other."""
        if isinstance(scoring, str):
            # Scikit-learn's names are of both kinds, and `find_metric` of classes knows them all.
            of_numbers = NUMBERS.has(scoring)
            other = CLASSES if self is NUMBERS else NUMBERS
            if of_numbers != (self is NUMBERS) and other.has(scoring):
                raise InputError(
                    f"{scoring} is a metric of {other.name}, but the label holds {self.name}"
                )
        elif self is NUMBERS and getattr(scoring, "costs", scoring):
            raise InputError("costs and scorers are for classes, but the label holds numbers")
        return self.knows(scoring)

    def has(self, scoring: str) -> bool:
        """Return whether a metric of this task has the name."""
        try:
            self.knows(scoring)
        except InputError:
            return False
        return True


CLASSES = Task(
    "classes",
    QuiltClassifier,
    ClassQuestion,
    find_metric,
    "accuracy",
    "accuracy",
    "accuracy: share of the segment's rows that the new model gets right.",
)
NUMBERS = Task(
    "numbers",
    QuiltRegressor,
    NumberQuestion,
    find_number_metric,
    "error",
    "neg_mean_absolute_error",
    "error: mean absolute error of the new model on the segment's rows.",
)
#: By name.
TASKS: dict[str, Task] = {task.name: task for task in (CLASSES, NUMBERS)}


def outputs_of(model: Model, X: Any) -> NDArray[np.float64]:
    """Return what a model says of rows: probabilities, or numbers and the ends of intervals.

    Of a regressor that gives no intervals it is (n, 1), else (n, 3).
    """
    if isinstance(model, QuiltRegressor):
        return np.column_stack([model.predict(X), model.predict_interval(X, COVERAGE)])
    if is_regressor(model):
        return np.asarray(model.predict(X), dtype=np.float64)[:, None]
    return np.asarray(model.predict_proba(X))
