"""Nothing is left behind of what did not come to its end."""

from __future__ import annotations

from pathlib import Path

__all__ = ["remove_if_empty"]


def remove_if_empty(folder: Path) -> None:
    """Remove a folder that was made for files which did not come to be."""
    if folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()
