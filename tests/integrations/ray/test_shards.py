"""All rows of files are looked at where they are kept, and their means are those of one process."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from driftquilt.core import gradients
from driftquilt.core.gradients import mean_gradients
from driftquilt.core.segment import Segment
from driftquilt.data.arrow import read_in_place
from driftquilt.data.encoder import Encoder
from driftquilt.data.frame import read_frame
from driftquilt.integrations.ray import shards as module
from driftquilt.integrations.ray.shards import Reading, place_shards, scan_file
from driftquilt.learners.mlp import MLP
from driftquilt.quilt.executor import Threads
from tests.integrations.ray.histories import COLUMNS, write

CLASSES = np.array(["no", "yes"])


def reading(path: str) -> Reading:
    encoder = Encoder.fit(read_frame(pq.read_table(path).select(COLUMNS)))
    return Reading(encoder, "buys", CLASSES, np.array([0.3, 1.7]))


def read_whole(how: Reading, path: str) -> Segment:
    table = pq.read_table(path)
    X = how.encoder.transform(read_in_place(table.select(COLUMNS)))
    y = np.searchsorted(CLASSES, table["buys"].to_numpy())
    return Segment(path, X, y, how.class_weights[y].astype(np.float32))


@pytest.mark.parametrize("chunk_rows", [1, 700, 10**6])
def test_the_means_are_those_of_one_process_however_the_rows_are_dealt_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunk_rows: int
) -> None:
    monkeypatch.setattr(gradients, "SHARD_ROWS", 70)
    monkeypatch.setattr(module, "CHUNK_ROWS", chunk_rows)
    paths = write(tmp_path, n_rows=1_000, n_months=3)
    how = reading(paths[0])
    whole = [read_whole(how, path) for path in paths]
    model = MLP(8).start(whole[0].X, 2, seed=0)
    scorer = place_shards(Threads(2), how, paths, [scan_file("buys", path) for path in paths])
    assert scorer(model).tobytes() == mean_gradients(model, whole).tobytes()


def test_a_block_of_a_file_is_read_once_for_a_chunk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gradients, "SHARD_ROWS", 70)
    paths = write(tmp_path, n_rows=1_000, n_months=2)  # in four blocks, and one
    looks, how, n_reads = [scan_file("buys", path) for path in paths], reading(paths[0]), 0
    read = module._take

    def count(*given: object) -> object:
        nonlocal n_reads
        n_reads += 1
        return read(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(module, "_take", count)
    place_shards(Threads(1), how, paths, looks)
    assert n_reads == sum(len(of.blocks) for of in looks)


@pytest.mark.parametrize(
    ("n_rows", "width", "n_workers", "n_lumps"),
    [
        (5_000_000, 10, 2, 16),
        (10**9, 10, 2, 299),  # so that a lump fits into memory
        (10**9, 4, 128, 1024),
        (10**9, 2, 512, 1024),  # no more to hand out
        (10**9, 2, 2000, 2000),  # but one for each
        (10**6, 10, 100, 4),  # worth their way
    ],
)
def test_lumps_are_neither_too_large_nor_too_many(
    n_rows: int, width: int, n_workers: int, n_lumps: int
) -> None:
    assert -(-n_rows // module._chunk_size(n_rows, width, n_workers)) == pytest.approx(
        n_lumps, abs=1
    )
