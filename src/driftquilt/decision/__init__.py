"""From a table to a decision that a person can approve, and from a table to a replayed stream.

To decide, cut a table into segments (`by_column`, `by_time`, `by_detector`), call `decide`, and
write the `Decision` to a folder. To see how a live stream would have done, run a `Replay`.

Read the modules in this order: `cutting`, `layout`, `leakage`, `measure`, `advice`, `scoring`,
`incumbent`, `data_check`, `decision`, `deciding`; then `streaming`, `journal`, `replay`,
`backtest`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from driftquilt.lazy import lazy_names

if TYPE_CHECKING:
    from driftquilt.decision.advice import Advice
    from driftquilt.decision.backtest import RunRecord, StreamSetup, baselines, open_stream
    from driftquilt.decision.cutting import by_column, by_time, sort_by_time
    from driftquilt.decision.data_check import Finding, check_data
    from driftquilt.decision.deciding import decide
    from driftquilt.decision.decision import (
        DataFile,
        Decision,
        Origin,
        read_decision,
        write_decision,
    )
    from driftquilt.decision.journal import PromotedModel, Replayed, read_replay
    from driftquilt.decision.measure import MethodScore, interval, p_value, verdict
    from driftquilt.decision.replay import Progress, Replay
    from driftquilt.decision.streaming import by_detector

__all__ = [
    "Advice",
    "DataFile",
    "Decision",
    "Finding",
    "MethodScore",
    "Origin",
    "Progress",
    "PromotedModel",
    "Replay",
    "Replayed",
    "RunRecord",
    "StreamSetup",
    "baselines",
    "by_column",
    "by_detector",
    "by_time",
    "check_data",
    "decide",
    "interval",
    "open_stream",
    "p_value",
    "read_decision",
    "read_replay",
    "sort_by_time",
    "verdict",
    "write_decision",
]

# Deciding does not need the stream, nor a report the training.
__getattr__ = lazy_names(
    __name__,
    advice="Advice",
    backtest="RunRecord StreamSetup baselines open_stream",
    cutting="by_column by_time sort_by_time",
    data_check="Finding check_data",
    deciding="decide",
    decision="DataFile Decision Origin read_decision write_decision",
    journal="PromotedModel Replayed read_replay",
    measure="MethodScore interval p_value verdict",
    replay="Progress Replay",
    streaming="by_detector",
)


def __dir__() -> list[str]:
    return __all__
