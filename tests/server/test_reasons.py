"""What is said of a refused body: our own names and plain words, nothing of the caller's."""

from __future__ import annotations

import pytest

from driftquilt.server.bodies import read_labels_body, read_rows, read_strictly
from driftquilt.server.house import NewStream
from driftquilt.server.media import JSON
from driftquilt.server.problems import Problem

NO_BOOLEAN = "takes a number, text or null, but a boolean came; send 1 or 0"


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ('{"rows": [{"secret": true}]}', f"rows[0][...] {NO_BOOLEAN}"),
        ('{"columns": ["a"], "rows": [[1], [true]]}', f"rows[1][0] {NO_BOOLEAN}"),
        (
            '{"rows": [{"a": [1]}]}',
            "rows[0][...] takes a number, text or null, but a list came",
        ),
        ('{"rows": [1]}', "rows[0] takes an object, but a whole number came"),
        ('{"rows": {}}', "rows takes a list, but an object came"),
        ('{"rows": [], "keep": 2}', "keep takes a boolean, but a whole number came"),
        ('{"rows": [], "columns": [null]}', "columns[0] takes text, but null came"),
        ("[]", "the body takes an object, but a list came"),
        ("{}", "the body has no rows"),
        (
            '{"rows": [], "secret": 1}',
            "the body has a key that is not known here; there are rows, columns, keep",
        ),
        ('{"rows": [{"a": 1e999}]}', "rows[0][...] does not hold what it should"),
    ],
)
def test_rows_are_refused_in_plain_words(body: str, said: str) -> None:
    with pytest.raises(Problem) as refused:
        read_rows(body.encode(), JSON, 10)
    assert refused.value.detail == said


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (
            '{"labels": [{"id": "1", "label": null}]}',
            "labels[0].label takes a whole number, text or a boolean, but null came",
        ),
        (
            '{"labels": [{"id": "1", "label": 1, "secret": 1}]}',
            "labels[0] has a key that is not known here; there are id, label",
        ),
        (
            '{"rows": [{"a": 1}], "labels": [0.5]}',
            "labels[0] takes a whole number, text or a boolean, but a number came",
        ),
    ],
)
def test_labels_are_refused_in_plain_words(body: str, said: str) -> None:
    with pytest.raises(Problem) as refused:
        read_labels_body(body.encode(), JSON, 10)
    assert refused.value.detail == said


@pytest.mark.parametrize(
    ("rest", "said"),
    [
        (
            '"secret": 1',
            "the body has a key that is not known here; there are name, detector, guard, "
            "settings, schema, random_state",
        ),
        (
            '"guard": {"secret": 1}',
            "guard has a key that is not known here; there are cool_down, min_rows, margin",
        ),
        (
            '"schema": {"columns": {}, "secret": 1}',
            "schema has a key that is not known here; there are columns, labels",
        ),
        ('"guard": {"margin": "1"}', "guard.margin takes a number, but text came"),
        ('"guard": {"min_rows": 9007199254740993}', "guard.min_rows is at most 9007199254740992"),
        (
            '"settings": {"n_wait": true}',
            "settings[...] takes a number, a whole number or null, but a boolean came",
        ),
    ],
)
def test_a_new_stream_is_refused_in_plain_words(rest: str, said: str) -> None:
    with pytest.raises(Problem) as refused:
        read_strictly(f'{{"name": "a", {rest}}}'.encode(), NewStream)
    assert refused.value.detail == said
