"""Write the store of format 2 that `test_assets` opens: `python -m tests.store.assets.make_v2`.

Format 2 has pending rows. Run once, by the version that first wrote the format.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pyarrow as pa

from driftquilt.store import DiskStore, PendingChange, PendingRequest
from driftquilt.store.manifest import FORMAT
from tests.store.assets.make_v1 import write as write_v1


def write(path: Path) -> None:
    """Everything that format 1 can hold, and pending rows: with a key, and with numbers."""
    write_v1(path)
    keyed = PendingRequest(1, 1, 0.0, "row", "order 7", b'{"x": 0.5}')
    asked = PendingRequest(1 << 60, 3, 1.5, "application/json", None, b"[[1],[2],[3]]")
    with DiskStore(path) as store:
        store.hold(PendingChange(held=[keyed, asked]))
        labelled = PendingChange(labelled=[(1 << 60) + 1])
        store.append(pa.record_batch({"x": [2.0], "label": [1]}), {"position": 8}, labelled)
    (path / "lock").unlink()


if __name__ == "__main__":
    target = Path(__file__).parent / "v2"
    if target.exists() or FORMAT != 2:
        sys.exit(f"{target} is there already, or this version writes format {FORMAT}")
    write(target)
