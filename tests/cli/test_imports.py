"""A command imports what it needs, and no other part of the package."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np

CODE = """
import sys
from driftquilt.cli.app import app
app(sys.argv[1:], standalone_mode=False)
sys.stderr.write(" ".join(name for name in sys.modules if name.startswith("driftquilt.")))
"""


def test_select_imports_neither_server_nor_stream_nor_paper(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    rows = [f"{x},{y},{k // 30},{x > y}" for k, (x, y) in enumerate(rng.random((90, 2)))]
    (tmp_path / "rows.csv").write_text("\n".join(["x,y,month,label", *rows]))
    asked = ["rows.csv", "--label", "label", "--segment-by", "month", "--out", "out"]
    done = subprocess.run(
        [sys.executable, "-c", CODE, "select", *asked],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    packages = {name.split(".")[1] for name in done.stderr.splitlines()[-1].split()}
    assert {"data", "decision", "quilt", "report"} <= packages
    assert not {"server", "client", "paper", "brokers", "stream", "store"} & packages
