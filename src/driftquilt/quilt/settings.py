"""The settings of a QuiltClassifier, checked before anything is computed.

>>> check_settings({"n_folds": 0})
Traceback (most recent call last):
driftquilt.errors.InputError: n_folds must be a whole number of at least 1, but got 0
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from numbers import Integral, Real
from typing import Any

import numpy as np

from driftquilt.errors import InputError
from driftquilt.quilt.executor import ENGINES

__all__ = ["check_settings"]


def _is_count(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= 1


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool)


def _is_search(value: Any) -> bool:
    if isinstance(value, str):
        return value in ("shared", "bayes")
    needed = ("trials", "split", "n_trials")
    has_all = not isinstance(value, type) and all(hasattr(value, name) for name in needed)
    return has_all and value.n_trials >= 1


def _is_engine(value: Any) -> bool:
    if isinstance(value, str):
        return value in ENGINES
    wanted = (getattr(value, name, None) for name in ("run", "keep"))
    return not isinstance(value, type) and all(map(callable, wanted))


def _is_learner(value: Any) -> bool:
    return not isinstance(value, type) and hasattr(value, "start") and hasattr(value, "restore")


def _is_weighting(value: Any) -> bool:
    if isinstance(value, Mapping):
        return all(_is_number(weight) and 0 <= weight < math.inf for weight in value.values())
    return isinstance(value, str) and value == "balanced"


def _is_seed(value: Any) -> bool:
    if isinstance(value, Integral) and not isinstance(value, bool):
        return 0 <= int(value) < 2**32
    return isinstance(value, np.random.RandomState) or value is np.random


_COUNT = (_is_count, "a whole number of at least 1")
_COUNT_OR_ALL = (lambda v: v is None or _is_count(v), "None or a whole number of at least 1")
_FLAG = (_is_flag, "True or False")

_RULES: dict[str, tuple[Callable[[Any], bool], str]] = {
    "search": (
        _is_search,
        "'shared', 'bayes' or a search object of at least one trial",
    ),
    "disparity_max": (
        lambda v: v is None or (_is_number(v) and v >= 0),
        "None or a number of at least 0",
    ),
    "n_folds": _COUNT,
    "use_disparity": _FLAG,
    "use_gain": _FLAG,
    "init": (
        lambda v: isinstance(v, str) and v in ("random", "previous"),
        "'random' or 'previous'",
    ),
    "hidden_units": _COUNT,
    "learning_rate": (
        lambda v: v is None or (_is_number(v) and 0 < v < 1),
        "None or a number between 0 and 1",
    ),
    "batch_size": _COUNT,
    "learner": (
        lambda v: v is None or _is_learner(v),
        "None or a learner, such as TorchLearner(module)",
    ),
    "encode": _FLAG,
    "class_weight": (
        lambda v: v is None or _is_weighting(v),
        "None, 'balanced' or a dict of weights, each 0 or more, by label",
    ),
    "max_epochs": _COUNT,
    "patience": _COUNT,
    "score_rows": _COUNT_OR_ALL,
    "score_every": _COUNT,
    "epoch_rows": _COUNT_OR_ALL,
    "averaging": (lambda v: _is_number(v) and 0 <= v < 1, "a number from 0 to below 1"),
    "engine": (_is_engine, "'local', 'processes', 'ray', 'auto' or an executor object"),
    "n_jobs": _COUNT_OR_ALL,
    "progress": _FLAG,
    "random_state": (
        lambda v: v is None or _is_seed(v),
        "None, a whole number from 0 to 2**32 - 1 or a numpy RandomState",
    ),
}


def check_settings(settings: Mapping[str, Any]) -> None:
    """Raise InputError for the first setting that cannot be used."""
    for name, (is_good, words) in _RULES.items():
        if name in settings and not is_good(settings[name]):
            raise InputError(f"{name} must be {words}, but got {settings[name]!r}")
