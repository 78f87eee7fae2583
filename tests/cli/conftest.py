"""Commands as a user types them, in this process."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jsonschema
import pytest

from driftquilt.cli.app import main

SCHEMAS = Path(__file__).parents[2] / "docs" / "schemas"


class Outcome(NamedTuple):
    """What a command left on the screen."""

    code: int
    stdout: str
    stderr: str

    def document(self) -> dict[str, Any]:
        """The one JSON document on standard output, held to the published schema."""
        assert self.code == 0, self.stderr
        (line,) = self.stdout.splitlines()
        told: dict[str, Any] = json.loads(line)
        schema = json.loads((SCHEMAS / f"{told['command']}.json").read_text())
        jsonschema.validate(told, schema)
        return told


Drive = Callable[..., Outcome]


@pytest.fixture
def drive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Drive:
    """Runs a command in an empty folder, on a screen of 80 columns."""
    monkeypatch.chdir(tmp_path)
    for name, value in {"COLUMNS": "80", "NO_COLOR": "1", "TERM": "dumb"}.items():
        monkeypatch.setenv(name, value)

    def command(*arguments: str, stdin: bytes = b"") -> Outcome:
        monkeypatch.setattr(sys, "argv", ["driftquilt", *arguments])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = capfd.readouterr()
        return Outcome(int(ended.value.code or 0), out, err)

    return command
