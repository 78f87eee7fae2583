"""What is written becomes durable, alone or gathered in groups; after a failure nothing does.

One lock guards the one connection. Appends join the waiting group; it is committed when
`commit_rows` rows wait, when its oldest has waited for `commit_delay` seconds (a timer's thread
does that), or with whatever is written next. A transaction always begins with the waiting group,
so what was given first is never durable last.

A commit that fails is remembered: it may have failed on the timer's thread, where nobody is to
be told, and after a sync that failed nobody can know what the disk holds. Every later call says
so until the store is opened again.

>>> import tempfile
>>> from driftquilt.store.files import DISK
>>> path = Path(tempfile.mkdtemp()) / "store.sqlite"
>>> manifest = Manifest(DISK.connect(path), path)
>>> journal = Journal(manifest, manifest.contents(), path, CommitPolicy(100, commit_delay=math.inf))
>>> journal.add([RowBlock(3, 1, True, 0, b"three rows")], None, {})
>>> journal.kept.n_appended, journal.n_durable
(3, 0)
>>> journal.commit()
>>> journal.n_durable
3
>>> manifest.close()
"""

from __future__ import annotations

import contextlib
import math
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from driftquilt.errors import InputError, StoreError
from driftquilt.store.files import trouble
from driftquilt.store.manifest import Contents, Manifest
from driftquilt.store.pending import LabelledRows, PendingChange
from driftquilt.store.rows import BlockLayout, RowBlock

__all__ = ["CommitPolicy", "Journal"]


@dataclass(frozen=True)
class CommitPolicy:
    """How long rows may wait.

    >>> CommitPolicy(commit_rows=100)
    Traceback (most recent call last):
    driftquilt.errors.InputError: commit_rows is 100 and commit_delay 0.0, so rows would wait \
and nothing says how long; give commit_delay in seconds, or math.inf for until the next flush
    """

    commit_rows: int = 1
    commit_delay: float = 0.0

    def __post_init__(self) -> None:
        rows, delay = self.commit_rows, self.commit_delay
        if isinstance(rows, bool) or not isinstance(rows, int) or rows < 1:
            raise InputError(f"commit_rows is {rows!r}; it takes an int of at least 1")
        if not delay >= 0:
            raise InputError(f"commit_delay is {delay!r}; it takes seconds, at least 0")
        if rows > 1 and not delay:
            raise InputError(
                f"commit_rows is {rows} and commit_delay {delay}, so rows would wait and nothing "
                "says how long; give commit_delay in seconds, or math.inf for until the next flush"
            )


@dataclass
class _Group:
    """What waits for a commit."""

    blocks: list[RowBlock] = field(default_factory=list)
    layouts: list[BlockLayout] = field(default_factory=list)
    texts: dict[str, str] = field(default_factory=dict)
    pending: PendingChange | None = None

    def __bool__(self) -> bool:
        return bool(self.blocks or self.layouts or self.texts) or self.pending is not None

    @property
    def is_one_block(self) -> bool:
        return len(self.blocks) == 1 and not (self.layouts or self.texts) and self.pending is None

    def write(self, manifest: Manifest, labelled: LabelledRows) -> None:
        for layout in self.layouts:
            manifest.add_layout(layout)
        for block in self.blocks:
            manifest.add_block(block)
        manifest.set_state(self.texts)
        if self.pending is not None:
            manifest.change_pending(self.pending, labelled)


class Journal:
    """The one way to write to a manifest; `lock` is to be held around every call.

    `kept` is what the store holds, with what waits; `n_durable` is without.
    """

    def __init__(
        self, manifest: Manifest, kept: Contents, path: Path, policy: CommitPolicy
    ) -> None:
        self.lock = threading.RLock()
        self.kept = kept
        self.n_durable = kept.n_appended
        self._manifest = manifest
        self._path = path
        self._policy = policy
        self._group = _Group()
        self._timer: threading.Timer | None = None
        self._failure: StoreError | None = None
        self._is_told = False

    def add(
        self,
        blocks: Sequence[RowBlock] = (),
        layout: BlockLayout | None = None,
        texts: Mapping[str, str] | None = None,
        pending: PendingChange | None = None,
        *,
        now: bool = False,
    ) -> None:
        """Take rows, state and pending rows; durable `now`, or when the group is."""
        self._group.blocks += blocks
        self._group.layouts += [layout] if layout else []
        if texts:
            self._group.texts |= texts
            self.kept.state |= texts
        if pending is not None:
            self._group.pending = self._group.pending or PendingChange()
            self._group.pending.add(pending)
        n_held = 0 if self._group.pending is None else len(self._group.pending.held)
        self.kept.n_appended = blocks[-1].last if blocks else self.kept.n_appended
        n_waiting = self.kept.n_appended - self.n_durable + n_held
        if now or n_waiting >= self._policy.commit_rows or not n_waiting:
            self.commit()
        elif self._timer is None and self._policy.commit_delay < math.inf:
            self._timer = threading.Timer(
                self._policy.commit_delay, self._commit_late, [self._group]
            )
            self._timer.daemon = True
            self._timer.start()

    def commit(self) -> None:
        """Make durable what waits."""
        if self._group.is_one_block:
            self._commit_block(self._take_group().blocks[0])
        elif self._group:
            with self.transaction({}):
                pass

    @contextlib.contextmanager
    def transaction(self, texts: Mapping[str, str]) -> Iterator[None]:
        """One transaction of what waits, what the block writes, and this state."""
        group = self._take_group()
        try:
            with self._manifest.transaction():
                group.write(self._manifest, self.kept.labelled)
                yield
                self._manifest.set_state(texts)
        except Exception as error:
            raise self.fail(trouble(self._path, "a commit", error)) from error
        self.kept.state |= texts
        self.n_durable = self.kept.n_appended

    def fail(self, failure: StoreError) -> StoreError:
        """Remember a failure, which the caller is about to raise."""
        self._failure, self._is_told = failure, True
        return failure

    def expect_sound(self) -> None:
        """Refuse to go on after a commit that failed."""
        if self._failure is not None:
            self._is_told = True
            raise StoreError(
                f"the store {self._path} takes nothing since a commit failed; open it again, it "
                f"then has the {self.n_durable} rows that were durable, and perhaps more "
                f"({self._failure})"
            ) from self._failure

    def close(self, *, discard: bool = False) -> None:
        """Commit what waits, or discard it; raises a failure that nobody has been told of."""
        if discard:
            self._take_group()
        elif self._failure is None:
            self.commit()
        elif not self._is_told:
            self.expect_sound()

    def _take_group(self) -> _Group:
        group, self._group = self._group, _Group()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        return group

    def _commit_block(self, block: RowBlock) -> None:
        """One statement is a transaction by itself, and faster."""
        try:
            self._manifest.add_block(block)
        except Exception as error:
            raise self.fail(trouble(self._path, "a commit", error)) from error
        self.n_durable = self.kept.n_appended

    def _commit_late(self, group: _Group) -> None:
        with self.lock:
            # After Ctrl-C a group may be half of what was given.
            if group is self._group and self._failure is None:
                with contextlib.suppress(StoreError):  # remembered, and raised by the next call
                    self.commit()
                self._is_told = self._failure is None
