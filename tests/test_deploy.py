"""The files for deployment speak of commands, flags, settings and paths that are there."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import msgspec
import pytest

from driftquilt.cli import app
from driftquilt.client.operations import OPERATIONS
from driftquilt.server.settings import load_settings

ROOT = Path(__file__).parents[1]
UNIT = ROOT / "deploy" / "driftquilt.service"
DOCKERFILE = ROOT / "deploy" / "Dockerfile"
COMMANDS = {name: app.load_command(name) for name in app.COMMANDS}


def unit() -> dict[str, list[str]]:
    """The settings of the unit by name."""
    found: dict[str, list[str]] = {}
    for name, value in re.findall(r"^(\w+)=(.*)$", UNIT.read_text(), re.MULTILINE):
        found.setdefault(name, []).append(value)
    return found


def instructions() -> dict[str, list[str]]:
    """The instructions of the Dockerfile by name, on one line each."""
    text = re.sub(r"^#.*\n", "", DOCKERFILE.read_text(), flags=re.MULTILINE)
    text = re.sub(r"\\\n\s*", "", text)
    found: dict[str, list[str]] = {}
    for name, value in re.findall(r"^([A-Z]+) (.+)$", text, re.MULTILINE):
        found.setdefault(name, []).append(value)
    return found


def parse(arguments: list[str]) -> dict[str, Any]:
    """The values of a command's options; an unknown one is an error."""
    command = COMMANDS[arguments[0]]
    return dict(command.make_context(arguments[0], arguments[1:]).params)


@pytest.mark.parametrize("path", [UNIT, DOCKERFILE], ids=lambda path: path.name)
def test_the_commands_in_the_comments_are_there(path: Path) -> None:
    told = re.findall(r"driftquilt (token .+)$", path.read_text(), re.MULTILINE)
    assert told
    for command in told:
        assert parse(shlex.split(command))["scope"] == "admin"


@pytest.mark.parametrize("name", ["ExecStartPre", "ExecStart"])
def test_the_unit_starts_what_the_command_line_has(name: str) -> None:
    [line] = unit()[name]
    program, *arguments = shlex.split(line.replace("%S", "/var/lib"))
    assert program == "/opt/driftquilt/bin/driftquilt"
    options = parse(arguments)
    assert options["store"] == Path("/var/lib") / unit()["StateDirectory"][0]
    assert options["check"] is (name == "ExecStartPre")


def test_the_unit_lets_open_requests_end() -> None:
    assert unit()["KillSignal"] == ["SIGTERM"]
    assert float(unit()["TimeoutStopSec"][0]) >= load_settings().drain_seconds + 30


def test_the_unit_is_fenced_in_but_may_compile() -> None:
    wanted = {
        "DynamicUser": "yes", "NoNewPrivileges": "yes", "ProtectSystem": "strict",
        "ProtectHome": "yes", "Restart": "on-failure", "CapabilityBoundingSet": "",
    }  # fmt: skip
    assert {name: unit()[name] for name in wanted} == {k: [v] for k, v in wanted.items()}
    assert "MemoryDenyWriteExecute" not in unit()


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not here")
def test_systemd_understands_the_unit(tmp_path: Path) -> None:
    copy = tmp_path / UNIT.name
    copy.write_text(UNIT.read_text().replace("/opt/driftquilt/bin/driftquilt", "/bin/true"))
    ended = subprocess.run(
        ["systemd-analyze", "verify", str(copy)],  # noqa: S607
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (ended.returncode, ended.stderr) == (0, "")


def test_the_container_runs_a_command_that_is_there_as_nobody_special() -> None:
    told = instructions()
    program, *arguments = json.loads(told["ENTRYPOINT"][0]) + json.loads(told["CMD"][0])
    assert program == "driftquilt"
    assert parse(arguments)["check"] is False
    assert told["USER"] == ["driftquilt"]
    assert "useradd --system --uid 10001 --create-home driftquilt" in told["RUN"][0]


def test_the_settings_of_the_container_are_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    told = instructions()
    given = dict(part.split("=", 1) for part in told["ENV"][0].split())
    fields = {
        name.removeprefix("DRIFTQUILT_SERVE_").lower()
        for name in given
        if name.startswith("DRIFTQUILT_")
    }
    assert fields <= set(msgspec.structs.asdict(load_settings()))
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    settings = load_settings()
    assert told["VOLUME"] == [str(settings.store)]
    assert told["EXPOSE"] == [str(settings.port)]
    assert not settings.is_loopback


def test_the_health_of_the_container_is_asked_where_the_service_answers() -> None:
    [check] = instructions()["HEALTHCHECK"]
    program, flag, code = json.loads(check.partition("CMD ")[2])
    assert (program, flag) == ("python", "-c")
    compile(code, "healthcheck", "exec")
    port, path = re.findall(r"http://127\.0\.0\.1:(\d+)(/\w+)", code)[0]
    assert [port] == instructions()["EXPOSE"]
    assert ("GET", path) in OPERATIONS.values()


def test_what_the_container_installs_is_declared() -> None:
    extras = re.findall(r"\$1\[([\w,]+)\]", instructions()["RUN"][0])[0].split(",")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert set(extras) <= set(project["optional-dependencies"])
    python = instructions()["FROM"][0].removeprefix("python:").removesuffix("-slim")
    assert f">={python}" == project["requires-python"]


def test_the_container_is_built_from_what_it_copies_alone() -> None:
    copied = [line.split()[0] for line in instructions()["COPY"]]
    ignore = DOCKERFILE.with_name("Dockerfile.dockerignore").read_text().split()
    assert ignore == ["*", *(f"!{path}" for path in copied)]
