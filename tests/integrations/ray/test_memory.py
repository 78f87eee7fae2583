"""A history twice as large as the memory given to the cluster is processed all the same."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from driftquilt.integrations.ray.files import fit_files
from tests.integrations.ray.histories import quilt, write

STORE = 80_000_000  # bytes, the least that Ray takes
CODE = """
import json, sys
import ray
ray.init(address="local", num_cpus=2, object_store_memory={store}, include_dashboard=False,
         log_to_driver=False)
from driftquilt.integrations.ray.files import fit_files
from driftquilt.integrations.ray.executor import Ray
from tests.integrations.ray.histories import quilt
clf = fit_files(quilt(engine=Ray(), score_rows=None, n_folds=1), sys.argv[1:], "buys")
print(json.dumps(clf.selection_.to_json()))
"""


def test_what_does_not_fit_into_memory_lies_on_disk_meanwhile(tmp_path: Path) -> None:
    paths = write(tmp_path, n_rows=1_150_000, n_months=5)
    n_bytes = 4_600_000 * (6 * 4 + 8 + 4)  # six columns once encoded, label and weight
    assert n_bytes > 2 * STORE
    expected = fit_files(quilt(score_rows=None, n_folds=1), paths, "buys")
    answer = subprocess.run(
        [sys.executable, "-c", CODE.format(store=STORE), *paths],
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
        env=os.environ,
    )
    assert answer.returncode == 0, answer.stderr
    assert json.loads(answer.stdout) == json.loads(json.dumps(expected.selection_.to_json()))
