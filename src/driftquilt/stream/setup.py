"""What a stream was set up with, kept in the store so that it can be opened again.

Code is not kept: a learner of the user's own, and a detector that is not one of ours, have to be
given again.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from driftquilt.detectors.base import Detector
from driftquilt.detectors.named import make_detector
from driftquilt.errors import InputError, StoreError
from driftquilt.learners.base import Learner
from driftquilt.quilt.classifier import QuiltClassifier
from driftquilt.quilt.model_file import settings_from_json, settings_to_json
from driftquilt.stream.guard import Guard
from driftquilt.stream.settings import StreamSettings

__all__ = ["FORMAT", "Setup"]

#: Raised when states of the version before can no longer be read.
FORMAT = 1


@dataclass(frozen=True)
class Setup:
    """Everything that does not change while a stream runs; the detector has seen nothing."""

    settings: StreamSettings
    estimator: QuiltClassifier
    detector: Detector
    guard: Guard
    seed: int
    wait: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.estimator, QuiltClassifier):
            raise InputError(
                f"the estimator is a {type(self.estimator).__name__}; a stream takes a "
                "QuiltClassifier"
            )
        if not isinstance(self.guard, Guard):
            raise InputError(
                f"the guard is a {type(self.guard).__name__}; give a driftquilt.stream.guard.Guard"
            )
        if not self.estimator.encode:
            raise InputError(
                "the estimator has encode=False, but the rows of a stream are dictionaries, which "
                "have to be encoded; leave it at True"
            )
        if type(self.wait) is not bool:
            raise InputError(f"wait is {self.wait!r}; it takes True or False")

    @classmethod
    def of(
        cls,
        estimator: QuiltClassifier,
        detector: Any,
        guard: Guard,
        *,
        wait: bool = False,
        **settings: Any,
    ) -> Setup:
        """A setup from what a caller gives; all that is random follows from one seed."""
        state = getattr(estimator, "random_state", None)
        try:
            seed = int(check_random_state(state).randint(np.iinfo(np.int32).max))
        except ValueError as error:
            raise InputError(f"random_state is {state!r}; it takes an int, or None") from error
        made = make_detector(detector, seed)
        return cls(StreamSettings.of(**settings), estimator, made, guard, seed, wait)

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        learner = self.estimator.learner
        return {
            "format": FORMAT,
            "settings": self.settings.to_json(),
            "estimator": settings_to_json(self.estimator.get_params(deep=False)),
            "learner": None if learner is None else learner.settings(),
            "detector": self.detector.settings(),
            "guard": asdict(self.guard),
            "seed": self.seed,
            "wait": self.wait,
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
        """What `to_json` told of, with the code that it could not keep; None: as before."""
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
        made = make_detector(data["detector"] if detector is None else detector, data["seed"])
        estimator = QuiltClassifier(**settings_from_json(data["estimator"]), learner=learner)
        if engine is not None:
            estimator.set_params(engine=engine)
        if n_jobs is not None:
            estimator.set_params(n_jobs=n_jobs)
        settings, guard = StreamSettings(**data["settings"]), Guard(**data["guard"])
        if max_waiting is not None:
            settings = replace(settings, max_waiting=max_waiting)
        wait = data.get("wait", False) if wait is None else wait  # early stores do not say
        return cls(settings, estimator, made, guard, data["seed"], wait)
