"""How many of something, in words.

>>> counted(1, "row"), counted(0, "row"), counted(1200, "past segment")
('1 row', '0 rows', '1,200 past segments')
"""

from __future__ import annotations

__all__ = ["counted"]


def counted(number: int, noun: str) -> str:
    """The number and the noun, which gets an s for any number but one."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
