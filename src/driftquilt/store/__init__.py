"""What survives a crash: rows, sealed segments, pending rows, models and state.

`Store` is the contract, `DiskStore` a store in a folder, `MemoryStore` one without a disk, and
`export` writes all rows of a store to a Parquet file.
"""

from __future__ import annotations

from driftquilt.store.base import SealedSegment, State, Store, StoredModel
from driftquilt.store.disk import DiskStore
from driftquilt.store.export import export
from driftquilt.store.memory import MemoryStore
from driftquilt.store.pending import PendingChange, PendingHead, PendingRequest, PendingRows

__all__ = [
    "DiskStore",
    "MemoryStore",
    "PendingChange",
    "PendingHead",
    "PendingRequest",
    "PendingRows",
    "SealedSegment",
    "State",
    "Store",
    "StoredModel",
    "export",
]
