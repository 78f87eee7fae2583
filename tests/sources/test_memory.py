"""However long a file is, reading it and passing over it takes bounded memory."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, ipc

WORK = """
import resource, sys
import pyarrow as pa, pyarrow.compute as pc, pyarrow.csv, pyarrow.json, pyarrow.parquet
from driftquilt.sources.files import open_data

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10

start = peak()
with open_data([sys.argv[1]]) as data:
    opened = peak()
    for _ in range(3):
        for column in data.table.columns:
            for chunk in column.chunks:
                pc.sum(chunk)
    print(data.table.num_rows, data.table.nbytes, opened - start, peak() - start)
"""


def work(path: Path) -> list[int]:
    """Rows, bytes of the table, and by how much the memory's peak rose: opened, passed over."""
    done = subprocess.run(
        [sys.executable, "-c", WORK, str(path)],
        capture_output=True, text=True, check=True, timeout=250, env={**os.environ},
    )  # fmt: skip
    return list(map(int, done.stdout.split()))


def batch(n_rows: int) -> pa.RecordBatch:
    rng = np.random.default_rng(n_rows)
    return pa.record_batch({f"x{j}": rng.normal(size=n_rows) for j in range(10)})


@pytest.mark.slow
def test_a_csv_of_300_megabytes_is_read_in_less_memory_than_it_is_long(tmp_path: Path) -> None:
    path, rows = tmp_path / "rows.csv", batch(150_000)
    with csv.CSVWriter(path, rows.schema) as writer:
        while path.stat().st_size < 300 << 20:
            writer.write_batch(rows)
    n_rows, _, opened, passed = work(path)
    assert n_rows % 150_000 == 0
    assert opened < 300 << 20, opened
    assert passed < 400 << 20, passed


@pytest.mark.slow
def test_passes_over_a_mapped_file_keep_a_bounded_part_resident(tmp_path: Path) -> None:
    path, rows = tmp_path / "rows.arrow", batch(200_000)
    with ipc.new_file(path, rows.schema) as writer:
        for _ in range(100):
            writer.write_batch(rows)
    _, n_bytes, opened, passed = work(path)
    assert n_bytes > 1500 << 20
    assert opened < 20 << 20, opened
    assert passed < 800 << 20, passed
