"""What a stream may be called: its name is a folder's and a part of URLs."""

from __future__ import annotations

__all__ = ["NAME", "NAME_WORDS"]

NAME = r"^[a-z0-9][a-z0-9_-]{0,62}$"
NAME_WORDS = (
    "a stream's name has 1 to 63 letters a-z, digits, - and _, and begins with none of the last two"
)
