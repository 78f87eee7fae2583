"""The nine streams of the paper by name: load one, list them, tell what is known of each.

>>> names()
('sea', 'hyperplane', 'random_rbf', 'sine', 'electricity', 'weather', 'spam', 'usenet1', 'usenet2')
>>> load("sea", n_segments=3)
Stream(name='sea', current_share=0.1, class_names=('0', '1'))
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from driftquilt.errors import InputError
from driftquilt.paper.datasets import synthetic
from driftquilt.paper.datasets.real import REAL, SOURCE, find_file, load_real, read_file
from driftquilt.paper.datasets.stream import Stream, check_count, restore_order
from driftquilt.text import suggest

__all__ = ["Description", "describe", "load", "names"]

_SYNTHETIC: dict[str, Callable[..., Stream]] = {
    "sea": synthetic.sea,
    "hyperplane": synthetic.hyperplane,
    "random_rbf": synthetic.random_rbf,
    "sine": synthetic.sine,
}


@dataclass(frozen=True)
class Description:
    """What is known of a data set, and the state it is in on this machine.

    `place` is where `load` takes it from: a file, an address, or "made in code". `is_intact`
    is whether its checksum holds, None if that was not checked or the file is not here;
    `problem` says what is wrong if it does not hold.
    """

    name: str
    kind: Literal["synthetic", "real"]
    n_rows: int
    n_features: int
    n_classes: int
    n_segments: int
    citation: str
    place: str
    is_present: bool
    is_intact: bool | None = None
    problem: str = ""


def names() -> tuple[str, ...]:
    """Return the data sets in the paper's order."""
    return (*_SYNTHETIC, *REAL)


def load(name: str, *, original_order: bool = False, n_segments: int | None = None) -> Stream:
    """Return a stream of the paper, in the published order of rows.

    `original_order=True` undoes the shuffle inside segments. `n_segments` is how many segments
    to take, from the first: any number of a synthetic stream, which is made to go on for as
    long, and up to all of a real one.
    """
    _check_name(name)
    if n_segments is not None:
        check_count("n_segments", n_segments)
    if name in _SYNTHETIC:
        wanted = {} if n_segments is None else {"n_segments": n_segments}
        return _SYNTHETIC[name](original_order=original_order, **wanted)
    stream = load_real(REAL[name])
    if n_segments is not None:
        stream = stream.first(n_segments)
    return restore_order(stream) if original_order else stream


def describe(name: str, *, check: bool = True) -> Description:
    """Return what is known of a data set; nothing is fetched.

    `check=False` leaves the checksum alone, and so is quick.
    """
    _check_name(name)
    return _describe_synthetic(name, check) if name in _SYNTHETIC else _describe_real(name, check)


def _describe_synthetic(name: str, check: bool) -> Description:
    few = _SYNTHETIC[name](n_segments=1, n_rows=1)
    n_segments, n_rows = synthetic.PAPER_SHAPE
    is_intact, problem = _holds(_SYNTHETIC[name]) if check else (None, "")
    return Description(
        name,
        "synthetic",
        n_segments * n_rows,
        len(few.feature_names),
        len(few.class_names),
        n_segments,
        few.citation,
        "made in code",
        is_present=True,
        is_intact=is_intact,
        problem=problem,
    )


def _describe_real(name: str, check: bool) -> Description:
    real = REAL[name]
    path = find_file(real)
    is_intact, problem = None, ""
    if path is not None and check:
        is_intact, problem = _holds(lambda: read_file(real, path))
    return Description(
        name,
        "real",
        real.n_segments * real.segment_size,
        len(real.feature_names),
        len(real.class_names),
        real.n_segments,
        real.citation,
        f"{SOURCE}/{real.folder}" if path is None else str(path),
        is_present=path is not None,
        is_intact=is_intact,
        problem=problem,
    )


def _holds(make: Callable[[], Stream]) -> tuple[bool, str]:
    try:
        return make().verify(), ""
    except InputError as error:
        return False, str(error)


def _check_name(name: str) -> None:
    if isinstance(name, str) and name in names():
        return
    raise InputError(f"there is no data set {name!r}; {suggest(name, names(), limit=None)}")
