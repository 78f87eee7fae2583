"""A refused body: msgspec's reason with its path, and nothing of the caller's."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from driftquilt.server.bodies import decode_strictly, read_labels, read_predict
from driftquilt.server.problems import Problem
from driftquilt.server.schemas import JSON, NewStream


@contextmanager
def refused(where: str) -> Iterator[None]:
    """Expect a problem that names the place, and repeats nothing."""
    with pytest.raises(Problem) as caught:
        yield
    assert caught.value.kind == "body-invalid"
    assert where in caught.value.detail
    assert "secret" not in caught.value.detail


@pytest.mark.parametrize(
    ("body", "where"),
    [
        ('{"rows": [{"secret": true}]}', "$.rows[0][...]"),
        ('{"columns": ["a"], "rows": [[1], [true]]}', "$.rows[1][0]"),
        ('{"rows": [{"a": [1]}]}', "$.rows[0][...]"),
        ('{"rows": [1]}', "$.rows[0]"),
        ('{"rows": {}}', "$.rows"),
        ('{"rows": [], "keep": 2}', "$.keep"),
        ('{"rows": [], "columns": [null]}', "$.columns[0]"),
        ("[]", "Expected `object`"),
        ("{}", "missing required field `rows`"),
        ('{"rows": [], "secret": 1}', "unknown field"),
        ('{"rows": [{"a": 1e39}]}', "$.rows[0][...]"),
        ('{"rows": [[1]]}', "each row is an object"),
        ('{"columns": ["a"], "rows": [{"a": 1}]}', "each row is a list"),
        ('{"columns": ["a", "b"], "rows": [[1]]}', "2 values"),
        ('{"columns": ["a", "a"], "rows": [[1, 2]]}', "same name"),
        ('{"rows": [{"a": 1, "a": 2}]}', "a key comes twice"),
        ('{"rows": [{"a": 1}], "rows": [{"a": 2}]}', "a key comes twice"),
    ],
)
def test_rows_are_refused_with_the_place(body: str, where: str) -> None:
    with refused(where):
        read_predict(body.encode(), JSON, 10)


@pytest.mark.parametrize(
    ("body", "where"),
    [
        ('{"labels": [{"id": "1", "label": null}]}', "$.labels[0].label"),
        ('{"labels": [{"id": "1", "label": 1, "secret": 1}]}', "unknown field"),
        ('{"rows": [{"a": 1}], "labels": [0.5]}', "$.labels[0]"),
        ('{"rows": null, "labels": [1]}', "$.rows"),
        ('{"labels": ["yes"]}', "an id and a label"),
        ('{"rows": [{"a": 1}], "labels": [{"id": "1", "label": 1}]}', "label 0"),
        ('{"columns": ["a"], "labels": [{"id": "1", "label": 1}]}', "no rows"),
    ],
)
def test_labels_are_refused_with_the_place(body: str, where: str) -> None:
    with refused(where):
        read_labels(body.encode(), JSON, 10)


@pytest.mark.parametrize(
    ("rest", "where"),
    [
        ('"secret": 1', "unknown field"),
        ('"guard": {"secret": 1}', "unknown field"),
        ('"schema": {"columns": {"a": "secret"}}', "Invalid enum value"),
        ('"guard": {"margin": "1"}', "$.guard.margin"),
        ('"guard": {"min_rows": 9007199254740993}', "$.guard.min_rows"),
        ('"settings": {"n_wait": true}', "$.settings[...]"),
        ('"random_state": -1', "$.random_state"),
        ('"schema": {"columns": {}}', "$.schema.columns"),
    ],
)
def test_a_new_stream_is_refused_with_the_place(rest: str, where: str) -> None:
    with refused(where):
        decode_strictly(f'{{"name": "a", {rest}}}'.encode(), NewStream)
