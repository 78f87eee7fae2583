"""A page goes into JSON and back, and a damaged record says what is wrong."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest

from driftquilt.errors import InputError
from driftquilt.report.figures import quilt_svg
from driftquilt.report.html_lines import script_data
from driftquilt.report.html_tables import view
from driftquilt.report.page import Page
from tests.report.pages import full_page


def test_a_page_comes_back_from_json_as_it_was() -> None:
    record = full_page().to_json()
    again = Page.from_json(json.loads(json.dumps(record)))
    assert again.to_json() == record


def places(record: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place of a record; of a list only the first and the last."""
    if path:
        yield path
    if isinstance(record, dict):
        for key in record:
            yield from places(record[key], (*path, key))
    elif isinstance(record, list) and record:
        for k in {0, len(record) - 1}:
            yield from places(record[k], (*path, k))


def damage(record: Any, path: tuple[Any, ...], value: Any) -> Any:
    damaged = copy.deepcopy(record)
    inner = damaged
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return damaged


@pytest.mark.parametrize("value", [None, "x", -1, [], {}, [[]], True])
def test_whatever_is_damaged_is_an_input_error_or_a_page_that_can_be_drawn(value: Any) -> None:
    page = full_page()
    record = Page(page.title, page.sentences, page.drifts[2:3], page.accuracy, page.columns)
    whole = record.to_json()
    n_refused = 0
    for path in places(whole):
        try:
            read = Page.from_json(damage(whole, path, value))
        except InputError:
            n_refused += 1
            continue
        quilt_svg(read.drifts, read.title)
        view(read)
        script_data(read)
    assert n_refused > 20


@pytest.mark.parametrize(
    ("path", "value", "told"),
    [
        (("title",), 3, "the record of the report has 3 as its 'title', which should be text"),
        (("drifts", 1, "row"), "x", "drift 2, has 'x' as its 'row', which should be a whole"),
        (("drifts", 1, "accuracies", "Quilt"), None, "has None as 'Quilt' of its 'accuracies'"),
        (("accuracy", "by_method", "Quilt"), [], "has 0 values of 'Quilt' for 15 rows"),
        (("drifts", 2, "selection", "folds"), [], "drift 3, cannot be read"),
        (("columns", 0), "x", "the record of a column is 'x', which should be a record"),
    ],
)
def test_the_message_names_what_is_wrong(path: tuple[Any, ...], value: Any, told: str) -> None:
    with pytest.raises(InputError, match=told):
        Page.from_json(damage(full_page().to_json(), path, value))


@pytest.mark.parametrize("key", list(Page("", (), ()).to_json()))
def test_nothing_may_be_missing(key: str) -> None:
    record = full_page().to_json()
    del record[key]
    with pytest.raises(InputError, match=f"'{key}'"):
        Page.from_json(record)


@pytest.mark.parametrize("record", [None, [], "x", 3])
def test_what_is_no_record_is_an_input_error(record: Any) -> None:
    with pytest.raises(InputError, match="should be a record"):
        Page.from_json(record)
