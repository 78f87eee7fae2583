"""Streams written by every format there ever was are opened and go on."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from driftquilt.stream import QuiltStream
from driftquilt.stream.events import ColumnVanished, DriftFound, ModelPromoted, SegmentSealed
from driftquilt.stream.settings import FORMAT
from tests.stream.assets.make_v1 import DRIFTS, N_ROWS
from tests.stream.streams import as_stored, hasty, learn, rows, stored_rows

ASSETS = Path(__file__).parent / "assets"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    shutil.copytree(ASSETS / "v1", tmp_path / "stream")
    return tmp_path / "stream"


def test_every_format_has_an_asset() -> None:
    assert sorted(path.name for path in ASSETS.glob("v*")) == [f"v{n + 1}" for n in range(FORMAT)]


def test_a_stream_of_format_1_is_as_it_was_left(path: Path) -> None:
    with QuiltStream.open(hasty(path)) as stream:
        assert (stream.n_rows, stream.n_waiting) == (N_ROWS, 1)
        assert stored_rows(stream.store) == as_stored(rows(N_ROWS))
        assert [e.row for e in stream.events if isinstance(e, DriftFound)] == DRIFTS
        assert stream.model == stream.models[-1]
        assert stream.classifier().classes_.tolist() == ["no", "yes"]
        assert stream.predict_one(rows(1)[0][0]) in stream.classes


def test_a_stream_of_format_1_goes_on_and_does_not_wait(path: Path) -> None:
    some = rows(N_ROWS + 60)
    with QuiltStream.open(hasty(path)) as stream:
        assert not stream._engine.setup.wait
        model = stream.model
        stream.learn_one(y=some[0][1], key="order 7")
        learn(stream, some[N_ROWS:])
        stream.finish_training()
        told = [event for event in stream.events if event.row > N_ROWS]
        assert not any(isinstance(event, ColumnVanished | SegmentSealed) for event in told)
        assert sum(isinstance(event, ModelPromoted) for event in told) == 1
        assert model is not None
        assert stream.model == model + 1
    with QuiltStream.open(hasty(path)) as stream:
        assert (stream.n_rows, stream.n_waiting) == (N_ROWS + 61, 0)
