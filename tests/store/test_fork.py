"""A forked process neither uses nor holds nor harms the store of the one it came from."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from driftquilt.store.disk import DiskStore
from tests.processes import PATIENCE

START = """
import gc, os, sys
import pyarrow as pa
from driftquilt.errors import StoreError
from driftquilt.store.disk import DiskStore

store, batch = DiskStore(sys.argv[1]), pa.record_batch({"x": [1]})
store.append(batch)
"""

USES_IT = """
ready, done = os.pipe(), os.pipe()
if not os.fork():
    try:
        store.append(batch)
    except StoreError as error:
        os.write(ready[1], str(error).encode())
    os.read(done[0], 1)
    os._exit(0)
print(os.read(ready[0], 1000).decode())
store.close()
with DiskStore(sys.argv[1]) as again:  # while the forked one still lives
    print(again.n_appended)
os.write(done[1], b".")
os.wait()
"""

FORGETS_IT = """
if not os.fork():
    {ending}
    del store
    gc.collect()
    sys.exit(0)
os.wait()
store.append(batch)
print(store.n_durable, flush=True)
os._exit(0)  # a crash: nothing is closed
"""


def run(code: str, path: Path) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", START + code, str(path)],
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE,
    )
    assert done.stderr == ""
    return done.stdout.splitlines()


def test_it_is_told_that_it_cannot_use_the_store_and_does_not_keep_it_locked(
    tmp_path: Path,
) -> None:
    said, n_rows = run(USES_IT, tmp_path / "store")
    assert "was opened by process" in said
    assert "forked" in said
    assert n_rows == "1"


def test_that_it_drops_or_closes_its_copy_loses_nothing(tmp_path: Path) -> None:
    for ending in ("pass", "store.close()", "store.__exit__(None, None, None)"):
        path = tmp_path / str(len(ending))
        assert run(FORGETS_IT.format(ending=ending), path) == ["2"]
        with DiskStore(path) as store:
            assert store.n_appended == 2
