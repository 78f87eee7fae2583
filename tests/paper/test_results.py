"""The results file: nothing lost, nothing half written, nothing foreign mixed in."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from driftquilt import __version__
from driftquilt.errors import InputError
from driftquilt.paper.plan import Cell
from driftquilt.paper.run import Result, ResultFile, read_results
from tests.processes import PATIENCE

DATA = {"sine": "0f3a"}
RESULT = Result(
    "sine", "quilt", 0, 0, "0f3a", "honest", 0.9, 0.8, 1.0, 0.9, 0.6, 0.5,
    epochs=7, usage=0.3, selected=[1, 2],
)  # fmt: skip
RESULTS = [replace(RESULT, segment=segment) for segment in range(3)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file with three results."""
    path = tmp_path / "out" / "results.jsonl"
    with ResultFile(path, "honest", DATA) as file:
        file.add(RESULTS)
    return path


def test_what_is_added_is_read_back(path: Path) -> None:
    assert read_results(path) == RESULTS
    assert RESULTS[1].cell == Cell("sine", "quilt", 1, 0)


def test_no_file_means_no_results(tmp_path: Path) -> None:
    assert read_results(tmp_path / "results.jsonl") == []


def test_a_line_says_all_that_is_asked_for(path: Path) -> None:
    record = json.loads(path.read_text().splitlines()[0])
    assert record == asdict(RESULTS[0])
    assert record["version"] == __version__


def test_opening_again_goes_on_at_the_end(path: Path) -> None:
    more = replace(RESULT, segment=3)
    with ResultFile(path, "honest", DATA) as file:
        assert file.results == RESULTS
        file.add([more])
        assert file.results == [*RESULTS, more]
    assert read_results(path) == [*RESULTS, more]


@given(cut=st.integers(1, 200))
def test_a_torn_last_line_is_dropped_and_the_file_stays_valid(
    tmp_path_factory: pytest.TempPathFactory, cut: int
) -> None:
    path = tmp_path_factory.mktemp("torn") / "results.jsonl"
    whole = "".join(json.dumps(asdict(result)) + "\n" for result in RESULTS)
    path.write_text(whole[:-cut])
    assert read_results(path) == RESULTS[:2]
    with ResultFile(path, "honest", DATA) as file:
        assert file.results == RESULTS[:2]
        file.add(RESULTS[2:])
    assert path.read_text() == whole


def test_every_add_is_on_the_disk_when_it_returns(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[int] = []

    def sync(handle: int) -> None:
        synced.append(os.fstat(handle).st_size)

    monkeypatch.setattr(os, "fsync", sync)
    with ResultFile(path, "honest", DATA) as file:
        for segment in (3, 4):
            file.add([replace(RESULT, segment=segment)])
            assert synced[-1] == path.stat().st_size
            assert len(read_results(path)) == segment + 1
    assert len(synced) == 2


def test_a_process_that_is_killed_after_an_add_has_lost_nothing(tmp_path: Path) -> None:
    code = (
        "import os, signal; from pathlib import Path\n"
        "from driftquilt.paper.run import ResultFile\n"
        "from tests.paper.test_results import DATA, RESULTS\n"
        "ResultFile(Path('results.jsonl'), 'honest', DATA).add(RESULTS)\n"
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=env, check=False, timeout=PATIENCE
    )
    assert read_results(tmp_path / "results.jsonl") == RESULTS


def test_results_of_another_protocol_are_refused(path: Path) -> None:
    before = path.read_bytes()
    with pytest.raises(InputError, match=r"\('honest', .*\('paper', "):
        ResultFile(path, "paper", DATA)
    assert path.read_bytes() == before


def test_results_of_another_version_are_refused(path: Path) -> None:
    path.write_text(path.read_text().replace(__version__, "0.0.9"))
    with pytest.raises(InputError, match=r"'0\.0\.9'"):
        ResultFile(path, "honest", DATA)


@pytest.mark.parametrize("damage", [b"{}", b"not json", b"", b"[1, 2]", b"5", b"\xff\xfe", b"null"])
def test_a_damaged_line_is_named_by_its_number(path: Path, damage: bytes) -> None:
    lines = path.read_bytes().split(b"\n")
    lines[1] = damage
    path.write_bytes(b"\n".join(lines))
    with pytest.raises(InputError, match=r"results\.jsonl, line 2 is not a result"):
        ResultFile(path, "honest", DATA)


def test_two_runs_cannot_write_one_file(path: Path) -> None:
    with (
        ResultFile(path, "honest", DATA),
        pytest.raises(InputError, match="is being written by another run"),
    ):
        ResultFile(path, "honest", DATA)
    with ResultFile(path, "honest", DATA) as file:
        assert file.results == RESULTS


def test_a_file_that_was_refused_is_free_again(path: Path) -> None:
    with pytest.raises(InputError):
        ResultFile(path, "paper", DATA)
    with ResultFile(path, "honest", DATA) as file:
        assert len(file.results) == 3
