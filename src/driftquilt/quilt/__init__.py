"""Quilt itself: the method, its explanation, the classifier and its file.

QuiltClassifier            scikit-learn's contract
QuiltRegressor             the same for targets that are numbers
QuiltSelector              the same for any scikit-learn estimator
select_segments            the answer alone
choose_model, load_model   the better of the net and gradient boosting; a model file of any kind
Quilt, DEFAULT, PAPER      the method on segments, and its two presets
RegressionQuilt            the same for numbers, with DEFAULT_REGRESSION
Selection, SegmentUse      what became of every past segment, and why
Threads, Processes         where trainings run
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from driftquilt.lazy import lazy_names

if TYPE_CHECKING:
    from driftquilt.quilt.classifier import QuiltClassifier, select_segments
    from driftquilt.quilt.executor import Executor, Processes, Threads, one_blas_thread
    from driftquilt.quilt.explanation import SegmentUse, Selection, TriedSet
    from driftquilt.quilt.method import (
        DEFAULT,
        PAPER,
        Average,
        Fitted,
        Method,
        Quilt,
        QuiltModel,
        Training,
        TriedBound,
    )
    from driftquilt.quilt.models import ModelChoice, choose_model, load_model
    from driftquilt.quilt.regression import DEFAULT_REGRESSION, RegressionQuilt
    from driftquilt.quilt.regressor import QuiltRegressor
    from driftquilt.quilt.selector import QuiltSelector

__all__ = [
    "DEFAULT",
    "DEFAULT_REGRESSION",
    "PAPER",
    "Average",
    "Executor",
    "Fitted",
    "Method",
    "ModelChoice",
    "Processes",
    "Quilt",
    "QuiltClassifier",
    "QuiltModel",
    "QuiltRegressor",
    "QuiltSelector",
    "RegressionQuilt",
    "SegmentUse",
    "Selection",
    "Threads",
    "Training",
    "TriedBound",
    "TriedSet",
    "choose_model",
    "load_model",
    "one_blas_thread",
    "select_segments",
]

# scikit-learn takes a second to import.
__getattr__ = lazy_names(
    __name__,
    classifier="QuiltClassifier select_segments",
    executor="Executor Processes Threads one_blas_thread",
    explanation="SegmentUse Selection TriedSet",
    method="DEFAULT PAPER Average Fitted Method Quilt QuiltModel Training TriedBound",
    models="ModelChoice choose_model load_model",
    regression="DEFAULT_REGRESSION RegressionQuilt",
    regressor="QuiltRegressor",
    selector="QuiltSelector",
)
