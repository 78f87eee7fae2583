"""What a stream is set up with: how often it trains, what it lets through, what it is made of.

`StreamSettings` are the numbers it runs by, `Guard` stands between a suspicion and a new model, and
`Setup` is both with the estimator and the detector, which is kept in the store so that the stream
can be opened again. Code is not kept: a learner or a detector of your own has to be given again.

>>> StreamSettings(n_wait=0)
Traceback (most recent call last):
driftquilt.errors.InputError: n_wait is 0; it takes a whole number of at least 2
>>> guard = Guard(min_rows=50, cool_down=200, margin=0.1)
>>> guard.accepts_drift(n_current=60, since_drift=150), guard.promotes(0.52, 0.50)
(False, True)
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, get_args

import numpy as np
from sklearn.utils import check_random_state

from driftquilt.detectors.base import Detector, check_settings
from driftquilt.detectors.named import make_detector
from driftquilt.errors import InputError, StoreError
from driftquilt.learners.base import Learner
from driftquilt.quilt.metrics import (
    Metric,
    Scoring,
    find_metric,
    scoring_from_json,
    scoring_to_json,
)
from driftquilt.quilt.model_file import (
    CLASSIFICATION,
    REGRESSION,
    settings_from_json,
    settings_to_json,
)
from driftquilt.stream.experts.evidence import KIND, SETTINGS, Evidence
from driftquilt.stream.learning import Panel
from driftquilt.stream.task import ESTIMATORS, Estimator, learner_of

__all__ = ["FORMAT", "LET_ALL_THROUGH", "Guard", "Setup", "StreamSettings", "find_detector"]

#: Raised when states of the version before can no longer be read.
FORMAT = 1

_LEAST = {
    "n_wait": 2,
    "segment_rows": 2,
    "max_segments": 1,
    "max_rows": 2,
    "max_models": 1,
    "max_waiting": 0,
    "max_columns": 1,
    "checkpoint_rows": 1,
    "train_budget": 0,
}


@dataclass(frozen=True)
class StreamSettings:
    """How often a stream trains, and how much it keeps.

    n_wait           rows of a new segment to gather before a model is trained for it
    refresh          train again when the segment has grown by this factor; None: only once
    segment_rows     rows after which a segment is sealed without a drift
    max_segments     past segments to keep at most
    max_rows         rows of past segments to keep at most
    max_models       models to keep at most, as experts and for rollback; the most useful
    max_waiting      predicted rows that may wait for their label
    max_columns      columns that rows may have in the life of the stream
    checkpoint_rows  rows between two checkpoints, which is what a restart learns again at most
    train_budget     rows that trainings may go through, epoch by epoch, for each row learned;
                     one of more than a hundred encoded columns counts for several
    """

    n_wait: int = 25
    refresh: float | None = 2.0
    segment_rows: int = 20_000
    max_segments: int = 200
    max_rows: int = 2_000_000
    max_models: int = 12
    max_waiting: int = 10_000
    max_columns: int = 10_000
    checkpoint_rows: int = 5_000
    train_budget: int = 1_500

    def __post_init__(self) -> None:
        for name, least in _LEAST.items():
            value = getattr(self, name)
            if type(value) is not int or value < least:
                raise InputError.of_setting(name, value, f"a whole number of at least {least}")
        if self.refresh is not None and not _is_factor(self.refresh):
            raise InputError.of_setting("refresh", self.refresh, "a factor above 1, or None")
        if self.segment_rows < self.n_wait:
            raise InputError(
                f"segment_rows is {self.segment_rows}, fewer than the {self.n_wait} rows that "
                "n_wait gathers; a segment would end before a model is trained for it"
            )

        if self.max_rows < self.segment_rows:
            raise InputError(
                f"max_rows is {self.max_rows}, fewer than the {self.segment_rows} rows that one "
                "segment may have by segment_rows; raise the one or lower the other"
            )

    @classmethod
    def of(cls, **given: Any) -> StreamSettings:
        """Return the settings with these names; refuse others."""
        known = [field.name for field in fields(cls)]
        unknown = sorted(set(given) - set(known))
        if unknown:
            raise InputError(f"a stream has no setting {unknown[0]!r}; it has {', '.join(known)}")
        return cls(**given)

    def next_training(self, n_current: int) -> int | None:
        """With how many rows of the current segment to train again, after a training with some."""
        return None if self.refresh is None else math.ceil(n_current * self.refresh)

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)


def _is_factor(value: Any) -> bool:
    return type(value) in (int, float) and 1 < value < math.inf


@dataclass(frozen=True)
class Guard:
    """Limits on how often the model may change, and for what.

    cool_down  rows after a drift during which no other drift counts
    min_rows   rows that a segment needs before a drift may end it
    margin     how much worse than the present model a new one may be, as a share of its loss,
               and still take its place; negative: how much better it has to be

    Both losses are means over the current segment: the new model's over the rows that its folds
    held out, the present one's over the last `n_wait` rows, each predicted before it was learned.
    """

    cool_down: int = 0
    min_rows: int = 100
    margin: float = 0.1

    def __post_init__(self) -> None:
        for name in ("cool_down", "min_rows"):
            value = getattr(self, name)
            if type(value) is not int or value < 0:
                raise InputError.of_setting(name, value, "a whole number of rows")
        if type(self.margin) not in (int, float) or not self.margin > -1:
            raise InputError.of_setting("margin", self.margin, "a share above -1")

    def accepts_drift(self, n_current: int, since_drift: int) -> bool:
        """Whether a drift counts, so many rows into a segment and after the last drift."""
        return n_current >= self.min_rows and since_drift > self.cool_down

    def promotes(self, challenger: float, champion: float) -> bool:
        """Whether a model with the first loss may take the place of one with the second."""
        if math.isnan(challenger):
            return False
        return self.margin == math.inf or challenger <= champion * (1 + self.margin)


_MARGIN = 100.0  # a worse model is one expert that nobody listens to

#: The guard that does nothing.
LET_ALL_THROUGH = Guard(cool_down=0, min_rows=0, margin=math.inf)


def find_detector(detector: Any, seed: int) -> Detector | Evidence:
    """Return the panel's own detector, or what `make_detector` makes of a name or settings."""
    if isinstance(detector, Evidence):
        return detector
    settings = {"kind": detector} if isinstance(detector, str) else detector
    if isinstance(settings, Mapping) and settings.get("kind") == KIND:
        given = {str(name): value for name, value in settings.items() if name != "kind"}
        return Evidence(**check_settings(KIND, given, SETTINGS))
    return make_detector(detector, seed)


