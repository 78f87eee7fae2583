"""The head of a torch module: the linear layer whose output is what the module returns.

One row is run through the net, and its linear layers are watched: the last one that is called has
to give what comes out.

>>> net = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 2))
>>> find_head(net, torch.ones(1, 3), n_classes=2, name=None)
'2'
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import NamedTuple

from driftquilt.errors import LearnerError, MissingExtraError

try:
    import torch
    from torch import nn
except ModuleNotFoundError as error:
    raise MissingExtraError("torch", extra="torch") from error

__all__ = ["NOT_LOGITS", "HeadCall", "find_head", "watch"]

NOT_LOGITS = "gives something else than the module returns; return the logits, without softmax"


class HeadCall(NamedTuple):
    """A call of a layer: what went into it, and what it gave."""

    layer: str
    embedding: torch.Tensor
    logits: torch.Tensor


@contextmanager
def watch(layers: Mapping[str, nn.Linear]) -> Iterator[list[HeadCall]]:
    """Note every call of the layers while the block runs, in their order."""
    calls: list[HeadCall] = []

    def note(name: str) -> Callable[..., None]:
        return lambda _, args, named, out: calls.append(
            # A copy: what follows the layer may change its output in place.
            HeadCall(name, (*args, *named.values())[0], out.clone())
        )

    with ExitStack() as hooks:
        for name, layer in layers.items():
            hooks.enter_context(layer.register_forward_hook(note(name), with_kwargs=True))
        yield calls


def find_head(module: nn.Module, probe: torch.Tensor, n_classes: int, name: str | None) -> str:
    """Name of the layer that gives the module's output, by running the one row of `probe`."""
    net, layers = type(module).__name__, _candidates(module, name)
    module.eval()
    try:
        with torch.no_grad(), watch(layers) as calls:
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
        found = f"a {type(parts[name]).__name__}" if name in parts else "not there"
        raise LearnerError(f"head {name!r} of {net} is {found}; linear layers are {[*linear]}")
    return {name: linear[name]}


def _problem(call: HeadCall, output: object, n_rows: int, n_classes: int) -> str | None:
    """Say why the layer called cannot be the head of a module that returns `output`."""
    if not isinstance(output, torch.Tensor):
        return f"gives logits, but the module returns a {type(output).__name__}; return the logits"
    if not torch.equal(output, call.logits):
        return NOT_LOGITS
    got, gave = tuple(call.embedding.shape), tuple(output.shape)
    if len(got) != 2 or got[0] != n_rows:  # noqa: PLR2004
        return f"gets shape {got} for {n_rows} row, not (n, H); flatten or pool before it"
    if gave != (n_rows, n_classes):
        return f"gives shape {gave} for {n_rows} row of {n_classes} classes; set its out_features"
    return None
