"""A stream without an end runs in bounded memory."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.processes import ROOT

WORK = """
import os, sys
from pathlib import Path
from random import Random
from driftquilt.stream import QuiltStream
from tests.stream.streams import hasty, start

def resident():
    pages = Path("/proc/self/statm").read_text().split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")

draw = Random(0).random
stream = start(
    hasty(Path(sys.argv[1])), detector={"kind": "every_rows", "n_rows": 500}, n_wait=490,
    refresh=None, segment_rows=600, max_rows=1500, max_segments=3, max_models=2, max_waiting=50,
)
for part in range(6):
    for number in range(20):
        rows = [{"a": draw(), "b": draw(), "t": f"{int(9 * draw())}"} for _ in range(250)]
        stream.learn_many(rows, [int(row["a"] > row["b"]) for row in rows])
        for key, row in enumerate(rows[:60]):
            stream.predict_one(row, key=f"{part} {number} {key}")
    print(resident(), stream.n_rows, len(stream.store.segments), len(stream.models))
"""


def test_thirty_thousand_rows_take_no_more_memory_than_ten_thousand(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", WORK, str(tmp_path / "store")],
        cwd=ROOT, capture_output=True, text=True, check=True, timeout=250,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    lines = [list(map(int, line.split())) for line in done.stdout.splitlines()]
    sizes = [line[0] for line in lines]
    assert lines[-1][1:] == [30_000, 3, 2]
    assert max(sizes[3:]) - sizes[1] < 8 << 20, sizes
    folder = sum(path.stat().st_size for path in (tmp_path / "store").rglob("*"))
    assert folder < 8 << 20
