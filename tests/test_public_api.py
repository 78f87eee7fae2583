"""What users may import is a list, and importing it costs next to nothing."""

from __future__ import annotations

import importlib
import pkgutil
import subprocess
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest

import driftquilt
from tests.processes import PATIENCE

ROOT = Path(__file__).parents[1]
MODULES = [module.name for module in pkgutil.walk_packages(driftquilt.__path__, "driftquilt.")]
HEAVY = ["numba", "torch", "optuna", "sklearn", "scipy", "river", "pyarrow", "pandas"]


def test_the_list_of_names_is_sorted() -> None:
    assert driftquilt.__all__ == sorted(driftquilt.__all__)


@pytest.mark.parametrize("name", driftquilt.__all__)
def test_every_name_listed_is_there(name: str) -> None:
    assert getattr(driftquilt, name) is not None


def test_nothing_else_is_shown() -> None:
    assert dir(driftquilt) == driftquilt.__all__


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'driftquilt' has no attribute 'Patchwork'"):
        _ = driftquilt.Patchwork


def test_importing_it_loads_nothing_heavy() -> None:
    code = f"import sys, driftquilt; print([m for m in {HEAVY} if m in sys.modules])"
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=PATIENCE
    )
    assert run.stdout.strip() == "[]"


@pytest.mark.parametrize("name", MODULES)
def test_every_name_that_a_module_lists_is_there(name: str) -> None:
    module = importlib.import_module(name)
    listed = getattr(module, "__all__", [])
    assert len(set(listed)) == len(listed)
    assert all(hasattr(module, exported) for exported in listed)


def test_there_is_one_version() -> None:
    written = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert driftquilt.__version__ == written == version("driftquilt")
