"""However long a file is, reading it and passing over it takes bounded memory."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, ipc

READ = """
import resource, sys
import pyarrow as pa, pyarrow.csv, pyarrow.json, pyarrow.parquet
from driftquilt.data.files import open_data

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10

start = peak()
with open_data([sys.argv[1]]) as data:
    print(data.table.num_rows, peak() - start)
"""

PASSES = """
import re, sys
from pathlib import Path
from driftquilt.data import arrow
arrow.LIMIT = int(sys.argv[2])
from driftquilt.cli.app import app
from driftquilt.decision.streaming import labelled_rows
from driftquilt.data.files import open_data
from driftquilt.data.arrow import MappedFile

data, release_pages, seen = sys.argv[1], MappedFile.release_pages, []

def resident_bytes():
    of_file = r"rows.arrow\\nSize.*\\n(?:.*\\n){0,3}Rss: +(\\d+)"
    return sum(int(kb) << 10 for kb in re.findall(of_file, Path("/proc/self/smaps").read_text()))

def watched(mapping):
    seen.append(resident_bytes())
    release_pages(mapping)

def run(*asked):
    seen.clear()
    app([*asked], standalone_mode=False)
    return len(seen), max(seen)

MappedFile.release_pages = watched
found = [
    *run("select", data, "--label", "y", "--segment-by", "month", "--out", "out"),
    *run("predict", "out/model.safetensors", data, "--out", "answers.parquet"),
]
seen.clear()
with open_data([data]) as opened:
    rows = sum(1 for _ in labelled_rows(opened.table, "y"))
print(*found, len(seen), max(seen))
"""


def in_a_process(code: str, *given: object, cwd: Path) -> list[int]:
    """The numbers that it prints last."""
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, given)], cwd=cwd, capture_output=True, text=True,
        check=False, timeout=250,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return list(map(int, done.stdout.splitlines()[-1].split()))


@pytest.mark.slow
def test_a_csv_of_300_megabytes_is_read_in_less_memory_than_it_is_long(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    rows = pa.record_batch({f"x{j}": rng.normal(size=150_000) for j in range(10)})
    path = tmp_path / "rows.csv"
    with csv.CSVWriter(path, rows.schema) as writer:
        while path.stat().st_size < 300 << 20:
            writer.write_batch(rows)
    n_rows, opened = in_a_process(READ, path, cwd=tmp_path)
    assert n_rows % 150_000 == 0
    assert opened < 300 << 20, opened


@pytest.mark.costly
def test_passes_over_a_mapped_file_keep_a_bounded_part_resident(tmp_path: Path) -> None:
    rng, months, n_rows = np.random.default_rng(0), 6, 80_000
    path, most = tmp_path / "rows.arrow", 4 << 20
    batches = []
    for month in range(months):
        x = rng.normal(size=(12, n_rows))
        columns = {f"x{j}": values for j, values in enumerate(x)}
        text = rng.choice(["here", "there", "everywhere"], n_rows)
        names = {"month": [f"month {month}"] * n_rows, "text": text, "y": x[0] > x[1]}
        batches.append(pa.record_batch(columns | names))
    with ipc.new_file(path, batches[0].schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
    n_bytes = path.stat().st_size
    assert n_bytes > 12 * most
    told = in_a_process(PASSES, path, most, cwd=tmp_path)
    for n_times, resident in zip(told[::2], told[1::2], strict=True):
        assert n_times > 5
        assert most / 4 < resident < n_bytes / 3, told  # a block of all columns is twice `most`
