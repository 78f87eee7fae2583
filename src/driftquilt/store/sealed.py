"""Files of sealed segments and of models are read back as they were written, or not at all.

A file is as long as the manifest says and has the SHA-256 that it says, else it is damaged. A
segment's file is mapped, so its table takes no memory of its own until its columns are looked
at, and no value is copied.

>>> import tempfile
>>> path = Path(tempfile.mkdtemp()) / "000001.safetensors"
>>> n_bytes = path.write_bytes(b"weights")
>>> model = StoredModel(1, n_bytes, {}, hashlib.sha256(b"weights").hexdigest())
>>> read_model_file(path, model)
b'weights'
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pyarrow as pa

from driftquilt.errors import StoreError
from driftquilt.store.base import SealedSegment, StoredModel
from driftquilt.store.files import reading

__all__ = ["read_model_file", "read_segment_file"]


def read_segment_file(path: Path, segment: SealedSegment, *, check: bool) -> pa.Table:
    """The mapped rows; `check` looks at the checksum too, which reads the whole file once."""
    what = f"segment {segment.number} ({segment.name!r}, {segment.n_rows} rows)"
    _expect_length(path, segment.n_bytes, what)
    data = pa.memory_map(str(path)).read_buffer()
    if check:
        _expect_sha256(path, data, segment.sha256, what)
    with reading(path):
        return pa.ipc.open_file(data).read_all()


def read_model_file(path: Path, model: StoredModel) -> bytes:
    """The bytes, with the checksum they were written with."""
    what = f"model {model.number}"
    _expect_length(path, model.n_bytes, what)
    data = path.read_bytes()
    _expect_sha256(path, data, model.sha256, what)
    return data


def _expect_length(path: Path, n_bytes: int, what: str) -> None:
    if not path.is_file():
        raise StoreError(f"{path} is missing, the file of {what}; {_advice(what)}")
    found = path.stat().st_size
    if found != n_bytes:
        raise StoreError(
            f"{path}, the file of {what}, is damaged: it has {found} bytes and was written with "
            f"{n_bytes}; {_advice(what)}"
        )


def _expect_sha256(path: Path, data: Any, sha256: str, what: str) -> None:
    found = hashlib.sha256(data).hexdigest()
    if found != sha256:
        raise StoreError(
            f"{path}, the file of {what}, is damaged: its SHA-256 begins with {found[:12]} and "
            f"was {sha256[:12]} when written; {_advice(what)}"
        )


def _advice(what: str) -> str:
    return f"restore it from a copy, or drop {what.partition(' (')[0]}"
