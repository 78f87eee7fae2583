"""Logs on standard error: one line per request and per event.

As JSON, a line is an object with `time`, `level`, `logger`, `message`, the `request_id` of the
request it belongs to, and whatever was given as `extra`; as text, the same to read. A line
break within a message stays within its line. What looks like a secret is never written:
fields with such names are dropped, and a token in any text is replaced.

uvicorn's own access log is off: it has no request ids and writes query strings. The middleware
writes the lines of many requests at once, with `write_lines`.

>>> record = logging.LogRecord("driftquilt", logging.INFO, "", 0, "served %d rows", (3,), None)
>>> record.created, record.stream = 0.0, "clicks"
>>> print(JsonLines().format(record))  # doctest: +NORMALIZE_WHITESPACE
{"time": "1970-01-01T00:00:00.000+00:00", "level": "info", "logger": "driftquilt",
 "message": "served 3 rows", "stream": "clicks"}
>>> print(TextLines().format(record))
1970-01-01T00:00:00.000+00:00 info served 3 rows stream=clicks
"""

from __future__ import annotations

import json
import logging
import re
import sys
from collections.abc import Sequence
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any

import orjson

__all__ = ["JsonLines", "TextLines", "configure_logs", "request_id", "write_lines"]

request_id: ContextVar[str | None] = ContextVar("request_id", default=None)
"""The id of the request that is being served; the lines of its logs carry it."""

_LOGGERS = ("driftquilt", "uvicorn.error")
_SECRET_FIELDS = {"authorization", "cookie", "headers", "token", "secret", "password", "query"}
_SECRET = re.compile(r"(?:dq_[A-Za-z0-9_-]{8,}|(?<=Bearer )[\w.~+/=-]+)", re.IGNORECASE)
_BUILT_IN = {*vars(logging.makeLogRecord({})), "message", "asctime", "taskName", "color_message"}
_log = logging.getLogger("driftquilt")


class JsonLines(logging.Formatter):
    """Format a record as one line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        return _without_secrets(json.dumps(_values(record), ensure_ascii=False, default=str))


class TextLines(logging.Formatter):
    """Format a record as one line to read."""

    def format(self, record: logging.LogRecord) -> str:
        return _without_secrets(_to_text(_values(record)))


def configure_logs(log_format: str, log_level: str) -> None:
    """Send the logs of the service and of its web server to standard error, in this form.

    The web server has to leave its logs alone (`log_config=None`).
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if log_format == "json" else TextLines())
    for name in _LOGGERS:
        logger = logging.getLogger(name)
        logger.handlers = [handler]
        logger.setLevel(log_level.upper())
        logger.propagate = False
    logging.getLogger("uvicorn.access").disabled = True


def write_lines(lines: Sequence[dict[str, Any]]) -> None:
    """Write lines that hold no secret, all at once."""
    for handler in _log.handlers:
        if isinstance(handler, logging.StreamHandler) and lines:
            as_text = isinstance(handler.formatter, TextLines)
            texts = [_to_text(v) if as_text else orjson.dumps(v).decode() for v in lines]
            handler.stream.write("\n".join(texts) + "\n")
            handler.flush()


def _values(record: logging.LogRecord) -> dict[str, Any]:
    time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
    values: dict[str, Any] = {
        "time": time, "level": record.levelname.lower(), "logger": record.name,
        "message": record.getMessage(),
    }  # fmt: skip
    if request_id.get() is not None:
        values["request_id"] = request_id.get()
    values |= {
        name: value
        for name, value in vars(record).items()
        if name not in _BUILT_IN
        and name.lower() not in _SECRET_FIELDS
        and not name.startswith("_")  # what libraries such as Ray add to every record
    }
    if record.exc_info:
        values["error"] = logging.Formatter().formatException(record.exc_info)
    return values


def _to_text(values: dict[str, Any]) -> str:
    parts = [str(values[key]) for key in ("time", "level", "message")]
    fields = [
        f"{k}={v}" for k, v in values.items() if k not in ("time", "level", "message", "logger")
    ]
    return re.sub(r"\s*\n\s*", " | ", " ".join([*parts, *fields]).strip())


def _without_secrets(text: str) -> str:
    return _SECRET.sub("***", text)
