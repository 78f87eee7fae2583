"""The settings of the service: flags, then the environment, then a TOML file, then defaults.

Each can be given as a flag (`--max-rows 500`), as a variable (`DRIFTQUILT_SERVE_MAX_ROWS=500`)
or in a file (`max_rows = 500`); the first that is there wins. `driftquilt serve --help` says what
each means.

>>> settings = load_settings(port=9000)
>>> settings.port, settings.host, settings.is_loopback
(9000, '127.0.0.1', True)
>>> load_settings(port=70000)
Traceback (most recent call last):
driftquilt.errors.InputError: port is 70000: Expected `int` <= 65535; set it with --port, \
DRIFTQUILT_SERVE_PORT or in the file of --config
"""

from __future__ import annotations

import ipaddress
import os
import re
import tomllib
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from driftquilt.brokers import find_source
from driftquilt.errors import InputError
from driftquilt.server.schemas import NAME, NAME_WORDS

__all__ = ["ServeSettings", "load_settings"]

_PREFIX = "DRIFTQUILT_SERVE_"
_SECRET = ("feeds", "answers")  # addresses may hold passwords
_FLAGS = {"feeds": "--feed"}
_FOREVER = 1e15  # above any rate; also refuses infinity

Count = Annotated[int, Meta(ge=1)]
Bytes = Annotated[int, Meta(ge=1 << 20)]
Seconds = Annotated[float, Meta(gt=0, le=3600)]


class ServeSettings(Struct, frozen=True):
    """Every setting; `load_settings` checks them."""

    store: Path = Path("state")
    host: Annotated[str, Meta(min_length=1)] = "127.0.0.1"
    port: Annotated[int, Meta(ge=0, le=65535)] = 8321
    max_body_bytes: Annotated[int, Meta(ge=1024)] = 8 * 1024 * 1024
    max_rows: Count = 10_000
    max_streams: Count = 100
    max_waiting: Count = 100_000
    max_waiting_bytes: Bytes = 256 * 1024 * 1024
    max_backlog: Count = 50_000
    max_backlog_bytes: Bytes = 64 * 1024 * 1024
    max_connections: Count = 1_000
    rate: Annotated[float, Meta(gt=0, le=_FOREVER)] = 5_000.0
    body_seconds: Seconds = 30.0
    drain_seconds: Seconds = 20.0
    n_workers: Annotated[int, Meta(ge=1, le=256)] = 1
    feeds: dict[str, str] = {}
    answers: dict[str, str] = {}
    log_format: Literal["json", "text"] = "json"
    log_level: Literal["debug", "info", "warning", "error"] = "info"

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach the service."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host.strip("[]")).is_loopback
        except ValueError:  # a name, which may stand for any address
            return False

    def to_json(self) -> dict[str, Any]:
        """Return plain values, without the addresses of brokers."""
        values = msgspec.structs.asdict(self) | {"store": str(self.store)}
        return values | {name: dict.fromkeys(values[name], "**********") for name in _SECRET}

    def __repr__(self) -> str:
        return f"ServeSettings({self.to_json()!r})"


_FIELDS = {field.name: field.type for field in msgspec.structs.fields(ServeSettings)}


def load_settings(config: Path | None = None, **flags: Any) -> ServeSettings:
    """Return the settings of flags, environment and file, checked."""
    in_file = {} if config is None else _read_file(config)
    where = "" if config is None else f" in {config}"
    values = {**in_file, **_read_environment(), **flags}
    for name in values.keys() - _FIELDS.keys():
        raise _unknown(name, where)
    settings = ServeSettings(**{name: _convert(name, value) for name, value in values.items()})
    _expect_brokers(settings)
    return settings


def _convert(name: str, value: Any) -> Any:
    try:
        if name == "store" and value == "":  # it would be the current folder
            raise msgspec.ValidationError("Expected a path")
        return msgspec.convert(value, _FIELDS[name], strict=False, dec_hook=_to_path)
    except msgspec.ValidationError as error:
        flag = _FLAGS.get(name, f"--{name.replace('_', '-')}")
        wrong = f"{name}" if name in _SECRET else f"{name} is {value!r}"
        if isinstance(value, str) and error.args[0].startswith("Invalid enum value"):
            expected = f"Expected one of {', '.join(map(repr, _FIELDS[name].__args__))}"
        else:
            expected = str(error)
        raise InputError(
            f"{wrong}: {expected}; set it with {flag}, {_PREFIX}{name.upper()} or in the file of "
            "--config"
        ) from None  # an address of a broker may hold a password


def _to_path(kind: type, value: Any) -> Any:
    if kind is Path and isinstance(value, str | Path):
        return Path(value)
    raise msgspec.ValidationError("Expected a path")


def _read_file(config: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(config.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(
            f"cannot read the settings in {config}: {error}; give --config a TOML file"
        ) from error


def _read_environment() -> dict[str, Any]:
    """Return settings by name; a variable that sets nothing would be a limit that nobody keeps."""
    values: dict[str, Any] = {}
    for variable, value in sorted(os.environ.items()):
        if not variable.upper().startswith(_PREFIX):
            continue
        name = variable[len(_PREFIX) :].lower()
        if name not in _FIELDS:
            raise _unknown(name, f" for the variable {variable}")
        values[name] = _read_brokers(name, value) if name in _SECRET else value
    return values


def _read_brokers(name: str, value: str) -> Any:
    try:
        return msgspec.json.decode(value)
    except msgspec.DecodeError:
        raise InputError(
            f"{_PREFIX}{name.upper()} cannot be read; in the environment, feeds and answers are "
            'JSON objects such as {"clicks": "redis://host?stream=rows"}'
        ) from None


def _unknown(name: str, where: str) -> InputError:
    return InputError(f"there is no setting {name!r}{where}; there are {', '.join(_FIELDS)}")


def _expect_brokers(settings: ServeSettings) -> None:
    """Refuse what no feed could ever use, before anybody waits for it."""
    for name in settings.answers.keys() - settings.feeds.keys():
        raise InputError(
            f"answers has the stream {name!r}, which no broker feeds; give its feed as well"
        )
    for setting in _SECRET:
        for name, url in getattr(settings, setting).items():
            if not re.fullmatch(NAME, name):
                raise InputError(f"{setting} has the stream {name!r}, but {NAME_WORDS}")
            try:
                find_source(url)
            except InputError as error:
                raise InputError(f"{setting}, stream {name!r}: {error}") from error
