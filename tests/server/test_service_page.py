"""docs/service.md: what it shows is run against a service, what it lists is there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import msgspec
import pytest

from driftquilt.cli.app import load_command
from driftquilt.client.operations import OPERATIONS, Service, Stream
from driftquilt.server.problems import KINDS
from driftquilt.server.settings import ServeSettings
from tests.server.running import Running
from tests.test_docs import DOCS, Command, agrees, commands, section
from tests.test_readme import blocks, run

PAGE = DOCS / "service.md"
TEXT = PAGE.read_text(encoding="utf-8")
SERVE = load_command("serve")
SETTINGS = [field.name for field in msgspec.structs.fields(ServeSettings)]


class Shell:
    """Runs the commands of the page in one folder; a service is started and left running."""

    def __init__(self, folder: Path, service: Running, stack: ExitStack) -> None:
        self._folder, self._service, self._stack = folder, service, stack
        bin_folder = folder / "bin"
        bin_folder.mkdir()
        main = "-c 'from driftquilt.cli.app import main; main()'"
        for name, code in (("python", ""), ("driftquilt", main)):
            script = bin_folder / name
            script.write_text(f'#!/bin/sh\nexec {sys.executable} {code} "$@"\n')
            script.chmod(0o755)
        self._env = {**os.environ, "PATH": f"{bin_folder}:{os.environ['PATH']}", "NO_COLOR": "1"}

    def type(self, typed: str) -> str:
        if typed.startswith("pip install"):
            return ""  # the tests run where it is installed
        if typed == "driftquilt serve --store state &":
            self._stack.enter_context(self._service)
            return ""
        ended = subprocess.run(
            ["/bin/bash", "-c", typed], cwd=self._folder, env=self._env, capture_output=True,
            text=True, check=False,
        )  # fmt: skip
        assert ended.returncode == 0, ended.stderr
        return ended.stdout


def typed(text: str, first: int) -> Iterator[tuple[str, Command]]:
    """The commands of a block as they were typed."""
    lines = [line.removeprefix("$ ") for line in text.splitlines() if line.startswith("$ ")]
    return zip(lines, commands(text, first), strict=True)


def test_the_page_shows_what_its_commands_and_code_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    service, names = Running(tmp_path), {"__name__": "__main__"}
    text = TEXT.replace("127.0.0.1:8321", f"127.0.0.1:{service.port}")
    with ExitStack() as stack:
        shell = Shell(tmp_path, service, stack)
        for block in blocks(text):
            if block.info == ["python"]:
                run(block, PAGE, names)
                continue
            for line, command in typed(block.text, block.line):
                printed = shell.type(line)
                assert agrees(command.shown, printed), f"{PAGE}:{command.line} printed\n{printed}"
        names["client"].close()  # type: ignore[attr-defined]


def test_the_table_of_settings_has_all_of_them_in_the_words_of_the_help() -> None:
    told = re.findall(r"^\| `(\w+)` \| (.+) \|$", section("service.md", "Settings"), re.MULTILINE)
    helps = {option.name: option.help for option in SERVE.params}
    assert [name for name, _ in told] == SETTINGS
    assert [words for _, words in told] == [helps[name] for name in SETTINGS]


def test_the_table_of_operations_has_all_of_them() -> None:
    text = section("service.md", "Operations")
    told = re.findall(r"^\| `([A-Z]+) (\S+)` \| (\w+) \| (.+?) \|", text, re.MULTILINE)
    assert {(method, path) for method, path, _, _ in told} == set(OPERATIONS.values())
    methods = {name for *_, calls in told for name in re.findall(r"`(\w+)\(", calls)}
    public: set[str] = {
        name for kind in (Service, Stream) for name in vars(kind) if not name.startswith("_")
    }
    assert methods == public - {"stream"}


def test_the_errors_that_are_named_are_there() -> None:
    told = re.findall(r"(\d{3}) `([a-z-]+)`", section("service.md", "Limits"))
    assert len(told) == 7
    assert [(status, kind) for status, kind in told if KINDS[kind][0] != int(status)] == []
    limits = re.findall(r"^\| `(\w+)`", section("service.md", "Limits"), re.MULTILINE)
    assert [name for name in limits if name not in SETTINGS] == []
    kinds: list[Any] = re.findall(r"urn:driftquilt:([a-z-]+)", TEXT)
    assert [kind for kind in kinds if kind not in KINDS] == []
