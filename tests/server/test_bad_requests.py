"""Bodies, paths and parameters that are wrong: each is refused in few words, by its own status."""

from __future__ import annotations

import json

import pytest

from tests.server.attacked import JSON, LABELS, MARK, PREDICT, Attacked

ROW = f'{{"age": 1, "city": "{MARK}"}}'


def rows(value: str) -> bytes:
    return f'{{"rows": [{{"age": {value}, "city": "{MARK}"}}]}}'.encode()


def labelled(label: str) -> bytes:
    return f'{{"rows": [{ROW}], "labels": [{label}]}}'.encode()


def by_id(row_id: str, label: str = f'"{MARK}"') -> bytes:
    return f'{{"labels": [{{"id": {row_id}, "label": {label}}}]}}'.encode()


NUMBERS = {
    "NaN": (400, rows("NaN")),
    "Infinity": (400, rows("Infinity")),
    "-Infinity": (400, rows("-Infinity")),
    "nan in lower case": (400, rows("nan")),
    "a number beyond float32": (422, rows("1e300")),
    "a negative number beyond float32": (422, rows("-3.5e38")),
    "a number beyond float64": (422, rows("1e400")),
    "an int of 400 digits": (422, rows("9" * 400)),
    "an int of 5,000 digits": (422, rows("9" * 5000)),
    "a number as text": (422, rows('"31"')),
    "a boolean": (422, rows("true")),
    "a list": (422, rows("[1]")),
    "an object": (422, rows("{}")),
    "hexadecimal": (400, rows("0x1f")),
    "a leading zero": (400, rows("01")),
    "a plus sign": (400, rows("+1")),
    "no digit after the point": (400, rows("1.")),
    "an apostrophe": (400, rows("'1'")),
    "nothing": (400, rows("")),
}

SHAPES = {
    "no body": (400, b""),
    "blanks": (400, b"  \n"),
    "null": (422, b"null"),
    "a list": (422, f'["{MARK}"]'.encode()),
    "a text": (422, f'"{MARK}"'.encode()),
    "no rows": (422, f'{{"columns": ["{MARK}"]}}'.encode()),
    "rows that are null": (422, b'{"rows": null}'),
    "rows that are an object": (422, f'{{"rows": {ROW}}}'.encode()),
    "no row": (422, b'{"rows": []}'),
    "no row, with columns": (422, f'{{"columns": ["{MARK}"], "rows": []}}'.encode()),
    "a row that is null": (422, b'{"rows": [null]}'),
    "a list without columns": (422, f'{{"rows": [[1, "{MARK}"]]}}'.encode()),
    "objects with columns": (422, f'{{"columns": ["age", "city"], "rows": [{ROW}]}}'.encode()),
    "too few values": (422, f'{{"columns": ["age", "{MARK}"], "rows": [[1]]}}'.encode()),
    "too many values": (422, f'{{"columns": ["age"], "rows": [[1, "{MARK}"]]}}'.encode()),
    "ragged": (422, f'{{"columns": ["age"], "rows": [[1], [1, "{MARK}"], []]}}'.encode()),
    "numbers and text": (422, f'{{"rows": [{{"a": 1}}, {{"a": "{MARK}"}}]}}'.encode()),
    "numbers and text in lists": (
        422, f'{{"columns": ["a"], "rows": [[1], ["{MARK}"]]}}'.encode()
    ),
    "a column twice": (422, f'{{"columns": ["{MARK}"], "rows": [[1]], "columns": []}}'.encode()),
    "two columns of a name": (422, b'{"columns": ["age", "age"], "rows": [[1, 2]]}'),
    "columns that are numbers": (422, f'{{"columns": [1], "rows": [["{MARK}"]]}}'.encode()),
    "a key twice": (422, f'{{"rows": [{{"{MARK}": 1, "{MARK}": 2}}]}}'.encode()),
    "a key twice, once escaped": (422, b'{"rows": [{"age": 1, "\\u0061ge": 2}]}'),
    "rows twice": (422, f'{{"rows": ["{MARK}"], "rows": [{ROW}]}}'.encode()),
    "rows twice, once an int of 5,000 digits": (
        422, f'{{"rows": [{"9" * 5000}], "rows": [{ROW}]}}'.encode()
    ),
    "rows twice, once bad UTF-8": (422, b'{"rows": ["\xff"], "rows": [' + ROW.encode() + b"]}"),
    "an unknown key": (422, f'{{"rows": [{ROW}], "{MARK}": 1}}'.encode()),
    "keep that is a number": (422, f'{{"rows": [{ROW}], "keep": 1}}'.encode()),
    "more after the end": (400, f'{{"rows": [{ROW}]}} "{MARK}"'.encode()),
    "a comma too many": (400, f'{{"rows": [{ROW},]}}'.encode()),
    "a comment": (400, f'{{"rows": [{ROW}] /* {MARK} */}}'.encode()),
    "cut short": (400, f'{{"rows": [{ROW}, {{"age": 1, "ci'.encode()),
    "a column called label": (422, f'{{"rows": [{{"age": 1, "label": "{MARK}"}}]}}'.encode()),
    "no known column": (422, f'{{"rows": [{{"{MARK}": 1}}]}}'.encode()),
    "too many rows": (413, f'{{"rows": [{", ".join([ROW] * 1001)}]}}'.encode()),
    "too many columns": (
        422, json.dumps({"rows": [{f"{MARK}{k}": 1 for k in range(10_001)}]}).encode()
    ),
    "few rows that would be many values": (
        413,
        json.dumps(
            {"rows": [{f"{MARK}{k}-{j}": 1 for j in range(9)} for k in range(1000)]}
        ).encode(),
    ),
}  # fmt: skip

