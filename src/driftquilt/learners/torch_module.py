"""Any PyTorch classifier whose last layer is linear.

Quilt compares segments by what goes into and comes out of that last layer, the head. Running
one row through the net and watching its linear layers shows which one it is; `head` names it
by hand. What the head gives must be what the module returns: logits, no softmax after it.

    rows       (n, ...)  floats become float32 tensors, integers int64 ones (token ids)
    embedding  (n, H)    whatever goes into the head
    logits     (n, C)    what the head gives

A head without a bias is scored as if it had one. On a CPU everything repeats bit for bit. A small
net runs on one thread there: its products are over before other threads have started, and on a
busy machine the caller would wait for them, spinning, many times longer than it computes.

Paper: "Gradient Computation".

>>> import numpy as np
>>> from driftquilt.core.segment import Segment, join
>>> def net(n_features: int, n_classes: int) -> nn.Module:
...     return nn.Sequential(nn.Linear(n_features, 16), nn.Tanh(), nn.Linear(16, n_classes))
>>> X = np.random.default_rng(0).normal(size=(200, 2))
>>> y = (X[:, 0] > 0).astype(np.int64)
>>> learner = TorchLearner(net, optimizer=lambda params: torch.optim.Adam(params, lr=0.02))
>>> model = learner.start(X, n_classes=2, seed=0)
>>> for epoch in range(20):
...     rng = np.random.default_rng(epoch)
...     model.train_epoch([Segment("may", X, y, np.ones(200, np.float32))], rng, rate=1.0)
>>> bool((model.predict_proba(X).argmax(axis=1) == y).mean() > 0.95)
True
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import KW_ONLY, dataclass
from typing import Any, NamedTuple, Self, cast

import numpy as np
from numpy.typing import NDArray

from driftquilt.core.gradients import cross_entropy, head_gradient
from driftquilt.core.segment import Segment, join
from driftquilt.errors import InputError, LearnerError, MissingExtraError, ModelFileError

try:
    import torch
    from torch import nn
    from torch.utils.flop_counter import FlopCounterMode
except ModuleNotFoundError as error:
    raise MissingExtraError("torch", extra="torch") from error

__all__ = ["TorchLearner", "TorchModel"]

ROWS_PER_FORWARD = 1024
# Operations on a batch from which on more threads than one pay off.
_WORTH_THREADS = 2**27
ROW_SHAPE = "driftquilt.row_shape"
INTEGER_ROWS = "driftquilt.integer_rows"
_NOT_LOGITS = "gives something else than the module returns; return the logits, without softmax"


@dataclass(frozen=True, eq=False)
class TorchLearner:
    """A net and how to train it.

    `module` is a net, which every training begins with as it is, or a callable
    `(n_features, n_classes) -> net`, which is seeded; a Module class can be one. `head` is the
    name of the last linear layer, like "classifier.2"; None finds it. `optimizer` makes an
    optimiser from a list of parameters; None is Adam as torch sets it.
    """

    module: nn.Module | Callable[[int, int], nn.Module]
    _: KW_ONLY
    head: str | None = None
    optimizer: Callable[[list[nn.Parameter]], torch.optim.Optimizer] | None = None
    device: str = "cpu"
    batch_size: int = 128

    def __post_init__(self) -> None:
        if self.batch_size < 1:
            raise InputError(f"batch_size is {self.batch_size}; it counts rows, so at least 1")
        if self.optimizer is not None and not callable(self.optimizer):
            raise InputError(
                f"optimizer is a {type(self.optimizer).__name__}, but every training makes its "
                "own; give a callable, such as lambda params: torch.optim.AdamW(params, lr=1e-3)"
            )
        if not callable(self.module):
            raise InputError(
                f"module is {self.module!r}; give an nn.Module, or a callable that makes one from "
                "(n_features, n_classes)"
            )

    def start(self, X: NDArray[Any], n_classes: int, seed: int) -> TorchModel:
        """Begin a training; LearnerError when the net has no head for `n_classes`."""
        with _seeded(seed, torch.device(self.device)):
            module = self._new_module(X, n_classes).to(self.device)
            with FlopCounterMode(display=False) as counter:
                head = _find_head(module, _tensor(X[:1]).to(self.device), n_classes, self.head)
        return TorchModel(self, module, head, _describe(X), counter.get_total_flops())

    def restore(self, tensors: Mapping[str, NDArray[Any]], n_classes: int) -> TorchModel:
        """Bring a saved model back; ModelFileError when the tensors are not of this net."""
        try:
            model = self.start(_example(tensors), n_classes, seed=0)
        except LearnerError as error:
            raise ModelFileError(f"the tensors are not those of this net: {error}") from error
        model._load(tensors)
        return model

    def settings(self) -> dict[str, Any]:
        """Tell this recipe from others; the optimiser, which is code, is not part of it."""
        named = type(self.module) if isinstance(self.module, nn.Module) else self.module
        name = getattr(named, "__name__", type(named).__name__)
        training = {"batch_size": self.batch_size, "device": str(self.device)}
        return {"kind": "torch", "module": name, "head": self.head, **training}

    def _new_module(self, X: NDArray[Any], n_classes: int) -> nn.Module:
        if isinstance(self.module, nn.Module):
            return copy.deepcopy(self.module)
        if X.ndim == 1:
            raise LearnerError("rows are single numbers; a callable needs shape (n, features)")
        try:
            module = self.module(X.shape[1], n_classes)
        except TypeError as error:
            name = getattr(self.module, "__name__", repr(self.module))
            raise LearnerError(
                f"{name} was called as {name}({X.shape[1]}, {n_classes}), for features and "
                f"classes, and failed: {error}; give a net that is made already, such as {name}()"
            ) from error
        if not isinstance(module, nn.Module):
            raise LearnerError(f"the callable gave a {type(module).__name__}, not an nn.Module")
        return copy.deepcopy(module)


class TorchModel:
    """A net in training, with its optimiser."""

    def __init__(
        self,
        learner: TorchLearner,
        module: nn.Module,
        head: str,
        rows: dict[str, NDArray[Any]],
        row_flops: int,
    ) -> None:
        self._learner, self._module, self._rows = learner, module, rows
        self._row_flops = row_flops
        self._head_name, self._head = head, cast("nn.Linear", module.get_submodule(head))
        self._device = torch.device(learner.device)
        self._optimizer = (learner.optimizer or torch.optim.Adam)(list(module.parameters()))
        self._base_rates = [float(group["lr"]) for group in self._optimizer.param_groups]

    @property
    def n_classes(self) -> int:
        """Number of classes, C."""
        return self._head.out_features

    def head_gradients(
        self, segments: Sequence[Segment]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Mean head gradient (S, C·(H+1)) and mean cross-entropy (S,) of each segment."""
        gradients = np.zeros((len(segments), self.n_classes * (self._head.in_features + 1)))
        losses = np.zeros(len(segments))
        for s, segment in enumerate(segments):
            for part, embedding, probabilities in self._forward(segment.X):
                y, weight = segment.y[part], segment.weight[part]
                gradients[s] += head_gradient(probabilities, y, embedding, weight)
                losses[s] += cross_entropy(probabilities, y, weight)
            total = segment.weight.sum(dtype=np.float64)
            gradients[s] /= total
            losses[s] /= total
        return gradients, losses

    def train_epoch(
        self, segments: Sequence[Segment], rng: np.random.Generator, rate: float
    ) -> None:
        """Train once on every row; dropout is seeded from `rng` after the order is drawn."""
        joined = join(segments)
        X, y, weight = (_tensor(part) for part in (joined.X, joined.y, joined.weight))
        order = torch.from_numpy(rng.permutation(len(y)))
        for group, base in zip(self._optimizer.param_groups, self._base_rates, strict=True):
            group["lr"] = base * rate
        self._module.train()
        with (
            _seeded(int(rng.integers(2**63)), self._device),
            self._threads(self._learner.batch_size),
        ):
            for rows in _batches(order, self._learner.batch_size, self._module):
                self._optimizer.zero_grad()
                logits = self._module(X[rows].to(self._device))
                losses = nn.functional.cross_entropy(
                    logits, y[rows].to(self._device), reduction="none"
                )
                torch.autograd.backward((losses * weight[rows].to(self._device)).sum() / len(rows))
                self._optimizer.step()

    def learn_one(self, x: NDArray[Any], y: int) -> NDArray[np.float32]:
        """One plain gradient step on one row, with batch norm and dropout as in prediction."""
        self._module.eval()
        self._module.zero_grad()
        with self._threads(1):
            logits = self._module(_tensor(np.asarray(x)[None]).to(self._device))
            label = torch.tensor([y], device=self._device)
            torch.autograd.backward(nn.functional.cross_entropy(logits, label))
        with torch.no_grad():
            for parameter in self._module.parameters():
                if parameter.grad is not None:
                    parameter.add_(parameter.grad, alpha=-self._base_rates[0])
        self._module.zero_grad()
        return torch.softmax(logits.detach().float(), dim=1)[0].cpu().numpy()

    def predict_proba(self, X: NDArray[Any]) -> NDArray[np.float32]:
        """Class probabilities of each row, shape (n, C)."""
        answer = np.empty((len(X), self.n_classes), dtype=np.float32)
        for part, _, probabilities in self._forward(X):
            answer[part] = probabilities
        return answer

    def embed(self, X: NDArray[Any]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Return what each row sends into the head, (n, H), and its class probabilities, (n, C)."""
        embedding = np.empty((len(X), self._head.in_features), dtype=np.float32)
        answer = np.empty((len(X), self.n_classes), dtype=np.float32)
        for part, sent, probabilities in self._forward(X):
            embedding[part], answer[part] = sent, probabilities
        return embedding, answer

    def add_to_logits(self, offsets: NDArray[np.float64]) -> None:
        """Add to the logit of each class (C,) from now on."""
        if self._head.bias is None:
            raise LearnerError(
                f"the head {self._head_name!r} has no bias, which class_weight needs; give it one, "
                "or leave class_weight away"
            )
        with torch.no_grad():
            self._head.bias.add_(torch.as_tensor(offsets).to(self._head.bias))

    def copy(self) -> Self:
        """Make an independent model that would go on training exactly as this one."""
        module = copy.deepcopy(self._module)
        twin = type(self)(self._learner, module, self._head_name, self._rows, self._row_flops)
        # load_state_dict alone would let the two share the optimiser's tensors.
        twin._optimizer.load_state_dict(copy.deepcopy(self._optimizer.state_dict()))
        return twin

    @torch.no_grad()
    def blend(self, other: TorchModel, share: float) -> None:
        """Move weights towards those of `other`; others, such as counters, are copied."""
        theirs = dict(_tensors_of(other._module))
        for name, mine in _tensors_of(self._module):
            if mine.is_floating_point():
                mine.lerp_(theirs[name], share)
            else:
                mine.copy_(theirs[name])

    def tensors(self) -> dict[str, NDArray[Any]]:
        """Weights and buffers by name, and what the rows look like; all copies."""
        arrays = {name: t.detach().cpu().numpy() for name, t in self._module.state_dict().items()}
        return {name: array.copy() for name, array in (arrays | self._rows).items()}

    def _load(self, tensors: Mapping[str, NDArray[Any]]) -> None:
        """Take over the weights of `tensors`; ModelFileError unless names and shapes agree."""
        expected, actual = (
            {name: f"{array.dtype} {array.shape}" for name, array in arrays.items()}
            for arrays in (self.tensors(), tensors)
        )
        for name in sorted(expected.keys() | actual.keys()):
            kind, wanted = actual.get(name, "missing"), expected.get(name, "absent")
            if kind != wanted:
                raise ModelFileError(f"tensor {name!r} is {kind}, but this net wants it {wanted}")
        # np.array copies: torch warns of arrays it may not write to.
        names = self._module.state_dict().keys()
        self._module.load_state_dict({n: torch.from_numpy(np.array(tensors[n])) for n in names})

    @contextmanager
    def _threads(self, n_rows: int) -> Iterator[None]:
        """Stay on one thread inside the block if that is enough for so many rows."""
        n_threads = torch.get_num_threads()
        if self._device.type != "cpu" or self._row_flops * n_rows >= _WORTH_THREADS:
            yield
            return
        torch.set_num_threads(1)
        try:
            yield
        finally:
            torch.set_num_threads(n_threads)

    def _forward(
        self, X: NDArray[Any]
    ) -> Iterator[tuple[slice, NDArray[np.float32], NDArray[np.float32]]]:
        """Yield which rows, their embedding (n, H) and their probabilities (n, C)."""
        self._module.eval()
        for start in range(0, len(X), ROWS_PER_FORWARD):
            part = slice(start, start + ROWS_PER_FORWARD)
            with (
                self._threads(len(X[part])),
                torch.no_grad(),
                _watch({self._head_name: self._head}) as calls,
            ):
                logits = self._module(_tensor(X[part]).to(self._device))
                probabilities = torch.softmax(logits.float(), dim=1)
            if not torch.equal(logits, calls[-1].logits):  # one row alone may not show it
                raise LearnerError(f"linear layer {self._head_name!r} {_NOT_LOGITS}")
            embedding = calls[-1].embedding.float()
            yield part, embedding.cpu().numpy(), probabilities.cpu().numpy()


def _tensors_of(module: nn.Module) -> Iterator[tuple[str, torch.Tensor]]:
    """Parameters and buffers; one that two layers share comes once, unlike in a state_dict."""
    yield from module.named_parameters()
    yield from module.named_buffers()


def _describe(X: NDArray[Any]) -> dict[str, NDArray[Any]]:
    """Tensors from which `_example` makes a row like those of X."""
    shape, integers = np.array(X.shape[1:], np.int64), np.array([X.dtype.kind in "iu"], np.int64)
    return {ROW_SHAPE: shape, INTEGER_ROWS: integers}


def _example(tensors: Mapping[str, NDArray[Any]]) -> NDArray[Any]:
    shape, integers = tensors.get(ROW_SHAPE), tensors.get(INTEGER_ROWS)
    if shape is None or integers is None:
        raise ModelFileError(f"tensor {ROW_SHAPE!r} or {INTEGER_ROWS!r} is missing")
    if shape.dtype != np.int64 or shape.ndim != 1 or np.any(shape < 1) or integers.shape != (1,):
        raise ModelFileError(f"tensor {ROW_SHAPE!r} or {INTEGER_ROWS!r} is damaged")
    # Ones, since text nets often take 0 for padding and cannot do with a row of it alone.
    return np.ones((1, *shape), dtype=np.int64 if integers[0] else np.float32)


def _tensor(rows: NDArray[Any]) -> torch.Tensor:
    """Copy of an array on the host, as float32 or int64."""
    if rows.dtype.kind not in "biuf":
        raise InputError(f"rows are of dtype {rows.dtype}; a net takes numbers only")
    dtype = np.int64 if rows.dtype.kind in "iu" else np.float32
    return torch.from_numpy(np.array(rows, dtype=dtype, order="C"))


def _batches(order: torch.Tensor, size: int, module: nn.Module) -> list[torch.Tensor]:
    """Cut the order into batches; batch norm cannot train on one row, so none is left over."""
    batches = list(torch.split(order, size))
    if not any(isinstance(part, nn.modules.batchnorm._BatchNorm) for part in module.modules()):
        return batches
    if size == 1 or len(order) == 1:
        raise LearnerError(
            f"batch normalisation cannot train on one row at a time (batch_size={size}, "
            f"{len(order)} row(s) to train on); raise batch_size or wait for more rows"
        )
    if len(batches[-1]) == 1:
        batches[-2:] = [torch.cat(batches[-2:])]
    return batches


@contextmanager
def _seeded(seed: int, device: torch.device) -> Iterator[None]:
    """Seed torch's generators of the host and the device for the block; put them back after."""
    accelerators = [] if device.type == "cpu" else [device]
    with torch.random.fork_rng(accelerators, device_type=device.type):
        torch.default_generator.manual_seed(seed)
        for accelerator in accelerators:
            torch.get_device_module(accelerator).manual_seed(seed)
        yield


class _HeadCall(NamedTuple):
    """A call of a layer: what went into it, and what it gave."""

    layer: str
    embedding: torch.Tensor
    logits: torch.Tensor


@contextmanager
def _watch(layers: Mapping[str, nn.Linear]) -> Iterator[list[_HeadCall]]:
    """Note every call of the layers while the block runs, in their order."""
    calls: list[_HeadCall] = []

    def note(name: str) -> Callable[..., None]:
        return lambda _, args, named, out: calls.append(
            # A copy: what follows the layer may change its output in place.
            _HeadCall(name, (*args, *named.values())[0], out.clone())
        )

    with ExitStack() as hooks:
        for name, layer in layers.items():
            hooks.enter_context(layer.register_forward_hook(note(name), with_kwargs=True))
        yield calls


def _find_head(module: nn.Module, probe: torch.Tensor, n_classes: int, name: str | None) -> str:
    """Name of the layer that gives the module's output, by running the one row of `probe`."""
    net, layers = type(module).__name__, _candidates(module, name)
    module.eval()
    try:
        with torch.no_grad(), _watch(layers) as calls:
            output = module(probe)
    except Exception as error:
        batch = f"a batch of shape {tuple(probe.shape)}, {probe.dtype}"
        raise LearnerError(f"{net} cannot run {batch}: {error}") from error
    if not calls:
        raise LearnerError(f"the forward of {net} calls none of its linear layers {[*layers]}")
    if problem := _problem(calls[-1], output, len(probe), n_classes):
        raise LearnerError(f"the head of {net}, linear layer {calls[-1].layer!r}, {problem}")
    return calls[-1].layer


def _candidates(module: nn.Module, name: str | None) -> dict[str, nn.Linear]:
    """Linear layers that may be the head: all of them, or the one named."""
    net, parts = type(module).__name__, dict(module.named_modules(remove_duplicate=False))
    linear = {key: part for key, part in parts.items() if isinstance(part, nn.Linear)}
    if not linear:
        raise LearnerError(f"{net} has no linear layer; its last layer must be an nn.Linear")
    if name is None:
        return linear
    if name not in linear:
        kind = f"a {type(parts[name]).__name__}" if name in parts else "not there"
        raise LearnerError(f"head {name!r} of {net} is {kind}; linear layers are {[*linear]}")
    return {name: linear[name]}


def _problem(call: _HeadCall, output: object, n_rows: int, n_classes: int) -> str | None:
    """Say why the layer called cannot be the head of a module that returns `output`."""
    if not isinstance(output, torch.Tensor):
        return f"gives logits, but the module returns a {type(output).__name__}; return the logits"
    if not torch.equal(output, call.logits):
        return _NOT_LOGITS
    got, gave = tuple(call.embedding.shape), tuple(output.shape)
    if len(got) != 2 or got[0] != n_rows:  # noqa: PLR2004
        return f"gets shape {got} for {n_rows} row, not (n, H); flatten or pool before it"
    if gave != (n_rows, n_classes):
        return f"gives shape {gave} for {n_rows} row of {n_classes} classes; set its out_features"
    return None
