"""Compare a method of your own with the paper's: it takes ten lines.

The idea to try here: train on the last past segment and the current one, and on nothing else.
Run it as a script; the tables and the page are then in `own-method-out`.
"""

from __future__ import annotations

from pathlib import Path

from driftquilt.core.segment import History, Segment
from driftquilt.paper import make_plan, read_results, run_plan, write_report
from driftquilt.paper.baselines import FullData
from driftquilt.quilt.method import Average


class LastTwo(FullData):
    """Train on the last past segment and the current one."""

    def adapt(self, history: History, current: Segment) -> Average:
        """Train as on all data, but leave the older segments out."""
        return super().adapt(history[-1:], current)


def last_two(seed: int, _dataset: str) -> LastTwo:
    """Return the method for one seed; the stream's name is there for settings that depend on it."""
    return LastTwo(seed=seed)


def main() -> None:
    """Run it on a short stream, and write the tables."""
    out = Path("own-method-out")
    plan = make_plan(
        ["accuracy"],
        datasets=["sine:3"],  # or the path of a CSV or Parquet file with "label" and "segment"
        methods=["full_data", "quilt", "last_two"],
        n_seeds=1,
        extra={"last_two": last_two},
    )
    for _ in run_plan(plan, out, jobs=1):  # stopped and started again, it goes on
        pass
    write_report(read_results(out / "results.jsonl"), ["accuracy"], out, command=__file__)


if __name__ == "__main__":
    main()
