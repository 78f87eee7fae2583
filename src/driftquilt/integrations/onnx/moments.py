"""Dates and times of day in a graph: the numbers that `data.moments` makes of them.

A date goes in as whole microseconds since 1970, a time of day as microseconds since midnight, by
the clock as it was written; the lowest int64 is a missing one, as numpy has it. Whole numbers,
because the last instant of a day, as seconds in floating point, would be the next day.

    parts  (n, 6) or (n, 2)  float64, NaN where missing, in the order of `PARTS`

The calendar repeats itself every 400 years, so one table of where its years begin is enough.
"""

from __future__ import annotations

import numpy as np

from driftquilt.integrations.onnx.graph import Graph

__all__ = ["MISSING", "clock_parts", "date_parts"]

MISSING = np.iinfo(np.int64).min
_DAY = 86_400 * 10**6  # microseconds
_THURSDAY = 3  # 1 January 1970, Mondays being 0
_TURN = np.arange("2000", "2401", dtype="M8[Y]").astype("M8[D]").astype(np.int64)
_YEARS = _TURN - _TURN[0]  # the day on which each of 400 years begins, and the one after
_LENGTHS = np.diff(_YEARS, append=_YEARS[-1] + 366)


def date_parts(graph: Graph, micros: str) -> str:
    """The six parts of dates and time stamps."""
    missing, micros = _without_missing(graph, micros)
    of_day = graph.add("Mod", micros, _whole(graph, _DAY))
    days = graph.add("Div", graph.add("Sub", micros, of_day), _whole(graph, _DAY))
    since_monday = graph.add("Add", days, _whole(graph, _THURSDAY))
    of_week = graph.add("Mod", since_monday, _whole(graph, 7))
    shares = [
        _share(graph, of_day, _whole(graph, _DAY)),
        _share(graph, of_week, _whole(graph, 7)),
        _of_year(graph, days),
    ]
    return _waves(graph, shares, missing)


def clock_parts(graph: Graph, micros: str) -> str:
    """The two parts of times of day."""
    missing, micros = _without_missing(graph, micros)
    return _waves(graph, [_share(graph, micros, _whole(graph, _DAY))], missing)


def _without_missing(graph: Graph, micros: str) -> tuple[str, str]:
    """Where the missing ones are, and the counts with 0 in their place."""
    missing = graph.add("Equal", micros, _whole(graph, MISSING))
    return missing, graph.add("Where", missing, _whole(graph, 0), micros)


def _of_year(graph: Graph, days: str) -> str:
    """Whole days since the year began, as a share of that year's days."""
    since = graph.add("Sub", days, _whole(graph, int(_TURN[0])))
    day = graph.add("Mod", since, _whole(graph, int(_YEARS[-1])))
    years = graph.constant(_YEARS)
    guess = graph.add("Div", day, _whole(graph, 365))  # the year, or the one after
    over = graph.add("Greater", graph.add("Gather", years, guess), day)
    year = graph.add("Sub", guess, graph.cast(over, np.int64))
    gone = graph.add("Sub", day, graph.add("Gather", years, year))
    return _share(graph, gone, graph.add("Gather", graph.constant(_LENGTHS), year))


def _share(graph: Graph, part: str, whole: str) -> str:
    part, whole = (graph.cast(value, np.float64) for value in (part, whole))
    return graph.add("Div", part, whole)


def _waves(graph: Graph, shares: list[str], missing: str) -> str:
    """Sine and cosine of each share of a turn; a cosine is a sine a quarter later."""
    turns = graph.add("Concat", *(share for share in shares for _ in range(2)), axis=1)
    angles = graph.add("Mul", turns, graph.constant(np.array(2 * np.pi)))
    quarters = np.tile([0, np.pi / 2], len(shares))
    waves = graph.add("Sin", graph.add("Add", angles, graph.constant(quarters)))
    return graph.add("Where", missing, graph.constant(np.array(np.nan)), waves)


def _whole(graph: Graph, number: int) -> str:
    return graph.constant(np.array(number, dtype=np.int64))
