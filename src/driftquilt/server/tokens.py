"""Who may do what: tokens by name, of which only the hashes are kept.

A token is `dq_` and 32 random bytes, shown once. The file `tokens.json` in the store has its
name, its scopes and its SHA-256, which needs no salt because a token cannot be guessed. Of the
scopes, `admin` includes `write`, and `write` includes `read`. The file is written whole, for its
owner alone, and read again when it has changed: a token which is revoked is refused within a
second, and a new one is known at once.

>>> import tempfile
>>> tokens = Tokens(Path(tempfile.mkdtemp(), "tokens.json"))
>>> secret = tokens.create("app", ["write"])
>>> [token.name for token in tokens], tokens.find(secret).may("read"), tokens.find("dq_other")
(['app'], True, None)
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import json
import os
import re
import secrets
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, get_args

from driftquilt.errors import InputError, StoreError
from driftquilt.files import lock_file
from driftquilt.store.files import Disk, NewFile, translated, write_file

__all__ = ["SCOPES", "Scope", "Token", "Tokens"]

Scope = Literal["read", "write", "admin"]
SCOPES: tuple[Scope, ...] = get_args(Scope)
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,62}")
_LOOK_EVERY = 1.0  # seconds


@dataclass(frozen=True)
class Token:
    """What is kept of a token."""

    name: str
    scopes: frozenset[str]
    sha256: str
    created: str

    def may(self, scope: str) -> bool:
        """Return whether one of its scopes is this one or includes it."""
        return any(SCOPES.index(own) >= SCOPES.index(scope) for own in self.scopes)


class Tokens:
    """The tokens in a file; none if it is not there."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._tokens: tuple[Token, ...] = ()
        self._sign: tuple[int, ...] | None = None
        self._looked = 0.0
        self._were_made = False
        self._refresh()

    def __iter__(self) -> Iterator[Token]:
        return iter(self._tokens)

    def __contains__(self, token: Token) -> bool:
        self._look()
        return token in self._tokens

    def __len__(self) -> int:
        return len(self._tokens)

    @property
    def were_made(self) -> bool:
        """Whether there ever was one: the last one's revocation opens nothing."""
        self._look()
        return self._were_made

    def find(self, token: str) -> Token | None:
        """Return the entry of a token, compared in constant time; None if it is unknown."""
        self._look()
        digest = _digest(token)
        found = self._matching(digest)
        if found is None:
            self._refresh()  # it may be a second old
            found = self._matching(digest)
        return found

    def _matching(self, digest: str) -> Token | None:
        found = None
        for own in self._tokens:
            if hmac.compare_digest(own.sha256, digest):
                found = own
        return found

    def create(self, name: str, scopes: Iterable[str]) -> str:
        """Create a token and return it; it cannot be shown again."""
        wanted = frozenset(scopes)
        _check(name, wanted)
        secret = f"dq_{secrets.token_urlsafe(32)}"
        with self._changing():
            if any(token.name == name for token in self):
                raise InputError(
                    f"there is a token {name!r} already; choose another name, or revoke it first"
                )
            created = datetime.now(UTC).isoformat(timespec="seconds")
            self._write([*self, Token(name, wanted, _digest(secret), created)])
        return secret

    def revoke(self, name: str) -> None:
        with self._changing():
            kept = [token for token in self if token.name != name]
            if len(kept) == len(self):
                known = ", ".join(token.name for token in self) or "none"
                raise InputError(f"there is no token {name!r} in {self._path}; there are: {known}")
            self._write(kept)

    @contextlib.contextmanager
    def _changing(self) -> Iterator[None]:
        """Lock the file, and read it again."""
        with translated(self._path.parent, "changing the tokens"):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            lock_path = self._path.with_suffix(".lock")
            if not lock_path.exists():
                _make_private(lock_path)
            with lock_path.open("a") as file:
                lock_file(file.fileno(), wait=True)
                self._refresh()
                yield

    def _write(self, tokens: Iterable[Token]) -> None:
        entries = [asdict(token) | {"scopes": sorted(token.scopes)} for token in tokens]
        content = json.dumps({"tokens": entries}, indent=1).encode()
        write_file(_Private(), self._path, lambda sink: sink.write(content))
        self._refresh()

    def _look(self) -> None:
        now = time.monotonic()
        if now - self._looked >= _LOOK_EVERY:
            self._refresh()

    def _refresh(self) -> None:
        """Read the file if it is another than last time."""
        self._looked = time.monotonic()
        sign = _sign_of(self._path)
        if sign == self._sign:
            return
        self._were_made = self._were_made or sign is not None
        self._tokens = ()  # nobody has one while the file cannot be read
        self._tokens = () if sign is None else _read(self._path)
        self._sign = sign


class _Private(Disk):
    """New files are their owner's alone."""

    def create(self, path: Path) -> NewFile:
        path.unlink(missing_ok=True)
        _make_private(path)
        return super().create(path)


def _make_private(path: Path) -> None:
    """Create an empty file for the folder's owner alone: root may make tokens for a service."""
    path.touch(mode=0o600)
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        owner = path.parent.stat()
        os.chown(path, owner.st_uid, owner.st_gid)


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode(errors="replace")).hexdigest()


def _sign_of(path: Path) -> tuple[int, ...] | None:
    """Return what changes whenever the file does."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size


def _check(name: str, scopes: frozenset[str]) -> None:
    if not _NAME.fullmatch(name):
        raise InputError(
            f"the name of a token has 1 to 63 letters, digits and _.-, but got {name!r}"
        )
    if not scopes or not scopes <= set(SCOPES):
        raise InputError(
            f"scopes are read, write and admin, but got {', '.join(sorted(scopes)) or 'none'}"
        )


def _read(path: Path) -> tuple[Token, ...]:
    try:
        return tuple(_token(entry) for entry in json.loads(path.read_bytes())["tokens"])
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise StoreError(
            f"{path} is damaged: {error!r}; "
            "restore it from a copy, or remove it and make new tokens"
        ) from error


def _token(entry: dict[str, Any]) -> Token:
    token = Token(entry["name"], frozenset(entry["scopes"]), entry["sha256"], entry["created"])
    _check(token.name, token.scopes)
    return token
