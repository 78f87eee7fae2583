"""Logs: one line per record, for machines or people, and never a secret."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from driftquilt.server.logs import JsonLines, TextLines, configure_logs, request_id

SECRET = "dq_" + "A1-_" * 10 + "abc"
NAMES = ("driftquilt", "uvicorn.error", "uvicorn.access")


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    loggers = [logging.getLogger(name) for name in NAMES]
    before = [(log.handlers, log.level, log.propagate, log.disabled) for log in loggers]
    yield
    for log, (handlers, level, propagate, disabled) in zip(loggers, before, strict=True):
        log.handlers, log.level, log.propagate, log.disabled = handlers, level, propagate, disabled


def lines(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in capsys.readouterr().err.splitlines()]


def test_a_line_has_the_time_the_level_the_request_and_the_fields(
    capsys: pytest.CaptureFixture[str],
) -> None:
    configure_logs("json", "info")
    held = request_id.set("r-1")
    logging.getLogger("driftquilt.server").info("answered", extra={"status": 200, "seconds": 0.5})
    request_id.reset(held)
    [line] = lines(capsys)
    assert line.pop("time").endswith("+00:00")
    assert line == {
        "level": "info", "logger": "driftquilt.server", "message": "answered",
        "request_id": "r-1", "status": 200, "seconds": 0.5,
    }  # fmt: skip


def test_outside_of_a_request_there_is_no_id(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logs("json", "info")
    logging.getLogger("uvicorn.error").info("started", extra={"color_message": "started"})
    [line] = lines(capsys)
    assert list(line) == ["time", "level", "logger", "message"]


def test_what_is_below_the_level_is_not_said_and_nothing_is_said_twice(
    capsys: pytest.CaptureFixture[str],
) -> None:
    configure_logs("json", "warning")
    configure_logs("json", "warning")
    for level in (logging.INFO, logging.WARNING):
        logging.getLogger("driftquilt").log(level, "a")
    logging.getLogger("uvicorn.access").warning("GET /?token=x")
    assert len(lines(capsys)) == 1


@pytest.mark.parametrize("form", [JsonLines(), TextLines()])
def test_a_secret_is_never_written(form: logging.Formatter) -> None:
    record = logging.LogRecord(
        "driftquilt", logging.INFO, "", 0, "got %s and Bearer other.secret", (SECRET,), None
    )
    fields = {"Authorization": "s3cret", "query": "s3cret", "path": f"/x/{SECRET}", "n": 1}
    vars(record).update(fields)
    line = form.format(record)
    assert "got *** and Bearer ***" in line
    assert not any(secret in line for secret in (SECRET, SECRET[3:], "other.secret", "s3cret"))
    assert "/x/***" in line


@pytest.mark.parametrize("form", [JsonLines(), TextLines()])
def test_a_record_is_one_line_even_with_a_traceback_or_a_forged_break(
    form: logging.Formatter,
) -> None:
    try:
        raise ValueError("deep\ntrouble")
    except ValueError:
        caught = sys.exc_info()
    record = logging.LogRecord("driftquilt", logging.ERROR, "", 0, "a\r\nb", (), caught)
    line = form.format(record)
    assert len(line.splitlines()) == 1
    assert "Traceback" in line
    assert "ValueError: deep" in line


def test_a_value_that_json_lacks_is_written_as_text() -> None:
    record = logging.LogRecord("driftquilt", logging.INFO, "", 0, "a", (), None)
    record.where = {1, 2}
    assert json.loads(JsonLines().format(record))["where"] == "{1, 2}"


def test_what_others_note_on_every_record_is_left_out() -> None:
    record = logging.LogRecord("driftquilt", logging.INFO, "", 0, "a", (), None)
    record._ray_timestamp_ns = 1
    assert "timestamp_ns" not in JsonLines().format(record)
