"""The published procedure in torch, taken from the checkout one stands in.

It lives outside the package, in `benchmarks/torch_quilt.py`, so that the package needs no torch.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

from driftquilt.errors import InputError, MissingExtraError
from driftquilt.methods.base import Method

__all__ = ["PLACE", "load_yardstick"]

PLACE = Path("benchmarks") / "torch_quilt.py"

_MODULE = "driftquilt_torch_quilt"


def load_yardstick(folder: Path, seed: int = 0) -> Method:
    """The method of the checkout in `folder`; an error says what to do where there is none."""
    path = folder / PLACE
    if not path.is_file():
        raise InputError(
            f"there is no {PLACE} in {folder.resolve()}; run driftquilt bench in a checkout of "
            "driftquilt"
        )
    if importlib.util.find_spec("torch") is None:
        raise MissingExtraError("torch", extra="bench")
    spec = importlib.util.spec_from_file_location(_MODULE, path)
    if spec is None or spec.loader is None:
        raise InputError(f"{path} cannot be imported")
    module = importlib.util.module_from_spec(spec)
    sys.modules[_MODULE] = module  # dataclasses look their module up by name
    spec.loader.exec_module(module)
    method: Method = module.TorchQuilt(seed=seed)
    return method
