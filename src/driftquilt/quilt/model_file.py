"""One fitted model in one file: weights as safetensors, everything else as JSON in its header.

The header carries a SHA-256 of both, so damage is found before anything is used. Nothing is
ever unpickled. A file is written beside its final name, synced and then renamed: a reader
finds the old model or the new one, never half of either.

>>> import numpy as np, tempfile, pathlib
>>> path = pathlib.Path(tempfile.mkdtemp()) / "model.safetensors"
>>> write_model(path, {"a": np.arange(3.0)}, {"classes": ["ham", "spam"]})
>>> tensors, record = read_model(path)
>>> tensors["a"], record
(array([0., 1., 2.]), {'classes': ['ham', 'spam']})
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from driftquilt.errors import ModelFileError
from driftquilt.files import atomic_write

__all__ = ["FORMAT", "read_model", "write_model"]

#: Raised when files of the version before can no longer be read.
FORMAT = 1
_START = 9  # bytes by which a safetensors file is known


def write_model(
    path: str | os.PathLike[str], tensors: dict[str, NDArray[Any]], record: dict[str, Any]
) -> None:
    """Write the weights and the record, replacing what stands at `path`."""
    target = Path(path)
    if target.is_dir() or not target.parent.is_dir():
        found = "is a folder" if target.is_dir() else f"there is no folder {target.parent}"
        raise ModelFileError(f"cannot write a model to {target}: {found}; choose another path")
    text = json.dumps(record)
    header = {"driftquilt": text, "format": str(FORMAT), "sha256": _digest(tensors, text)}
    with atomic_write(target) as file:
        file.write(_in_order(save(tensors, metadata=header)))


def read_model(path: str | os.PathLike[str]) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """Weights and record of a model file; ModelFileError for anything else."""
    _refuse_others(Path(path))
    try:
        with safe_open(os.fspath(path), framework="numpy") as file:
            header = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except FileNotFoundError as error:
        raise ModelFileError(f"there is no model file at {path}") from error
    except (SafetensorError, OSError, ValueError, TypeError) as error:
        raise ModelFileError(f"{path} is damaged or not a model file: {error}") from error
    if "driftquilt" not in header:
        raise ModelFileError(f"{path} is a safetensors file, but not one that driftquilt wrote")
    if header.get("format") != str(FORMAT):
        raise ModelFileError(
            f"{path} has format {header.get('format')}, this version reads {FORMAT}; "
            "install the driftquilt that wrote it, or a newer one"
        )
    if header.get("sha256") != _digest(tensors, header["driftquilt"]):
        raise ModelFileError(f"{path} is damaged: its checksum does not match; save it again")
    return tensors, json.loads(header["driftquilt"])


def _in_order(content: bytes) -> bytes:
    """The same file, whose header safetensors writes in another order each time."""
    end = 8 + int.from_bytes(content[:8], "little")
    header = json.loads(content[8:end])
    header["__metadata__"] = dict(sorted(header["__metadata__"].items()))
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)  # weights begin at a multiple of eight
    return len(text).to_bytes(8, "little") + text + content[end:]


def _refuse_others(path: Path) -> None:
    """What is plainly no model: a folder, or a file that begins like something else."""
    if path.is_dir():
        models = sorted(path.glob("*.safetensors"))
        hint = f"its model, {models[0]}" if models else "a model file; it holds none"
        raise ModelFileError(f"{path} is a folder; name {hint}")
    if not path.is_file():
        return
    with path.open("rb") as file:
        start = file.read(_START)
    if len(start) == _START and start[-1:] != b"{":  # eight bytes of length, then JSON
        raise ModelFileError(
            f"{path} is not a model file; name one that `driftquilt select` or `save` wrote, such "
            "as model.safetensors"
        )


def _digest(tensors: dict[str, NDArray[Any]], text: str) -> str:
    digest = hashlib.sha256(text.encode())
    for name in sorted(tensors):
        tensor = tensors[name]
        digest.update(f"{name} {tensor.dtype.str} {tensor.shape}".encode())
        digest.update(np.ascontiguousarray(tensor).tobytes())
    return digest.hexdigest()
