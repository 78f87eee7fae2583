"""A file that is there whole or not at all.

>>> import tempfile
>>> with tempfile.TemporaryDirectory() as folder:
...     write_whole(Path(folder, "a.txt"), b"whole")
...     Path(folder, "a.txt").read_text(), len(list(Path(folder).iterdir()))
('whole', 1)
"""

from __future__ import annotations

from pathlib import Path

from driftquilt.errors import InputError
from driftquilt.files import atomic_write

__all__ = ["write_whole"]


def write_whole(target: Path, content: bytes) -> None:
    """Written beside its place under another name, then renamed; a failure leaves nothing."""
    if target.is_dir() or not target.parent.is_dir():
        found = "is a folder" if target.is_dir() else f"there is no folder {target.parent}"
        raise InputError(f"cannot write to {target}: {found}; choose another path")
    with atomic_write(target) as file:
        file.write(content)
