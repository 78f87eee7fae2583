"""The stream that `driftquilt run` feeds: new, or the one that --store keeps."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import typer

from driftquilt.text import plural

if TYPE_CHECKING:
    from driftquilt.stream import QuiltStream

__all__ = ["Asked", "opened", "typed_options"]


class Asked(NamedTuple):
    """How a stream is to be set up, and which of it was typed rather than left as it is."""

    detector: str
    n_wait: int
    seed: int
    engine: str
    typed: frozenset[str]


def typed_options(context: typer.Context) -> frozenset[str]:
    """The names of the options that stand on the command line."""
    sources = {name: context.get_parameter_source(name) for name in context.params}
    return frozenset(n for n, source in sources.items() if source and source.name == "COMMANDLINE")


@contextmanager
def opened(store: Path | None, asked: Asked) -> Iterator[tuple[QuiltStream, list[str]]]:
    """The stream, and what to say if it is gone on with, once its rows are found to be the same."""
    from driftquilt.quilt.classifier import QuiltClassifier  # noqa: PLC0415
    from driftquilt.store.disk import DiskStore  # noqa: PLC0415
    from driftquilt.stream import QuiltStream  # noqa: PLC0415

    is_new = store is not None and not store.exists()
    place = None if store is None else DiskStore(store)
    if place is not None and "stream" in place.state:
        kept = _settings(place.state["stream"])
        stream = QuiltStream.open(place, wait=True)
        said = [_going_on(store, stream.n_rows, kept), *_unchanged(kept, asked)]
    else:
        estimator, said = QuiltClassifier(random_state=asked.seed, engine=asked.engine), []
        stream = QuiltStream(estimator, asked.detector, asked.n_wait, store=place, wait=True)
    try:
        yield stream, said
    finally:
        stream.close()
        if store is not None and is_new and stream.n_rows == 0:  # so that it ties nobody down
            shutil.rmtree(store)


def _settings(kept: Any) -> dict[str, Any]:
    """What of a stream's setup this command can ask for, by the names of its options."""
    return {
        "detector": kept["detector"]["kind"],
        "n_wait": kept["settings"]["n_wait"],
        "seed": kept["estimator"]["random_state"],
        "engine": kept["estimator"].get("engine", "local"),
    }


def _going_on(store: Path | None, n_rows: int, kept: dict[str, Any]) -> str:
    setup = ", ".join(f"{_option(name)} {value}" for name, value in kept.items())
    return (
        f"Going on with the stream in {store} after {plural(n_rows, 'row')}, set up as it was: "
        f"{setup}"
    )


def _unchanged(kept: dict[str, Any], asked: Asked) -> Iterator[str]:
    for name, value in kept.items():
        wanted = getattr(asked, name)
        if name in asked.typed and wanted != value:
            yield (
                f"Note: a stream keeps what it was begun with, so {_option(name)} stays {value}; "
                f"for {wanted} begin a new one, with another --store and --out"
            )


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"
