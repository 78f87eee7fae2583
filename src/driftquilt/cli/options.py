"""Options that several commands have, and the checks they need before work begins."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import typer

from driftquilt.detectors.named import BY_NAME, NEED_SETTINGS
from driftquilt.errors import InputError

__all__ = [
    "Address",
    "AsJson",
    "DataFiles",
    "Decimal",
    "Delimiter",
    "Drop",
    "Encoding",
    "Engine",
    "Label",
    "Seed",
    "check_detector",
    "check_engine",
    "check_writable",
    "split",
]

AsJson: TypeAlias = Annotated[
    bool, typer.Option("--json", help="Print one JSON document and nothing else.")
]
DataFiles: TypeAlias = Annotated[
    list[str],
    typer.Argument(
        metavar="DATA...",
        help="CSV, Parquet, Arrow or JSON lines: paths, globs, or - for standard input.",
    ),
]
Delimiter: TypeAlias = Annotated[
    str | None, typer.Option(help="CSV delimiter; default: detected from the header.")
]
Decimal: TypeAlias = Annotated[
    str, typer.Option(help="Decimal mark of numbers in CSV files: . or ,")
]
Encoding: TypeAlias = Annotated[
    str, typer.Option(help="Encoding of text files, such as latin-1, cp1252 or utf-16.")
]
Label: TypeAlias = Annotated[str, typer.Option(help="Column with the class to predict.")]
Drop: TypeAlias = Annotated[
    str | None, typer.Option(help="Columns not to learn from, by comma, such as an id.")
]
Seed: TypeAlias = Annotated[int, typer.Option(help="Random seed.", min=0)]
Engine: TypeAlias = Annotated[
    Literal["local", "processes", "ray", "auto"],
    typer.Option(help="Where to train: on this machine or a Ray cluster; same results."),
]
Address: TypeAlias = Annotated[
    str | None,
    typer.Option(help="Address of the Ray cluster: host:port, or auto for a local one."),
]


def split(names: str | None) -> list[str]:
    """Return the names between commas."""
    return [name.strip() for name in (names or "").split(",") if name.strip()]


def check_detector(name: str) -> None:
    """Refuse a detector that takes settings, for which there is no option."""
    if name in NEED_SETTINGS:
        raise InputError(
            f"--detector {name} needs settings, such as {NEED_SETTINGS[name]}, which only Python "
            f"can give; name one of {', '.join(BY_NAME)}"
        )


def check_engine(engine: str, address: str | None) -> None:
    """Pass the address of its cluster to Ray; refuse one that is not for Ray."""
    if address is None:
        return
    if engine not in ("ray", "auto"):
        raise InputError(f"--address belongs to --engine ray or auto, but the engine is {engine}")
    os.environ["RAY_ADDRESS"] = address


def check_writable(path: Path) -> None:
    """Raise `OSError` if nothing can be written at `path`, before work is spent.

    Missing folders can be made in the nearest one that exists.
    """
    place = next((folder for folder in [path, *path.absolute().parents] if folder.exists()), path)
    if place != path and not place.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(path))
    if not os.access(place, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
