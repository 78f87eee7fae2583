"""How fast the parts are: kernels, learning row by row, and starting a process.

`kernels`: the two-layer net's kernels beside the same matrix products in plain BLAS. Training a
batch takes its forward products, those of the head gradient and those back to the first layer;
scoring takes the former two. What a kernel costs above them is bias, ReLU, softmax, Adam and the
order of rows.

`online`: rows per second of a model that predicts each row and then learns it. The net gets rows
as arrays and river's trees get them as dicts, each as its own users hold them; making either is
not timed. All have learned the same first rows before.

`startup`: wall seconds from the start of a new process to its end. The kernels have been compiled
before, as on any machine that has run a fit. The fit is of noisy labels, on which training stops
early: it shows the wait for libraries, not for epochs.

>>> measure_online("HAT", "sine", n_rows=50, repeats=1).n_features
4
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from benchmarks.cost.measure import measure, run_fresh
from driftquilt.core.segment import Segment
from driftquilt.learners.mlp import MLP
from driftquilt.paper.baselines.trees import ARF, HAT
from driftquilt.quilt.executor import one_blas_thread

__all__ = [
    "ONLINE_MODELS",
    "SHAPES",
    "STARTS",
    "WIDTHS",
    "KernelCost",
    "OnlineCost",
    "StartupCost",
    "measure_kernels",
    "measure_online",
    "measure_startup",
]

#: Features and classes of the nets.
SHAPES = ((4, 2), (10, 2), (10, 5), (99, 2), (499, 2))

_BATCH, _HIDDEN = 128, 256
_BATCHES, _LOOPS = 50, 100

#: Features of the rows: as many as sine has, and as many as electricity.
WIDTHS = {"sine": 4, "electricity": 6}

_N_WARM = 200

#: Made from the rows learnt before; turns rows into the work of predicting and learning each.
Prepare: TypeAlias = Callable[[Segment], Callable[[], None]]

_FIT = """
import numpy as np
from driftquilt import QuiltClassifier
X = np.random.default_rng(0).normal(size=(120, 6))
y = X[:, 4] + 2 * X[:, 5] > 0
QuiltClassifier(random_state=0).fit(X[:, :5], y, segments=np.repeat([0, 1, 2], 40))
"""

#: What is started: Python code, and its arguments.
STARTS: dict[str, tuple[str, ...]] = {
    "python alone": ("pass",),
    "import driftquilt": ("import driftquilt",),
    "driftquilt --help": ("from driftquilt.cli.app import main; main()", "--help"),
    "first fit, 120 rows": (_FIT,),
}


@dataclass(frozen=True)
class KernelCost:
    """CPU seconds per batch of 128 rows."""

    n_features: int
    n_classes: int
    training: float
    training_products: float
    scoring: float
    scoring_products: float


def measure_kernels(n_features: int, n_classes: int, repeats: int) -> KernelCost:
    """Both kernels and both sets of products for a net of this shape."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(_BATCHES * _BATCH, n_features)).astype(np.float32)
    y = rng.integers(0, n_classes, len(X))
    rows = Segment("rows", X, y, np.ones(len(X), np.float32))
    model = MLP(_HIDDEN, batch_size=_BATCH).start(X, n_classes, seed=0)
    forward, backward = _products(X[:_BATCH], n_classes, rng)
    with one_blas_thread():
        products = _cpu(forward, repeats) / _LOOPS
        return KernelCost(
            n_features,
            n_classes,
            training=_cpu(lambda: model.train_epoch([rows], rng, 1.0), repeats) / _BATCHES,
            training_products=products + _cpu(backward, repeats) / _LOOPS,
            scoring=_cpu(lambda: model.head_gradients([rows]), repeats) / _BATCHES,
            scoring_products=products,
        )


def _products(
    X: NDArray[np.float32], n_classes: int, rng: np.random.Generator
) -> tuple[Callable[[], None], Callable[[], None]]:
    """Return the products of one batch, many times: forward with head gradient, and the rest."""
    first = rng.normal(size=(X.shape[1], _HIDDEN)).astype(np.float32)
    head = rng.normal(size=(_HIDDEN, n_classes)).astype(np.float32)
    hidden = X @ first
    residual = hidden @ head

    def forward() -> None:
        for _ in range(_LOOPS):
            np.matmul(X, first, out=hidden)
            np.matmul(hidden, head, out=residual)
            residual.T @ hidden

    def backward() -> None:
        for _ in range(_LOOPS):
            back = residual @ head.T
            X.T @ back

    return forward, backward


def _cpu(work: Callable[[], object], repeats: int) -> float:
    """Median CPU seconds; a first call warms up and does not count."""
    work()
    return measure(work, repeats)[1].cpu


@dataclass(frozen=True)
class OnlineCost:
    """`rows_per_second` is in CPU time."""

    model: str
    rows: str
    n_features: int
    n_rows: int
    rows_per_second: float


def measure_online(model: str, rows: str, n_rows: int, repeats: int) -> OnlineCost:
    """One of `ONLINE_MODELS` on rows as wide as those of a stream in `WIDTHS`."""
    n_features = WIDTHS[rows]
    segment = _segment(n_features, _N_WARM + n_rows)
    with one_blas_thread():
        prepare = ONLINE_MODELS[model](segment.take(slice(_N_WARM)))
        _, time = measure(prepare(segment.take(slice(_N_WARM, None))), repeats)
    return OnlineCost(model, rows, n_features, n_rows, n_rows / time.cpu)


def _segment(n_features: int, n_rows: int) -> Segment:
    X = np.random.default_rng(0).normal(size=(n_rows, n_features)).astype(np.float32)
    y = (X[:, 0] > np.sin(X[:, 1])).astype(np.int64)
    return Segment("online", X, y, np.ones(n_rows, np.float32))


def _net(warm: Segment) -> Prepare:
    model = MLP().start(warm.X, n_classes=2, seed=0)

    def prepare(rows: Segment) -> Callable[[], None]:
        pairs = list(zip(rows.X, rows.y.tolist(), strict=True))

        def work() -> None:
            for x, y in pairs:
                model.learn_one(x, y)  # answers with what the model said before

        return work

    prepare(warm)()
    return prepare


def _tree(method: HAT | ARF, warm: Segment) -> Prepare:
    model = method.adapt([], warm).trained

    def prepare(rows: Segment) -> Callable[[], None]:
        labels = rows.y.tolist()
        pairs = [(dict(enumerate(x)), y) for x, y in zip(rows.X.tolist(), labels, strict=True)]

        def work() -> None:
            for x, y in pairs:
                model.predict_proba_one(x)
                model.learn_one(x, y)

        return work

    return prepare


ONLINE_MODELS: dict[str, Callable[[Segment], Prepare]] = {
    "MLP": _net,
    "HAT": lambda warm: _tree(HAT(), warm),
    "ARF": lambda warm: _tree(ARF(), warm),
}


@dataclass(frozen=True)
class StartupCost:
    """Median over fresh processes."""

    what: str
    wall_seconds: float


def measure_startup(what: str, repeats: int) -> StartupCost:
    """One of `STARTS`; a first process fills the caches and does not count."""
    run_fresh(*STARTS[what])
    _, time = measure(lambda: run_fresh(*STARTS[what]), repeats)
    return StartupCost(what, time.wall)
