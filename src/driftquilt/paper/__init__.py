"""The paper's evaluation: nine streams, nine baselines, the protocol, tables and figures.

Read the modules in this order: `datasets` (streams), `baselines` (one algorithm per file),
`protocol` (which rows a model sees), `plan` (what is run), `run` (with a file of results that
survives a kill), `tables` and `outputs` (what `driftquilt reproduce` writes).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from driftquilt.lazy import lazy_names

if TYPE_CHECKING:
    from driftquilt.paper.datasets import Stream, describe, load, names, read_stream
    from driftquilt.paper.outputs import case_study, write_report
    from driftquilt.paper.plan import EXPERIMENTS, METHODS, Cell, Plan, make_plan
    from driftquilt.paper.protocol import Evaluation, Outcome, Protocol, compare, evaluations
    from driftquilt.paper.run import Result, read_results, run_plan
    from driftquilt.paper.tables import make_tables

__all__ = [
    "EXPERIMENTS",
    "METHODS",
    "Cell",
    "Evaluation",
    "Outcome",
    "Plan",
    "Protocol",
    "Result",
    "Stream",
    "case_study",
    "compare",
    "describe",
    "evaluations",
    "load",
    "make_plan",
    "make_tables",
    "names",
    "read_results",
    "read_stream",
    "run_plan",
    "write_report",
]

# The baselines need river and scikit-learn, which take seconds to import.
__getattr__ = lazy_names(
    __name__,
    datasets="Stream describe load names read_stream",
    outputs="case_study write_report",
    plan="EXPERIMENTS METHODS Cell Plan make_plan",
    protocol="Evaluation Outcome Protocol compare evaluations",
    run="Result read_results run_plan",
    tables="make_tables",
)