@dataclass(frozen=True)
class Setup:
    """Everything that does not change while a stream runs; the detector has seen nothing."""

    settings: StreamSettings
    estimator: Estimator
    detector: Detector | Evidence
    guard: Guard
    seed: int
    wait: bool = False
    metric: Metric | None = None
    panel: Panel = "all"

    def __post_init__(self) -> None:
        if not isinstance(self.estimator, Estimator):
            raise InputError(
                f"the estimator is a {type(self.estimator).__name__}; a stream takes a "
                "QuiltClassifier, or for numbers a QuiltRegressor"
            )
        if not isinstance(self.guard, Guard):
            raise InputError(
                f"the guard is a {type(self.guard).__name__}; give a driftquilt.stream.Guard"
            )
        if not self.estimator.encode:
            raise InputError(
                "the estimator has encode=False, but the rows of a stream are dictionaries, which "
                "have to be encoded; leave it at 'robust'"
            )
        if self.panel not in get_args(Panel):
            raise InputError.of_setting("panel", self.panel, "'all', 'rows' or 'model'")
        if self.panel == "model" and isinstance(self.detector, Evidence):
            raise InputError(
                "the detector 'experts' compares the experts of a panel, and panel='model' has "
                "none; name another detector, such as 'adwin'"
            )
        if type(self.wait) is not bool:
            raise InputError(f"wait is {self.wait!r}; it takes True or False")
        if self.metric is not None and self.task == REGRESSION:
            raise InputError(
                f"the scoring is {self.metric.name!r}, a metric of classes, but the stream is of "
                "numbers, whose mean absolute error it always has; leave scoring out"
            )
        own = getattr(self.estimator, "scoring", None)
        for owner, scoring in (("stream", self.metric), ("estimator", own)):
            if scoring is not None and scoring_to_json(scoring) is None:
                raise InputError(
                    f"the scoring of the {owner} is {scoring!r}, which is code, and a store does "
                    "not keep code; give the name of a metric, or a cost matrix"
                )

    @property
    def task(self) -> str:
        """Whether labels are classes or numbers."""
        return self.estimator.task

    @property
    def learner(self) -> Learner | None:
        """The caller's own learner, if there is one."""
        return learner_of(self.estimator)

    @property
    def class_weight(self) -> Mapping[Any, float] | str | None:
        """Weights of classes; there are none of numbers."""
        return getattr(self.estimator, "class_weight", None)

    @classmethod
    def of(
        cls,
        estimator: Estimator,
        detector: Any,
        guard: Guard | None,
        *,
        wait: bool = False,
        scoring: Scoring | None = None,
        panel: Panel = "all",
        **settings: Any,
    ) -> Setup:
        """Return a setup from what a caller gives; all that is random follows from one seed."""
        state = getattr(estimator, "random_state", None)
        try:
            seed = int(check_random_state(state).randint(np.iinfo(np.int32).max))
        except ValueError as error:
            raise InputError(f"random_state is {state!r}; it takes an int, or None") from error
        made = find_detector(detector, seed)
        if guard is None:  # a panel needs none between a training and an expert
            guard = Guard(margin=_MARGIN) if isinstance(made, Evidence) else Guard()
        metric = None if scoring is None else find_metric(scoring)
        numbers = StreamSettings.of(**settings)
        return cls(numbers, estimator, made, guard, seed, wait, metric, panel)

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        learner = self.learner
        return {
            "format": FORMAT,
            "task": self.task,
            "settings": self.settings.to_json(),
            "estimator": settings_to_json(self.estimator.get_params(deep=False)),
            "learner": None if learner is None else learner.settings(),
            "detector": self.detector.settings(),
            "guard": asdict(self.guard),
            "seed": self.seed,
            "wait": self.wait,
            "scoring": scoring_to_json(self.metric),
            "panel": self.panel,
        }

    @classmethod
    def from_json(
        cls,
        data: Any,
        learner: Learner | None,
        detector: Any,
        *,
        wait: bool | None = None,
        engine: str | None = None,
        n_jobs: int | None = None,
        max_waiting: int | None = None,
    ) -> Setup:
        """Read what `to_json` wrote, with the code it could not keep; None keeps a setting."""
        if not isinstance(data, dict) or "format" not in data:
            raise StoreError("there is no stream in this store; begin one: QuiltStream(store=path)")
        if data["format"] != FORMAT:
            raise StoreError(
                f"the stream in this store has format {data['format']}, this version reads "
                f"{FORMAT}; install the driftquilt that wrote it, or a newer one"
            )
        if data["learner"] is not None and learner is None:
            raise InputError(
                f"this stream trains a learner of your own, {data['learner']}; give it again: "
                "QuiltStream.open(path, learner=...)"
            )
        made = find_detector(data["detector"] if detector is None else detector, data["seed"])
        own: dict[str, Any] = {} if learner is None else {"learner": learner}
        kind = ESTIMATORS[data.get("task", CLASSIFICATION)]  # early stores do not say
        estimator = kind(**settings_from_json(data["estimator"]), **own)
        if engine is not None:
            estimator.set_params(engine=engine)
        if n_jobs is not None:
            estimator.set_params(n_jobs=n_jobs)
        settings, guard = StreamSettings(**data["settings"]), Guard(**data["guard"])
        if max_waiting is not None:
            settings = replace(settings, max_waiting=max_waiting)
        wait = data.get("wait", False) if wait is None else wait  # early stores do not say
        scoring = scoring_from_json(data.get("scoring"))
        metric = None if scoring is None else find_metric(scoring)
        panel = data.get("panel", "rows")  # early stores do not say; their labels may come late
        return cls(settings, estimator, made, guard, data["seed"], wait, metric, panel)
