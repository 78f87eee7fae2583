"""The paper's evaluation: nine streams, nine baselines, the protocol, tables and figures.

Read the modules in this order: `datasets` (streams), `baselines` (one algorithm per file),
`protocol` (which rows a model sees), `plan` (what is run), `run`, `results` (a file that survives
a kill), `tables`, `figures` and `outputs` (what `driftquilt reproduce` writes).
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from driftquilt.paper.datasets import Stream, describe, load, names, read_stream
    from driftquilt.paper.figures import case_study
    from driftquilt.paper.outputs import write_report
    from driftquilt.paper.plan import EXPERIMENTS, METHODS, Plan, make_plan
    from driftquilt.paper.protocol import Evaluation, Outcome, Protocol, compare, evaluations
    from driftquilt.paper.results import Cell, Result, read_results
    from driftquilt.paper.run import run_plan
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
    "Cell": "results",
    "Evaluation": "protocol",
    "Outcome": "protocol",
    "Plan": "plan",
    "Protocol": "protocol",
    "Result": "results",
    "Stream": "datasets",
    "case_study": "figures",
    "compare": "protocol",
    "describe": "datasets",
    "evaluations": "protocol",
    "load": "datasets",
    "make_plan": "plan",
    "make_tables": "tables",
    "names": "datasets",
    "read_results": "results",
    "read_stream": "datasets",
    "run_plan": "run",
    "write_report": "outputs",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
