"""The published streams, where DRIFTQUILT_DATA says they lie."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from driftquilt.paper.datasets.stream import Stream


def load_published(name: str) -> Stream:
    """Reads a stream; skips the test if no folder is set, fails if the file is not there."""
    folder = os.environ.get("DRIFTQUILT_DATA")
    if not folder:
        pytest.skip("needs the published streams: set DRIFTQUILT_DATA to the folder they lie in")
    table = pq.read_table(Path(folder) / f"{name}.parquet")
    columns = [table[column].to_numpy() for column in table.column_names]
    share = 0.2 if name in ("spam", "usenet1", "usenet2") else 0.1
    features = np.stack(columns[:-2], axis=1).astype(np.float64)
    return Stream(name, features, columns[-2], columns[-1], "", current_share=share)
