"""docs/brokers.md: what it shows is run against a Redis of its own."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from driftquilt.brokers.address import read_address
from tests.brokers.brokers import running
from tests.processes import ROOT
from tests.test_readme import python_blocks, run

PAGE = ROOT / "docs" / "brokers.md"


def test_the_page_shows_what_its_code_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": "__main__"}
    with running("redis", tmp_path / "broker") as broker:
        for block in python_blocks(PAGE.read_text(encoding="utf-8")):
            run(block._replace(text=block.text.replace("6379", str(broker.port))), PAGE, names)
        names["broker"].close()


@pytest.mark.parametrize("scheme", ["kafka", "redis", "nats"])
def test_the_urls_of_the_page_can_be_read(scheme: str) -> None:
    shown = re.findall(rf"`({scheme}://\S+?)`", PAGE.read_text(encoding="utf-8"))
    assert [read_address(url).scheme for url in shown] == [scheme] * len(shown) != []
