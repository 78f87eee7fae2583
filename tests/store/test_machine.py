"""Any row of calls, with openings in between, agrees with plain lists."""

from __future__ import annotations

import math
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from driftquilt.store.disk import DiskStore
from tests.crash.disk import UnsyncedDisk

VALUES = st.one_of(
    st.fixed_dictionaries({"x": st.integers(-(2**53), 2**53)}),
    st.fixed_dictionaries({"x": st.floats(allow_nan=False), "word": st.text(max_size=5)}),
    st.fixed_dictionaries({"word": st.none() | st.text(max_size=5)}),
)
NAMES = st.none() | st.text(max_size=9) | st.integers() | st.floats(allow_nan=False)


class Machine(RuleBasedStateMachine):
    """A store, and lists that say what it should hold."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.rows: list[dict[str, Any]] = []
        self.segments: dict[int, tuple[Any, list[dict[str, Any]]]] = {}
        self.models: dict[int, bytes] = {}
        self.state: dict[str, Any] = {}
        self.n_rows = self.n_segments = self.n_models = 0
        self.in_groups = False
        self.open()

    def open(self) -> None:
        pace = {"commit_rows": 7, "commit_delay": math.inf} if self.in_groups else {}
        self.store = DiskStore(Path(self.folder.name) / "store", disk=UnsyncedDisk(), **pace)  # type: ignore[arg-type]

    @rule(values=st.lists(VALUES, max_size=5), mark=st.integers())
    def append(self, values: list[dict[str, Any]], mark: int) -> None:
        for value in values:
            self.n_rows += 1
            self.state = {"mark": mark, "rows": self.n_rows}
            batch = pa.RecordBatch.from_pylist([value])
            assert self.store.append(batch, self.state) == self.n_rows
            self.rows.append(value)

    @precondition(lambda self: self.rows)
    @rule(name=NAMES)
    def seal(self, name: Any) -> None:
        self.n_segments += 1
        segment = self.store.seal(name)
        assert (segment.number, segment.n_rows) == (self.n_segments, len(self.rows))
        self.segments[segment.number] = (name, self.rows)
        self.rows = []

    @precondition(lambda self: self.segments)
    @rule(data=st.data())
    def drop(self, data: st.DataObject) -> None:
        number = data.draw(st.sampled_from(sorted(self.segments)))
        self.store.drop(number)
        del self.segments[number]

    @rule(tensors=st.binary(max_size=20))
    def put_model(self, tensors: bytes) -> None:
        self.n_models += 1
        assert self.store.put_model(tensors, {"size": len(tensors)}) == self.n_models
        self.models[self.n_models] = tensors

    @precondition(lambda self: self.models)
    @rule()
    def drop_model(self) -> None:
        number = min(self.models)
        self.store.drop_model(number)
        del self.models[number]

    @rule(in_groups=st.booleans())
    def open_again(self, *, in_groups: bool) -> None:
        self.store.close()
        self.in_groups = in_groups
        self.open()

    @invariant()
    def all_is_there(self) -> None:
        assert same(self.store.open_rows(), self.rows)
        found = self.store.segments
        assert {s.number: s.name for s in found} == {
            number: name for number, (name, _) in self.segments.items()
        }
        for number, (_, rows) in self.segments.items():
            assert same(self.store.read(number), rows)
        assert {m.number: self.store.model(m.number)[0] for m in self.store.models} == self.models
        assert self.store.state == self.state
        assert self.store.n_appended == self.n_rows

    def teardown(self) -> None:
        self.store.close()
        self.folder.cleanup()


def same(table: pa.Table, rows: list[dict[str, Any]]) -> bool:
    """Equal values, a column that a row does not have being null; 1 and 1.0 are equal."""
    return bool(table.to_pylist() == [{n: row.get(n) for n in table.column_names} for row in rows])


TestMachine = Machine.TestCase
TestMachine.settings = settings(max_examples=30, stateful_step_count=20, deadline=None)
