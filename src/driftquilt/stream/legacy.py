"""Read what earlier versions wrote into a stream's store.

- A checkpoint had its counters in two lists, and segments with their use in pairs.
- A checkpoint had the state of the detector. Where that is more than a count, the detector starts
  again with the first row after the checkpoint, and the log says so.
- A row that waited for its label was in the checkpoint of a stream that was closed, or in the
  state under "waiting.<slot>"; now it is in the store's table of pending rows.
"""

from __future__ import annotations

import logging
from typing import Any

from driftquilt.data.frame import Row
from driftquilt.store.base import State

__all__ = ["SLOT", "read_record", "waiting_rows"]

_log = logging.getLogger("driftquilt.stream")

#: How the state's keys for rows that waited began.
SLOT = "waiting."


def read_record(record: dict[str, Any]) -> dict[str, Any]:
    """Return the record of a checkpoint as this version writes it."""
    if "counters" in record:
        return record
    first_row, last_drift, next_training = record["rows"]
    n_trainings, n_versions = record["counts"][:2]
    # The first stores did not number or count their events.
    events = [{"number": number, **event} for number, event in enumerate(record["events"], 1)]
    counted = [*record["counts"], *[None] * 2][2:4]
    n_drifts = sum(event["event"] == "DriftFound" for event in events)
    counters = {
        "first_row": first_row,
        "last_drift": last_drift,
        "next_training": next_training,
        "n_trainings": n_trainings,
        "n_versions": n_versions,
        "n_events": len(events) if counted[0] is None else counted[0],
        "n_drifts": n_drifts if counted[1] is None else counted[1],
    }
    used = {str(number): share for number, share in record["used"]}
    learning = _read_learning(record["learning"])
    return {**record, "learning": learning, "counters": counters, "events": events, "used": used}


def _read_learning(record: dict[str, Any]) -> dict[str, Any]:
    n_rows, n_right, width = record["counts"]
    champion, online = record["losses"]
    state = record["detector"] or {}
    if state and state.keys() - {"n_rows", "drift_detected"}:
        _log.warning(
            "the store was written by an earlier version, and its drift detector cannot be "
            "continued; it starts again with row %d",
            n_rows,
        )
    return {
        **record,
        "n_rows": n_rows,
        "n_right": n_right,
        "width": width,
        "n_seen": state["n_rows"] if state.keys() == {"n_rows"} else 0,  # every so many rows
        "losses": {"champion": champion, "online": online},
    }


def waiting_rows(
    state: State, record: dict[str, Any] | None
) -> tuple[list[tuple[str | int, Row]], dict[str, None]]:
    """Return rows that waited, by key and in order, and the state that lets go of them."""
    slots = {n: v for n, v in state.items() if n.startswith(SLOT) and v is not None}
    rows = [(key, row) for key, row in (record or {}).get("waiting") or []]
    rows += [(key, row) for _, key, row in sorted(slots.values(), key=lambda slot: slot[0])]
    return rows, dict.fromkeys(slots)
