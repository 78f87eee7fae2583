"""What came of each training of a stream, as the tags, figures and files of a run.

A training ends in one of three events, and what was trained is told right before two of them:

    ModelTrained, ModelPromoted  promoted
    ModelTrained, ModelKept      kept
    TrainingFailed               failed

Of a model that did not take over, or that the stream has dropped meanwhile, only what these
events say is known.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from driftquilt.integrations.mlflow.model import save_model
from driftquilt.learners.mlp import MLP
from driftquilt.quilt.classifier import QuiltClassifier
from driftquilt.quilt.explanation import KEPT_FROM
from driftquilt.quilt.model_file import settings_to_json
from driftquilt.stream import QuiltStream
from driftquilt.stream.events import (
    Event,
    ModelKept,
    ModelPromoted,
    ModelTrained,
    TrainingFailed,
)

__all__ = ["EVENT", "ROW", "End", "Ended", "pair"]

ROW, EVENT = "driftquilt.row", "driftquilt.event"
_OUTCOME, _MODEL = "driftquilt.outcome", "driftquilt.model"
_OUTCOMES = {"ModelPromoted": "promoted", "ModelKept": "kept", "TrainingFailed": "failed"}
End: TypeAlias = ModelPromoted | ModelKept | TrainingFailed


def pair(events: Iterable[Event]) -> Iterator[tuple[ModelTrained | None, End]]:
    """How each training ended, and what was trained, if that was told."""
    trained = None
    for event in events:
        if isinstance(event, End):
            yield trained, event
            trained = None
        elif isinstance(event, ModelTrained):
            trained = event


@dataclass(frozen=True, eq=False)
class Ended:
    """A training that has ended, with its model if the stream has it."""

    stream: QuiltStream
    trained: ModelTrained | None
    end: End
    clf: QuiltClassifier | None

    @classmethod
    def read(cls, stream: QuiltStream, trained: ModelTrained | None, end: End) -> Ended:
        if not isinstance(end, ModelPromoted) or end.model not in stream.models:
            return cls(stream, trained, end, None)
        return cls(stream, trained, end, stream.classifier(end.model))

    @property
    def name(self) -> str:
        if isinstance(self.end, ModelPromoted):
            return f"model {self.end.model}"
        return f"row {self.end.row}, {self.tags[_OUTCOME]}"

    @property
    def tags(self) -> dict[str, str]:
        end = self.end
        tags = {_OUTCOME: _OUTCOMES[type(end).__name__], ROW: end.row, EVENT: end.number}
        tags |= {_MODEL: end.model} if isinstance(end, ModelPromoted) else {}
        return {name: str(value) for name, value in tags.items()}

    @property
    def settings(self) -> dict[str, Any]:
        """Where the new model is not there, those of the model in use, but for its seed."""
        clf, stream = self.clf, self.stream
        alike = stream.classifier() if clf is None and stream.model is not None else clf
        settings = {} if alike is None else settings_to_json(alike.get_params(deep=False))
        if clf is None:
            settings.pop("random_state", None)
        return settings | stream.settings.to_json()

    @property
    def metrics(self) -> dict[str, float]:
        metrics: dict[str, float | None] = {}
        if not isinstance(self.end, TrainingFailed):
            metrics = {"validation_loss": self.end.loss, "previous_loss": self.end.previous_loss}
        if self.trained is not None:
            shares = self.trained.shares.values()
            metrics["seconds"] = self.trained.seconds
            metrics["n_current"] = self.trained.n_current
            metrics["n_segments"] = len(shares)
            metrics["n_segments_kept"] = sum(share >= KEPT_FROM for share in shares)
        if self.clf is not None:
            metrics["disparity_max"] = self.clf.disparity_max_
        return {name: float(value) for name, value in metrics.items() if value is not None}

    def write(self, folder: Path) -> None:
        """Write the artifacts."""
        (folder / "explanation.txt").write_text(self._explain() + "\n", encoding="utf-8")
        if self.trained is not None:
            (folder / "shares.json").write_text(json.dumps(self.trained.shares), encoding="utf-8")
        if self.clf is not None:
            _write_model(self.clf, folder)

    def _explain(self) -> str:
        if self.clf is not None:
            return self.clf.selection_.explain()
        explanation = "" if self.trained is None else self.trained.explanation
        return "\n".join(filter(None, [explanation, str(self.end)]))


def _write_model(clf: QuiltClassifier, folder: Path) -> None:
    selection = clf.selection_
    (folder / "selection.json").write_text(json.dumps(selection.to_json()), encoding="utf-8")
    selection.plot().save(folder / "quilt.svg")
    if isinstance(clf.learner_, MLP):
        save_model(clf, folder / "model")
