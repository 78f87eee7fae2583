r"""Server-sent events: bytes in, frames out.

>>> reader = FrameReader()
>>> reader.feed(b": still here\n\nid: 5\nevent: DriftFound\ndata: {'row'")
[]
>>> reader.feed(b": 20}\n\n")
[Frame(number=5, event='DriftFound', data="{'row': 20}")]
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Frame", "FrameReader"]


class Frame(NamedTuple):
    """One event as it was sent; the number is None if it had none."""

    number: int | None
    event: str
    data: str


class FrameReader:
    """Puts frames together. Lines end at line feeds alone, since data may hold any other sign."""

    def __init__(self) -> None:
        self._rest = b""
        self._fields: dict[str, str] = {}

    def feed(self, chunk: bytes) -> list[Frame]:
        """The frames that these bytes complete."""
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        found = [self._take(line.removesuffix(b"\r").decode()) for line in lines]
        return [frame for frame in found if frame is not None]

    def _take(self, line: str) -> Frame | None:
        if line:
            name, _, value = line.partition(":")
            value = value.removeprefix(" ")
            if name == "data" and "data" in self._fields:
                value = f"{self._fields['data']}\n{value}"
            self._fields[name] = value
            return None
        fields, self._fields = self._fields, {}
        if "data" not in fields:
            return None
        number = int(fields["id"]) if fields.get("id", "").isdigit() else None
        return Frame(number, fields.get("event", "message"), fields["data"])
