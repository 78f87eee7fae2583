"""Bodies of messages: three shapes are read, everything else is a value that says why not."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from driftquilt.brokers.messages import Asked, Labelled, LateLabel, Unreadable, decode


def test_the_three_shapes_are_told_apart() -> None:
    assert decode(b'{"row": {"a": 1}, "label": "yes"}') == Labelled({"a": 1}, "yes")
    assert decode(b'{"id": "order 7", "row": {"a": 1.5}}') == Asked("order 7", {"a": 1.5})
    assert decode(b'{"label": 2.0, "id": 7}') == LateLabel(7, 2.0)


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"", "it is not valid JSON"),
        (b"\xff", "it is not UTF-8"),
        (b"[1]", "it is a list"),
        (b"{}", "it has the keys []"),
        (b'{"row": {}}', "it has the keys ['row']"),
        (b'{"row": {}, "label": 1, "id": 2}', "it has the keys ['id', 'label', 'row']"),
        (b'{"row": {"a": 1' + b"0" * 5000 + b'}, "label": 1}', "it is not valid JSON"),
        (b'{"row": {"a": NaN}, "label": 1}', "it holds NaN, which is not valid JSON"),
        (b'{"row": {"a": -Infinity}, "label": 1}', "it holds -Infinity, which is not valid JSON"),
        (b'{"row": {"a": 1, "a": 2}, "label": 1}', "a key stands twice in it"),
        (b'{"row": {}, "id": "\\ud800"}', "not valid Unicode"),
        (b'{"row": {}, "id": true}', "its id is True"),
        (b'{"row": {}, "id": null}', "its id is None"),
        (b'{"row": {}, "id": "' + b"x" * 1001 + b'"}', "has 1001 characters; give at most 1000"),
        (b'{"label": 1, "id": 1' + b"0" * 1000 + b"}", "has 1001 characters; give at most 1000"),
        (b"[" * 100_000, "it is nested too deeply"),
        (b" " * (2**20 + 1), "it has 1048577 bytes"),
    ],
)
def test_what_cannot_be_read_says_why(body: bytes, why: str) -> None:
    said = decode(body)
    assert isinstance(said, Unreadable)
    assert why in said.why


@pytest.mark.parametrize("key", ["é" * 1000, 10**999])
def test_a_long_id_is_read_up_to_its_bound(key: str | int) -> None:
    assert decode(json.dumps({"id": key, "label": 1}).encode()) == LateLabel(key, 1)


@given(st.binary() | st.recursive(st.none() | st.floats() | st.text(), st.lists).map(json.dumps))
def test_nothing_makes_it_raise(body: Any) -> None:
    assert isinstance(decode(body if isinstance(body, bytes) else body.encode()), Unreadable)
