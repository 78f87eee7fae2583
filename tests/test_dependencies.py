"""The page of dependencies names what is declared, in the versions that are pinned."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
NOT_SHIPPED = {"dev", "docs", "bench"}  # for working on it


def declared() -> set[tuple[str, str]]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = {"always": project["dependencies"], **project["optional-dependencies"]}
    return {
        (re.split(r"[^\w.-]", requirement)[0], extra)
        for extra, requirements in extras.items()
        if extra not in NOT_SHIPPED
        for requirement in requirements
    }


def pinned() -> dict[str, str]:
    """Versions by name; what is pinned for MLflow counts where nothing else pins it."""
    found: dict[str, str] = {}
    for file in ("constraints-mlflow.txt", "constraints.txt"):
        lines = (ROOT / file).read_text(encoding="utf-8").splitlines()
        pairs = [line.partition("#")[0].strip().split("==") for line in lines if "==" in line]
        found |= {name.lower().replace("_", "-"): version for name, version in pairs}
    return found


def listed() -> list[list[str]]:
    page = (ROOT / "docs" / "dependencies.md").read_text(encoding="utf-8").partition("\n## ")[0]
    lines = [line for line in page.splitlines() if line.startswith("| ")][2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_page_lists_every_dependency_and_no_other() -> None:
    assert {(name, extra) for name, extra, *_ in listed()} == declared()


def test_page_names_the_pinned_versions() -> None:
    pins = pinned()
    for name, _, version, _ in listed():
        assert version == pins[name.lower()]