LETTERS = {
    "bad UTF-8": (400, b'{"rows": [{"age": 1, "city": "\xff\xfe"}]}'),
    "overlong UTF-8": (400, b'{"rows": [{"age": 1, "city": "\xc0\xaf"}]}'),
    "UTF-8 cut short": (400, b'{"rows": [{"age": 1, "city": "\xe2\x82"}]}'),
    "a surrogate as UTF-8": (400, b'{"rows": [{"age": 1, "city": "\xed\xa0\x80"}]}'),
    "half a surrogate pair": (400, rows('1, "b": "\\ud800"')),
    "the other half": (400, rows('1, "b": "\\udc00"')),
    "half a pair in a name": (400, rows('1, "\\ud83d": 1')),
    "a byte order mark": (400, b"\xef\xbb\xbf" + rows("1")),
    "UTF-16": (400, rows("1").decode().encode("utf-16")),
    "UTF-32": (400, rows("1").decode().encode("utf-32-le")),
    "a line break in a text": (400, rows('1, "b": "\n"')),
    "a null byte in a text": (400, rows('1, "b": "\0"')),
    "a null byte before": (400, b"\0" + rows("1")),
    "a bad escape": (400, rows('1, "b": "\\x41"')),
    "deep lists": (422, b"[" * 100_000),
    "deep lists in a row": (422, b'{"rows": [{"age": ' + b"[" * 100_000),
    "deep lists in rows": (422, b'{"rows": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"),
    "deep objects": (422, b'{"rows":' * 100_000),
    "deep lists in a key that came twice": (
        422, b'{"rows": ' + b"[" * 100_000 + b"]" * 100_000 + b', "rows": []}'
    ),
}  # fmt: skip

LABELLED = {
    "no labels": (422, f'{{"rows": [{ROW}]}}'.encode()),
    "fewer labels than rows": (422, f'{{"rows": [{ROW}, {ROW}], "labels": ["{MARK}"]}}'.encode()),
    "more labels than rows": (422, labelled(f'"yes", "{MARK}"')),
    "a label that is null": (422, labelled("null")),
    "a label that is a fraction": (422, labelled("1.5")),
    "a label that is a list": (422, labelled(f'["{MARK}"]')),
    "a label of 65 bits": (422, labelled(str(2**63))),
    "a label of 400 digits": (422, labelled("9" * 400)),
    "a label of another kind": (422, labelled("1")),
    "a label that ends in a zero": (422, labelled(f'"{MARK}\\u0000"')),
    "labels of two kinds": (422, f'{{"rows": [{ROW}, {ROW}], "labels": ["{MARK}", 1]}}'.encode()),
    "keep": (422, f'{{"rows": [{ROW}], "labels": ["{MARK}"], "keep": true}}'.encode()),
    "columns without rows": (422, f'{{"columns": ["{MARK}"], "labels": []}}'.encode()),
    "no label": (422, b'{"labels": []}'),
    "an id that is a number": (422, by_id("1")),
    "an id that is null": (422, by_id("null")),
    "an empty id": (404, by_id('""')),
    "an id that never was": (404, by_id('"ffff-0"')),
    "an id of a negative row": (404, by_id('"1--1"')),
    "an id like a path": (404, by_id('"../../etc/passwd"')),
    "an id with a null byte": (404, by_id('"1-0\\u0000"')),
    "an id of strange digits": (404, by_id('"\u0661-\u0660"')),
    "an id with an underscore": (404, by_id('"0_1-0"')),
    "an id with blanks": (404, by_id('" 1- 0"')),
    "an id of a million letters": (422, by_id(f'"{"f" * 1_000_000}-0"')),
    "an id without its label": (422, f'{{"labels": [{{"id": "{MARK}"}}]}}'.encode()),
    "an id twice": (422, by_id('"1-0", "id": "1-1"')),
    "an id with more": (422, by_id(f'"1-0", "{MARK}": 1')),
    "too many labels": (
        413, json.dumps({"labels": [{"id": "1-0", "label": MARK}] * 1001}).encode()
    ),
}  # fmt: skip

NEW_STREAMS = {
    "no name": f'{{"detector": "{MARK}"}}',
    "a name like a path": f'{{"name": "../{MARK}"}}',
    "a name with a slash": f'{{"name": "a/{MARK}"}}',
    "a name with a line break after it": f'{{"name": "{MARK}\\n"}}',
    "a name with a null byte": f'{{"name": "{MARK}\\u0000"}}',
    "a name in capitals": f'{{"name": "{MARK.upper()}"}}',
    "a name that is empty": '{"name": ""}',
    "a name with a dot before it": f'{{"name": ".{MARK}"}}',
    "a long name": f'{{"name": "{MARK * 100}"}}',
    "a name in other letters": f'{{"name": "{MARK}é"}}',
    "a name that is a number": '{"name": 1}',
    "an unknown detector": f'{{"name": "a", "detector": "{MARK}"}}',
    "a detector without a kind": f'{{"name": "a", "detector": {{"{MARK}": 1}}}}',
    "a detector's unknown setting": (
        f'{{"name": "a", "detector": {{"kind": "adwin", "{MARK}": 1}}}}'
    ),
    "a detector's huge setting": '{"name": "a", "detector": {"kind": "adwin", "clock": 1e308}}',
    "a detector's text setting": (
        f'{{"name": "a", "detector": {{"kind": "adwin", "delta": "{MARK}"}}}}'
    ),
    "an unknown setting": f'{{"name": "a", "settings": {{"{MARK}": 1}}}}',
    "a setting below its least": '{"name": "a", "settings": {"n_wait": -1}}',
    "a setting that is text": f'{{"name": "a", "settings": {{"n_wait": "{MARK}"}}}}',
    "a setting that is a fraction": '{"name": "a", "settings": {"n_wait": 1.5}}',
    "a huge setting": f'{{"name": "a", "settings": {{"n_wait": {10**400}}}}}',
    "a setting as large as a float": '{"name": "a", "settings": {"max_rows": 1e308}}',
    "a guard's unknown setting": f'{{"name": "a", "guard": {{"{MARK}": 1}}}}',
    "a guard's huge margin": '{"name": "a", "guard": {"margin": 1e400}}',
    "a guard's negative rows": '{"name": "a", "guard": {"min_rows": -1}}',
    "a schema without columns": '{"name": "a", "schema": {"columns": {}}}',
    "a schema with unknown kinds": f'{{"name": "a", "schema": {{"columns": {{"x": "{MARK}"}}}}}}',
    "a schema without labels": '{"name": "a", "schema": {"columns": {"x": "text"}, "labels": []}}',
    "a schema with mixed labels": (
        f'{{"name": "a", "schema": {{"columns": {{"x": "text"}}, "labels": [1, "{MARK}"]}}}}'
    ),
    "a schema with a huge label": (
        f'{{"name": "a", "schema": {{"columns": {{"x": "text"}}, "labels": [{2**63}]}}}}'
    ),
    "a schema with a column called label": (
        '{"name": "a", "schema": {"columns": {"label": "text"}}}'
    ),
    "a negative random state": '{"name": "a", "random_state": -1}',
    "a random state of 33 bits": f'{{"name": "a", "random_state": {2**32}}}',
    "a fractional random state": '{"name": "a", "random_state": 0.5}',
}  # fmt: skip

PATHS = {
    "dots": (404, "GET", "/v1/streams/../../etc/passwd"),
    "escaped dots": (404, "GET", "/v1/streams/%2e%2e/%2e%2e/etc/passwd"),
    "an escaped path": (404, "GET", "/v1/streams/..%2f..%2fetc%2fpasswd"),
    "dots for a name": (422, "GET", "/v1/streams/.."),
    "a null byte": (422, "GET", "/v1/streams/s%00"),
    "a line break": (422, "GET", "/v1/streams/s%0a"),
    "bad UTF-8": (422, "GET", "/v1/streams/%ff%fe"),
    "capitals": (422, "GET", "/v1/streams/S"),
    "a long name": (422, "GET", f"/v1/streams/{MARK * 500}"),
    "no name": (404, "GET", "/v1/streams/"),
    "an unknown stream": (404, "GET", f"/v1/streams/{MARK}"),
    "a file outside the page": (404, "GET", "/static/..%2fapp.py"),
    "a file beside the page": (404, "GET", "/static/../app.py"),
    "an unknown path": (404, "GET", f"/{MARK}"),
    "an unknown method": (405, "PUT", "/v1/streams/s"),
    "a method that another path has": (405, "DELETE", PREDICT),
    "a version that is text": (422, "GET", f"/v1/streams/s/models/{MARK}/file"),
    "a version of 5,000 digits": (422, "GET", f"/v1/streams/s/models/{'9' * 5000}/file"),
    "a version below the first": (422, "GET", "/v1/streams/s/models/0/file"),
    "an unknown version": (404, "GET", "/v1/streams/s/models/7/file"),
    "an unknown format": (422, "GET", f"/v1/streams/s/models/1/file?format={MARK}"),
    "a negative limit": (422, "GET", "/v1/streams/s/events?limit=-1"),
    "a huge limit": (422, "GET", "/v1/streams/s/events?limit=1e400"),
    "an after that is no number": (422, "GET", f"/v1/streams/s/events?after={MARK}"),
    "an after of 100 digits": (422, "GET", f"/v1/streams/s/events/live?after={'9' * 100}"),
    "an unknown selection": (404, "GET", "/v1/streams/s/selections/7"),
    "an unknown promotion": (404, "POST", "/v1/streams/s/models/7/promote"),
    "nothing to roll back to": (409, "POST", "/v1/streams/s/models/rollback"),
}


@pytest.mark.parametrize("name", [*NUMBERS, *SHAPES, *LETTERS])
def test_a_bad_body_is_not_predicted(attacked: Attacked, name: str) -> None:
    status, body = (NUMBERS | SHAPES | LETTERS)[name]
    attacked.expect_refusal(attacked.ask(PREDICT, body), status)


@pytest.mark.parametrize("name", [*NUMBERS, *LETTERS])
def test_a_bad_row_is_not_learned(attacked: Attacked, name: str) -> None:
    status, body = (NUMBERS | LETTERS)[name]
    with_labels = body[:-1] + b', "labels": ["yes"]}' if body.endswith(b"]}") else body
    attacked.expect_refusal(attacked.ask(LABELS, with_labels), status)


@pytest.mark.parametrize("name", LABELLED)
def test_bad_labels_are_not_learned(attacked: Attacked, name: str) -> None:
    status, body = LABELLED[name]
    attacked.expect_refusal(attacked.ask(LABELS, body), status)


@pytest.mark.parametrize("name", NEW_STREAMS)
def test_no_stream_is_made_of_bad_settings(attacked: Attacked, name: str) -> None:
    attacked.expect_refusal(attacked.ask("/v1/streams", NEW_STREAMS[name].encode()), 422)
    known = json.loads(attacked.ask("/v1/streams", None, method="GET").body)["streams"]
    assert {stream["name"] for stream in known} == {"declared", "s"}


@pytest.mark.parametrize("name", PATHS)
def test_a_bad_path_leads_nowhere(attacked: Attacked, name: str) -> None:
    status, method, path = PATHS[name]
    attacked.expect_refusal(attacked.ask(path, None, method=method), status)


@pytest.mark.parametrize(
    "kind", ["", "text/plain", "application/xml", "application/jsonp", "multipart/form-data", MARK]
)
def test_a_body_of_another_type_is_refused(attacked: Attacked, kind: str) -> None:
    attacked.expect_refusal(attacked.ask(PREDICT, rows("1"), kind=kind), 415)


@pytest.mark.parametrize("encoding", ["gzip", "br", "zstd", "deflate, gzip", MARK])
def test_an_encoded_body_is_refused(attacked: Attacked, encoding: str) -> None:
    answer = attacked.ask(PREDICT, rows("1"), f"Content-Encoding: {encoding}")
    attacked.expect_refusal(answer, 415)


@pytest.mark.parametrize("accept", ["text/html", "image/png, text/csv", MARK])
def test_an_answer_of_another_type_is_not_to_be_had(attacked: Attacked, accept: str) -> None:
    attacked.expect_refusal(attacked.ask(PREDICT, rows("1"), f"Accept: {accept}"), 406)


@pytest.mark.parametrize("key", ["", "a b", "a/b", f"{MARK}!", "é", "k" * 129])
def test_a_bad_key_is_refused(attacked: Attacked, key: str) -> None:
    answer = attacked.ask(LABELS, labelled('"yes"'), f"Idempotency-Key: {key}")
    attacked.expect_refusal(answer, 422)


def test_rows_that_were_not_declared_are_refused(attacked: Attacked) -> None:
    path = "/v1/streams/declared/labels"
    for row in (f'{{"age": "{MARK}"}}', '{"city": 1}', f'{{"age": 1, "{MARK}": 1}}'):
        body = f'{{"rows": [{row}], "labels": ["yes"]}}'.encode()
        attacked.expect_refusal(attacked.ask(path, body), 422)
    attacked.expect_refusal(attacked.ask(path, labelled(f'"{MARK}"')), 422)
    attacked.expect_refusal(attacked.ask("/v1/streams", b'{"name": "s"}', kind=JSON), 409)
