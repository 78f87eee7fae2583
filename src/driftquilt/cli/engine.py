"""Where the work of a command runs: the two options that say so."""

from __future__ import annotations

import os
from typing import Annotated, Literal, TypeAlias

import typer

from driftquilt.errors import InputError

__all__ = ["Address", "Engine", "check_engine"]

Engine: TypeAlias = Annotated[
    Literal["local", "processes", "ray", "auto"],
    typer.Option(help="Where to train: on this machine, or on a Ray cluster; same outcome."),
]
Address: TypeAlias = Annotated[
    str | None,
    typer.Option(help="Of the Ray cluster: host:port, or auto for the one that runs here."),
]


def check_engine(engine: str, address: str | None) -> None:
    """Tell Ray where its cluster is; InputError if it is not Ray that was asked for."""
    if address is None:
        return
    if engine not in ("ray", "auto"):
        raise InputError(f"--address belongs to --engine ray or auto, but the engine is {engine}")
    os.environ["RAY_ADDRESS"] = address
