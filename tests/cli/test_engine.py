"""`--engine ray`: the same documents, wherever they are made."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from driftquilt.paper.run import read_results
from tests.integrations.ray.processes import MARK
from tests.processes import expect_gone, find_processes, wait_for
from tests.small_streams import without_times, write_shop, write_sine


def driftquilt(*words: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "driftquilt", *words],
        cwd=folder,
        env={**os.environ, "RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": uuid4().hex},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )


def test_select_decides_the_same(tmp_path: Path) -> None:
    data = write_shop(tmp_path / "shop.csv")
    told = list[Any]()
    for engine in ("local", "ray"):
        words = ("--label", "bought", "--segment-by", "month", "--out", engine, "--json")
        answer = driftquilt("select", str(data), *words, "--engine", engine, folder=tmp_path)
        assert answer.returncode == 0, answer.stderr
        told.append(json.loads(answer.stdout) | {"files": None, "origin": None})
    assert told[0] == told[1]


def test_ctrl_c_amid_tasks_ends_as_everywhere_and_leaves_nothing_running(tmp_path: Path) -> None:
    data, mark = write_sine(tmp_path / "sine.csv", 8, 4000), uuid4().hex
    words = ("select", data, "--label", "label", "--segment-by", "segment", "--engine", "ray")
    token = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": uuid4().hex, MARK: mark}
    with subprocess.Popen(
        [sys.executable, "-m", "driftquilt", *words], cwd=tmp_path, stderr=subprocess.PIPE,
        env={**os.environ, **token}, start_new_session=True,
    ) as child:  # fmt: skip
        wait_for(lambda: find_processes(mark, "ray::_run_task"))
        os.killpg(child.pid, signal.SIGINT)  # as a terminal does
        _, told = child.communicate(timeout=60)
    assert child.returncode == 130
    assert told.splitlines()[-1].endswith(b"driftquilt: stopped")
    assert not (tmp_path / "select-out").exists()
    for name in ("ray::_run_task", "raylet/raylet", "gcs_server"):
        expect_gone(mark, name)


def test_reproduce_gives_the_same_rows(tmp_path: Path) -> None:
    data = write_sine(tmp_path / "sine.csv")
    found = []
    for engine in ("local", "ray"):
        words = ("--datasets", data, "--methods", "quilt,hat", "--seeds", "2", "--out", engine)
        answer = driftquilt("reproduce", "accuracy", *words, "--engine", engine, folder=tmp_path)
        assert answer.returncode == 0, answer.stderr
        found.append(without_times(read_results(tmp_path / engine / "results.jsonl")))
    assert found[0] == found[1]
    assert len(found[0]) > 4


@pytest.mark.parametrize("command", ["select", "run"])
def test_an_address_needs_ray(command: str, tmp_path: Path) -> None:
    data = write_shop(tmp_path / "shop.csv")
    words = (command, str(data), "--label", "bought", "--address", "ray.example:6379")
    answer = driftquilt(*words, folder=tmp_path)
    assert answer.returncode == 1
    assert answer.stderr == (
        "driftquilt: --address belongs to --engine ray or auto, but the engine is local\n"
    )
