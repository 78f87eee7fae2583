"""Write the store of format 1 that `test_assets` opens: `python -m tests.store.assets.make_v1`.

Run once, by the version that first wrote the format; a store of an old format is never made again.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pyarrow as pa

from driftquilt.store.disk import DiskStore
from driftquilt.store.manifest import FORMAT


def write(path: Path) -> None:
    """Every kind of thing a store can hold, the open rows packed and not."""
    with DiskStore(path) as store:
        store.append(pa.record_batch({"x": [0.5, 1.5], "label": [0, 1]}), {"position": 2})
        store.seal("may")
        store.append(pa.record_batch({"x": [9.0], "label": [9]}))
        store.seal("dropped")
        store.append(pa.record_batch({"x": [2.5], "city": ["Rome"]}), {"position": 4})
        store.seal(7)
        store.drop(2)
        # That version also had `store.mark_used({3: 0.25})`, and the segment still says so.
        store.put_model(b"not a net", {"accuracy": 0.9}, {"champion": 1})
        store.append(pa.record_batch({"x": [3.5], "label": [1]}), {"position": 5})
        store.append(pa.record_batch({"x": [4.5], "label": [0]}), {"position": 6})
        store.append(pa.record_batch({"x": [None], "city": ["Oslo"]}), {"position": 7})
    (path / "lock").unlink()


if __name__ == "__main__":
    target = Path(__file__).parent / "v1"
    if target.exists() or FORMAT != 1:
        sys.exit(f"{target} is there already, or this version writes format {FORMAT}")
    write(target)
