"""Write the stream of format 1 that `test_assets` opens: `python -m tests.stream.assets.make_v1`.

Run once, by the version that first wrote the format; a stream of an old format is never made
again. It was closed with a row that waits for its label, opened again and killed some rows later.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from driftquilt.stream import QuiltStream
from driftquilt.stream.settings import FORMAT
from tests.stream.streams import learn, rows, start

N_CLOSED, N_ROWS = 240, 250
DRIFTS = [100, 200]


def write(path: Path) -> None:
    """Past segments, models, events, a checkpoint and rows after it."""
    some, detector = rows(N_ROWS), {"kind": "known", "points": [row - 1 for row in DRIFTS]}
    with TemporaryDirectory() as folder:
        with start(folder, detector=detector, max_models=2) as stream:
            learn(stream, some[:N_CLOSED])
            stream.predict_one(some[0][0], key="order 7")
        with QuiltStream.open(folder, wait=True) as stream:
            learn(stream, some[N_CLOSED:])
            shutil.copytree(folder, path)
    (path / "lock").unlink()


if __name__ == "__main__":
    target = Path(__file__).parent / "v1"
    if target.exists() or FORMAT != 1:
        sys.exit(f"{target} is there already, or this version writes format {FORMAT}")
    write(target)
