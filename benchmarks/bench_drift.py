"""What a drift costs, and how near the kernels are to BLAS. Run: make bench."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import track
from threadpoolctl import threadpool_limits

from driftquilt.core.segment import Segment
from driftquilt.datasets.synthetic import sine
from driftquilt.experiments.protocol import evaluations
from driftquilt.learners.mlp import MLP
from driftquilt.methods.base import Method
from driftquilt.methods.naive import CurrentSegment, FullData
from driftquilt.methods.quilt import Quilt, QuiltModel
from driftquilt.search.bayes import Bayes

_BATCH, _HIDDEN = 128, 256


def median_cpu(work: Callable[[], object], repeats: int) -> float:
    """Median CPU seconds of a call; the first call warms up and does not count."""
    work()
    seconds = []
    for _ in range(repeats):
        start = time.process_time()
        work()
        seconds.append(time.process_time() - start)
    return statistics.median(seconds)


def bench_drift() -> list[str]:
    """One line per method: CPU seconds of a drift to the last segment of sine."""
    *_, last = evaluations(sine())
    methods: dict[str, Method] = {
        "Quilt, shared search, one fold": Quilt(),
        "Quilt, shared search, two folds (the default)": Quilt(n_folds=2),
        "Quilt, bayes search (the paper)": Quilt(search=Bayes()),
        "all data": FullData(),
        "current segment only": CurrentSegment(),
    }
    lines = ["| a drift on sine, 7 past segments | CPU s | epochs |", "| --- | ---: | ---: |"]
    for name, method in track(methods.items(), "drift", console=Console(stderr=True)):
        model = method.adapt(last.history, last.current)
        seconds = median_cpu(lambda m=method: m.adapt(last.history, last.current), 3)  # type: ignore[misc]
        epochs = _count_epochs(model) if isinstance(model, QuiltModel) else "-"
        lines.append(f"| {name} | {seconds:.2f} | {epochs} |")
    return lines


def bench_kernels() -> list[str]:
    """Training and scoring beside their matrix products alone, per batch of 128 rows."""
    lines = [
        "| features, classes | training, us | its products, us | ratio "
        "| scoring, us | its products, us | ratio |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    rng = np.random.default_rng(0)
    for n_features, n_classes in track(
        [(4, 2), (10, 2), (10, 5), (99, 2), (499, 2)], "kernels", console=Console(stderr=True)
    ):
        X = rng.normal(size=(50 * _BATCH, n_features)).astype(np.float32)
        y = rng.integers(0, n_classes, len(X))
        rows = Segment(0, X, y, np.ones(len(X), np.float32))
        model = MLP(_HIDDEN, batch_size=_BATCH).start(X, n_classes, seed=0)
        train = median_cpu(lambda: model.train_epoch([rows], rng, 1.0), 5) / 50  # noqa: B023
        score = median_cpu(lambda: model.head_gradients([rows]), 5) / 50  # noqa: B023
        forward, backward = _products(X[:_BATCH], n_classes, rng)
        cells = [train, forward + backward, score, forward]
        us = [f"{value * 1e6:.0f}" for value in cells]
        lines.append(
            f"| {n_features}, {n_classes} | {us[0]} | {us[1]} | {cells[0] / cells[1]:.1f} "
            f"| {us[2]} | {us[3]} | {cells[2] / cells[3]:.1f} |"
        )
    return lines


def _products(
    X: NDArray[np.float32], n_classes: int, rng: np.random.Generator
) -> tuple[float, float]:
    """Seconds of the products of one batch: forward with head gradient, and the rest."""
    first = rng.normal(size=(X.shape[1], _HIDDEN)).astype(np.float32)
    head = rng.normal(size=(_HIDDEN, n_classes)).astype(np.float32)
    hidden = X @ first
    residual = hidden @ head

    def forward() -> None:
        for _ in range(100):
            np.matmul(X, first, out=hidden)
            np.matmul(hidden, head, out=residual)
            residual.T @ hidden

    def backward() -> None:
        for _ in range(100):
            back = residual @ head.T
            X.T @ back

    return median_cpu(forward, 5) / 100, median_cpu(backward, 5) / 100


def _count_epochs(model: QuiltModel) -> int:
    """Epochs trained; trials that shared a training up to some epoch count it once."""
    return len({id(epoch) for _, trial in model.trials for epoch in trial.epochs})


def main() -> None:
    """Print both tables as Markdown."""
    with threadpool_limits(limits=1, user_api="blas"):
        lines = [*bench_drift(), "", *bench_kernels()]
    print("\n".join(lines))  # noqa: T201


if __name__ == "__main__":
    main()
