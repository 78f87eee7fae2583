"""What is shown of a running stream, on a terminal and off it."""

from __future__ import annotations

from pathlib import Path

from driftquilt.cli.live import Pace, tell_plainly
from driftquilt.decision.replay import Replay
from driftquilt.stream import QuiltStream
from tests.decision.tables import sine_table
from tests.stream.streams import start


def test_a_line_is_due_ten_seconds_after_the_last() -> None:
    moments = iter([0.0, 9.9, 10.0, 19.9, 35.0, 44.0, 45.0])
    pace = Pace(lambda: next(moments))
    assert [pace.due() for _ in range(6)] == [False, True, False, True, False, True]


def test_a_stream_that_goes_on_tells_its_new_drifts_only(tmp_path: Path) -> None:
    table, told = sine_table(3, 250), list[str]()
    detector = {"kind": "known", "points": [249, 499]}
    with start(tmp_path / "store", detector=detector) as stream:
        steps = Replay(stream, tmp_path).run(table.slice(0, 300), "label", drop=["segment"])
        tell_plainly(steps, stream, told.append, Pace())
    assert told == ["row 250: drift found"]
    with QuiltStream.open(tmp_path / "store", wait=True) as stream:
        steps = Replay(stream, tmp_path).run(table, "label", drop=["segment"])
        tell_plainly(steps, stream, told.append, Pace())
    assert told == ["row 250: drift found", "row 500: drift found"]
