"""The package works where the modules and calls of POSIX are missing, as on Windows."""

from __future__ import annotations

import subprocess
import sys

MISSING = """
import mmap, os, signal, sys
for name in ("fcntl", "grp", "pty", "pwd", "resource", "syslog", "termios"):
    sys.modules[name] = None
for name in ("fork", "geteuid", "getuid", "pread", "pwrite", "register_at_fork", "O_CLOEXEC",
             "O_DIRECTORY", "sched_getaffinity"):
    delattr(os, name)
for name in [name for name in dir(mmap) if name.startswith(("MADV_", "MAP_", "PROT_"))]:
    delattr(mmap, name)
for name in ("pthread_sigmask", "SIGHUP", "SIGKILL"):
    delattr(signal, name)
"""
FIT = """
import tempfile
from pathlib import Path
import numpy as np, pyarrow as pa
import driftquilt
for name in set(driftquilt.__all__) - {"TorchLearner"}:  # torch looks at the platform itself
    getattr(driftquilt, name)
from driftquilt import QuiltClassifier, QuiltStream
X = np.random.default_rng(0).normal(size=(200, 2))
y, segments = X[:, 0] > 0, np.repeat(["may", "june"], 100)
clf = QuiltClassifier(hidden_units=8, max_epochs=3, random_state=0).fit(X, y, segments=segments)
path = Path(tempfile.mkdtemp()) / "model.safetensors"
clf.save(path)
assert (QuiltClassifier.load(path).predict(X) == clf.predict(X)).all()
table = pa.table({"a": X[:, 0], "b": X[:, 1]})
clf.fit(table, y, segments=segments).predict(table)
stream = QuiltStream(clf)
stream.learn_one({"a": 1.0}, True)
stream.close()
print("done")
"""


def test_importing_and_fitting_do_not_need_posix() -> None:
    done = subprocess.run(
        [sys.executable, "-c", MISSING + FIT], capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.returncode) == ("done\n", 0), done.stderr
