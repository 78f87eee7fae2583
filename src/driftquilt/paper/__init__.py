"""The paper's evaluation: nine streams, nine baselines, the protocol, tables and figures.

Read the modules in this order: `datasets` (streams), `baselines` (one algorithm per file),
`protocol` (which rows a model sees), `plan` (what is run), `run` (with a file of results that
survives a kill), `tables` and `outputs` (what `driftquilt reproduce` writes).
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

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

# Looked up at first use: the baselines need river and scikit-learn, which take seconds to import.
_HOMES = {
    "EXPERIMENTS": "plan",
    "METHODS": "plan",
    "Cell": "plan",
    "Evaluation": "protocol",
    "Outcome": "protocol",
    "Plan": "plan",
    "Protocol": "protocol",
    "Result": "run",
    "Stream": "datasets",
    "case_study": "outputs",
    "compare": "protocol",
    "describe": "datasets",
    "evaluations": "protocol",
    "load": "datasets",
    "make_plan": "plan",
    "make_tables": "tables",
    "names": "datasets",
    "read_results": "run",
    "read_stream": "datasets",
    "run_plan": "run",
    "write_report": "outputs",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
