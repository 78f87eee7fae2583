r"""Text in another encoding, read as UTF-8.

>>> Recoded(io.BytesIO(b"caf\xe9"), "latin-1", "a.csv").read().decode()
'café'
"""

from __future__ import annotations

import codecs
import io

from driftquilt.errors import InputError

__all__ = ["Recoded"]

_BLOCK = 1 << 20  # bytes decoded at a time


class Recoded(io.BufferedIOBase):
    """The bytes of `file` as UTF-8; `InputError` with the line where they are not `encoding`."""

    def __init__(self, file: io.BufferedIOBase, encoding: str, name: str) -> None:
        self._file = file
        self._decoder = codecs.getincrementaldecoder(encoding)()
        self._encoding, self._name = encoding, name
        self._line = 1
        self._ready = b""
        self._ended = False

    def readable(self) -> bool:
        return True

    def read(self, size: int | None = -1, /) -> bytes:
        wanted = -1 if size is None or size < 0 else size
        parts, n_bytes = [self._ready], len(self._ready)
        while not self._ended and (wanted < 0 or n_bytes < wanted):
            parts.append(self._next())
            n_bytes += len(parts[-1])
        whole = b"".join(parts)
        end = n_bytes if wanted < 0 else wanted
        self._ready = whole[end:]
        return whole[:end]

    def read1(self, size: int = -1, /) -> bytes:
        return self.read(size)

    def _next(self) -> bytes:
        block = self._file.read(_BLOCK)
        self._ended = not block
        try:
            text = self._decoder.decode(block, final=self._ended)
        except UnicodeDecodeError as error:
            before = error.object[: error.start].decode(self._encoding, errors="replace")
            raise InputError(
                f"{self._name}, line {self._line + before.count(chr(10))}: byte "
                f"0x{error.object[error.start]:02x} is not {self._encoding}; give the encoding "
                "that it is in with --encoding"
            ) from error
        except UnicodeError as error:  # UTF-16 without its mark
            raise InputError(
                f"{self._name} is not {self._encoding}: {error}; give the encoding that it is in "
                "with --encoding"
            ) from error
        self._line += text.count("\n")
        return text.encode("utf-8", errors="surrogatepass")
