"""Move rows that an earlier version let wait in files of its own into the store.

That version kept the requests that brought rows in `waiting/<page in hex>.rows`, one record after
the other, and which rows have their label in the state under "labelled.<slot>", as the number of
the page and base64 bits. The ids of those rows stay valid: `store.pending.read_id` reads them.

    record  CRC-32 of all that follows; length, number of rows, time, kind of content; the content

A crash may have cut the last record short, so a file ends before the first that is not complete.
"""

from __future__ import annotations

import base64
import re
import shutil
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path

from driftquilt.errors import StoreError
from driftquilt.store.base import State, Store
from driftquilt.store.pending import PendingChange, PendingRequest, page_place

__all__ = ["move_waiting_files"]

_FILE = re.compile(r"[0-9a-f]{8,}\.rows")
_CRC = struct.Struct("<I")
_HEAD = struct.Struct("<IIdB")
_KINDS = (
    "application/json",
    "application/vnd.apache.arrow.stream",
    "numbers",  # rows of numbers alone, as the service packs them
)
_SLOT = "labelled."
_MOVED = "waiting_files"  # in the state, from the step on in which the rows are in the store


def move_waiting_files(folder: Path, store: Store) -> int:
    """Move what waits in files of `folder` into the store; return how many rows that are.

    Rows and the state that speaks of them move in one step. The files go after it, and if a crash
    comes in between, they go the next time.
    """
    if not folder.is_dir():
        return 0
    state, change = store.state, PendingChange()
    if not state.get(_MOVED):
        labelled = _labelled_rows(state)
        change = PendingChange(labelled=sorted(labelled))
        for path in sorted(folder.glob("*.rows")):
            if _FILE.fullmatch(path.name):
                change.held += [
                    request
                    for request in _read_requests(path)
                    if not labelled.issuperset(_rows(request))
                ]
        slots = [name for name in state if name.startswith(_SLOT)]
        store.write_state({**dict.fromkeys(slots), _MOVED: "moved"}, change)
    shutil.rmtree(folder, ignore_errors=True)
    return sum(request.n_rows for request in change.held)


def _rows(request: PendingRequest) -> range:
    return range(request.number, request.number + request.n_rows)


def _labelled_rows(state: State) -> set[int]:
    numbers = set()
    for name, value in state.items():
        if name.startswith(_SLOT) and value is not None:
            page, bits = value
            for byte, eight in enumerate(base64.b64decode(bits)):
                numbers |= {page_place(page, 8 * byte + at) for at in range(8) if eight >> at & 1}
    return numbers


def _read_requests(path: Path) -> Iterator[PendingRequest]:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error}; see to the disk") from error
    page, first, at = int(path.stem, 16), 0, 0
    while at + _CRC.size + _HEAD.size <= len(content):
        head = content[at + _CRC.size : at + _CRC.size + _HEAD.size]
        length, n_rows, came, kind = _HEAD.unpack(head)
        start = at + _CRC.size + _HEAD.size
        body = content[start : start + length]
        if _CRC.pack(zlib.crc32(body, zlib.crc32(head))) != content[at : at + _CRC.size]:
            return
        yield PendingRequest(page_place(page, first), n_rows, came, _KINDS[kind], None, body)
        first, at = first + n_rows, start + length
