"""One training of a torch net on many machines: every rank takes its part of each batch.

All ranks run the same program on the same held rows with the same seeds. Where the rows of the
history are scored whole (`score_rows=None`), each rank keeps and looks at its share of the
shards; in an epoch each computes the gradients of its part of a batch, they are summed over all
ranks (torch's gloo, started by Ray Train), and every rank makes the same step. So all ranks come
to the same decisions, and the outcome is that of one machine up to the rounding of sums.

It pays for nets or batches so large that a batch takes longer than the sum, some milliseconds,
does: spend machines on folds and bounds first (`engine="ray"`). When a rank dies, Ray Train
starts all anew, or the call fails. Batch norm is refused: it looks at the whole batch, which no
rank has. Dropout works, but draws other rows than on one machine.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields
from os import PathLike
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from driftquilt.errors import DriftquiltError, InputError, LearnerError, MissingExtraError
from driftquilt.estimator import QuiltClassifier
from driftquilt.estimator_file import pack, unpack
from driftquilt.executor import Kept, Threads
from driftquilt.learners.torch_module import TorchLearner, TorchModel
from driftquilt.scale.files import fit_files, local_paths
from driftquilt.scale.ray import Ray, connect
from driftquilt.settings import check_settings

try:
    import torch
    from ray.train import FailureConfig, RunConfig, ScalingConfig
    from ray.train.torch import TorchConfig, TorchTrainer
    from ray.train.v2.api.exceptions import TrainingFailedError
    from torch import distributed, nn
except ModuleNotFoundError as error:
    raise MissingExtraError("ray.train", extra="ray,torch") from error

__all__ = ["fit_parallel"]

A = TypeVar("A")
S = TypeVar("S")
T = TypeVar("T")
V = TypeVar("V")

_TRIES = 3  # of the whole training, if a rank dies


def fit_parallel(
    classifier: QuiltClassifier,
    files: Iterable[str | PathLike[str]],
    label: str,
    *,
    n_workers: int,
    drop: Iterable[str] = (),
    address: str | None = None,
    storage: str | None = None,
) -> QuiltClassifier:
    """A classifier fitted by so many ranks; what it is given is as for `fit_files`.

    It comes back as from a file, without rows. `storage` is a folder or a bucket that every node
    sees, for what Ray Train notes; it is needed where there are several nodes.
    """
    learner = classifier.learner
    if not isinstance(learner, TorchLearner):
        raise InputError("a training on many machines takes a learner of torch: TorchLearner(net)")
    check_settings(classifier.get_params(deep=False))
    connect(address)
    _expect_workers(n_workers)
    settings = {**classifier.get_params(deep=False), "engine": "local", "n_jobs": 1}
    if settings["random_state"] is None:  # or every rank would draw its own
        settings["random_state"] = int(np.random.default_rng().integers(2**32))
    paths = local_paths(files)
    with tempfile.TemporaryDirectory() as folder:
        trainer = TorchTrainer(
            _fit_here,
            train_loop_config={"settings": settings, "given": (paths, label, tuple(drop))},
            torch_config=TorchConfig(backend="gloo"),
            scaling_config=ScalingConfig(num_workers=n_workers),
            run_config=RunConfig(
                storage_path=storage or folder,
                failure_config=FailureConfig(max_failures=_TRIES),
            ),
        )
        try:
            result = trainer.fit()
        except TrainingFailedError as error:
            raise DriftquiltError(f"the training on {n_workers} ranks failed: {error}") from error
    outcome = result.return_value  # type: ignore[attr-defined]
    if isinstance(outcome, DriftquiltError):
        raise outcome
    tensors, record = outcome
    return unpack(QuiltClassifier, tensors, record, learner, "the new model")


def _expect_workers(n_workers: int) -> None:
    most = Ray().n_workers
    if not isinstance(n_workers, int) or not 1 <= n_workers <= most:
        raise InputError(
            f"n_workers is {n_workers!r}; it takes a whole number from 1 to {most}, the cores of "
            "the cluster"
        )


def _fit_here(config: dict[str, Any]) -> Any:
    """What every rank runs; what it refuses is an answer, as another try would refuse it too."""
    settings, (paths, label, drop) = config["settings"], config["given"]
    given: TorchLearner = settings["learner"]
    together = _Learner(**{field.name: getattr(given, field.name) for field in fields(given)})
    classifier = QuiltClassifier(**settings | {"learner": together, "engine": _Ranks()})
    try:
        return pack(fit_files(classifier, paths, label, drop=drop))
    except DriftquiltError as error:
        return error


@dataclass(frozen=True)
class _Ranks:
    """An executor of which every rank has a share: what is kept is dealt out, answers are all's."""

    n_workers: int = 1

    def run(
        self, work: Callable[[S, A], Iterable[T]], shared: S, items: Iterable[A]
    ) -> Iterator[tuple[int, T]]:
        yield from Threads(1).run(work, shared, items)

    def keep(self, make: Callable[[S, A], V], shared: S, items: Iterable[A]) -> Kept:
        mine = list(items)[distributed.get_rank() :: distributed.get_world_size()]
        return _KeptByRanks(_agree(lambda: [make(shared, item) for item in mine]))


@dataclass(frozen=True, eq=False)
class _KeptByRanks:
    """The share of a rank of all values."""

    values: list[Any]

    def ask(self, work: Callable[[S, Any], T], shared: S) -> list[T]:
        dealt = _gather(_agree(lambda: [work(shared, value) for value in self.values]))
        longest = max(map(len, dealt))
        return [
            answers[turn] for turn in range(longest) for answers in dealt if turn < len(answers)
        ]


def _gather(mine: T) -> list[T]:
    """What each rank has."""
    dealt: list[Any] = [None] * distributed.get_world_size()
    distributed.all_gather_object(dealt, mine)
    return dealt


def _agree(work: Callable[[], T]) -> T:
    """What it gives here; if it fails on any rank, on all of them, or the others would wait."""
    outcome, failure = None, None
    try:
        outcome = work()
    except Exception as error:  # raised below, on every rank
        failure = error
    for found in _gather(failure):
        if found is not None:
            raise found
    return cast("T", outcome)


class _Learner(TorchLearner):
    """A net that all ranks train together."""

    def _new_model(self, module: nn.Module, head: str, rows: dict[str, NDArray[Any]]) -> TorchModel:
        if any(isinstance(layer, nn.modules.batchnorm._BatchNorm) for layer in module.modules()):
            raise LearnerError(
                "the net has batch norm, which looks at whole batches, but each rank has a part "
                "of them; use group or layer norm, or train it on one machine"
            )
        return _Model(self, module, head, rows)


class _Model(TorchModel):
    """A rank's copy of it, the same on all."""

    def _part_of_batch(self, rows: torch.Tensor) -> torch.Tensor:
        return rows[distributed.get_rank() :: distributed.get_world_size()]

    def _end_batch(self) -> None:
        trained = [p for p in self._module.parameters() if p.requires_grad]
        mine = [torch.zeros_like(p) if p.grad is None else p.grad for p in trained]
        flat = torch.cat([gradient.flatten() for gradient in mine])
        distributed.all_reduce(flat)
        sums = torch.split(flat, [p.numel() for p in trained])
        for parameter, total in zip(trained, sums, strict=True):
            parameter.grad = total.view_as(parameter)
