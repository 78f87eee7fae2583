"""Where the torch procedure is not to be had, one line says why and what to do."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from driftquilt.bench.run import Scope, plan_steps
from driftquilt.bench.yardstick import load_yardstick
from driftquilt.errors import InputError, MissingExtraError

ROOT = Path(__file__).parents[2]


def test_a_folder_without_it_is_named_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"torch_quilt\.py in .*; run driftquilt bench in a"):
        load_yardstick(tmp_path)


def test_without_torch_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec

    def find_but_torch(name: str, *rest: Any) -> Any:
        return None if name == "torch" else find(name, *rest)

    monkeypatch.setattr(importlib.util, "find_spec", find_but_torch)
    with pytest.raises(MissingExtraError, match=r"pip install 'driftquilt\[bench\]'"):
        load_yardstick(ROOT)


def test_the_drifts_are_then_measured_without_it(tmp_path: Path) -> None:
    steps, notes = plan_steps(Scope(["drift"], quick=True, folder=tmp_path))
    assert [step.label.rpartition(", ")[2] for step in steps] == ["one fold", "default", "paper"]
    (note,) = notes
    assert note.startswith("the published procedure in torch is left out: there is no")
    assert "\n" not in note
