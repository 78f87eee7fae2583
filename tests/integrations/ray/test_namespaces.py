"""Two hosts, each a network namespace of its own: a cluster across a network loses one of them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from driftquilt.integrations.ray.files import fit_files
from tests.integrations.ray.histories import quilt, write
from tests.integrations.ray.processes import FAST_HEALTH_CHECKS

ROOT = Path(__file__).parents[3]
HEAD, NODE = ("198.18.0.1", "198.18.0.2")  # a range for tests, inside the namespaces alone
DRIVER = """
import json, os, signal, subprocess, sys
from driftquilt.integrations.ray import files, shards
from driftquilt.integrations.ray.executor import Ray
from tests.integrations.ray.histories import quilt
shards.CHUNK_ROWS = 20_000
looks, score = 0, shards.Scorer.__call__

def lose_the_other_host(scorer, model):
    global looks
    looks += 1
    if looks == 3:
        for pid in subprocess.check_output(["ip", "netns", "pids", sys.argv[1]]).split():
            os.kill(int(pid), signal.SIGKILL)
    return score(scorer, model)

shards.Scorer.__call__ = lose_the_other_host
n_before = Ray().n_workers
clf = quilt(engine=Ray(), score_rows=None, score_every=1, n_folds=1)
files.fit_files(clf, sys.argv[2:], "buys")
print(json.dumps({"workers": [n_before, Ray().n_workers], "selection": clf.selection_.to_json()}))
"""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        os.geteuid() != 0 or not shutil.which("ip"), reason="makes network namespaces"
    ),
]


def call(*words: str, **environment: str) -> str:
    done = subprocess.run(
        words,
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
        cwd=ROOT,
        env={**os.environ, **environment},
    )
    assert done.returncode == 0, done.stderr + done.stdout
    return done.stdout


@pytest.fixture
def hosts() -> Iterator[tuple[str, str]]:
    """Two namespaces with a wire between them."""
    mark = uuid4().hex[:6]
    names = (f"dq-{mark}-a", f"dq-{mark}-b")
    for name in names:
        call("ip", "netns", "add", name)
    call("ip", "link", "add", f"dq{mark}a", "type", "veth", "peer", "name", f"dq{mark}b")
    for name, wire, address in zip(names, (f"dq{mark}a", f"dq{mark}b"), (HEAD, NODE), strict=True):
        call("ip", "link", "set", wire, "netns", name)
        inside = ("ip", "-n", name)
        call(*inside, "addr", "add", f"{address}/24", "dev", wire)
        call(*inside, "link", "set", wire, "up")
        call(*inside, "link", "set", "lo", "up")
    yield names
    for name in names:
        for pid in call("ip", "netns", "pids", name).split():
            subprocess.run(["kill", "-9", pid], check=False)  # noqa: S607
        call("ip", "netns", "del", name)


def test_a_host_that_is_gone_changes_nothing(hosts: tuple[str, str], tmp_path: Path) -> None:
    paths = write(tmp_path, n_rows=60_000)
    settings = {"score_rows": None, "score_every": 1, "n_folds": 1}
    expected = fit_files(quilt(**settings), paths, "buys").selection_.to_json()
    token = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": uuid4().hex, "RAY_ADDRESS": ""}
    head, node = (("ip", "netns", "exec", name) for name in hosts)
    ray = str(Path(sys.executable).with_name("ray"))
    usual = ("--num-cpus=1", "--object-store-memory=100000000", "--disable-usage-stats")
    call(
        *head, ray, "start", "--head", f"--node-ip-address={HEAD}", "--port=6399",
        "--include-dashboard=false", f"--system-config={json.dumps(FAST_HEALTH_CHECKS)}",
        *usual, **token,
    )  # fmt: skip
    call(
        *node, ray, "start", f"--address={HEAD}:6399", f"--node-ip-address={NODE}", *usual, **token
    )
    printed = call(
        *head, sys.executable, "-c", DRIVER, hosts[1], *paths,
        **{**token, "RAY_ADDRESS": f"{HEAD}:6399", "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    (line,) = (line for line in printed.splitlines() if line.startswith("{"))
    told = json.loads(line)
    assert told["workers"] == [2, 1]
    assert told["selection"] == json.loads(json.dumps(expected))
