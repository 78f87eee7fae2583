"""The settings of the service: flags, then the environment, then a TOML file, then defaults.

Each can be given as a flag (`--max-rows 500`), as a variable (`DRIFTQUILT_SERVE_MAX_ROWS=500`)
or in a file (`max_rows = 500`); the first that has a word wins. What they mean stands in
`setting_words`.

>>> settings = ServeSettings(port=9000)
>>> settings.port, settings.host, settings.is_loopback
(9000, '127.0.0.1', True)
>>> ServeSettings(port=70000)
Traceback (most recent call last):
driftquilt.errors.InputError: port should be less than or equal to 65535, but got 70000; \
set it with --port, DRIFTQUILT_SERVE_PORT or in the file of --config
"""

from __future__ import annotations

import ipaddress
import os
import re
import tomllib
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, SecretStr, ValidationError, field_validator
from pydantic_core import PydanticCustomError
from pydantic_settings import (
    BaseSettings,
    InitSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    SettingsError,
)

from driftquilt.brokers.connect import find_source
from driftquilt.errors import InputError
from driftquilt.server.names import NAME, NAME_WORDS

__all__ = ["ServeSettings"]

_PREFIX = "DRIFTQUILT_SERVE_"
_SECRET = ("feeds", "answers")  # addresses may hold passwords
_FLAGS = {"feeds": "--feed"}

Count = Annotated[int, Field(ge=1)]
Seconds = Annotated[float, Field(gt=0, le=3600, allow_inf_nan=False)]


class ServeSettings(BaseSettings):
    """Every setting, checked. `config` is a TOML file to read besides."""

    model_config = SettingsConfigDict(env_prefix=_PREFIX, frozen=True, extra="forbid")

    store: Path = Path("state")
    host: Annotated[str, Field(min_length=1)] = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65535)] = 8321
    max_body_bytes: Annotated[int, Field(ge=1024)] = 8 * 1024 * 1024
    max_rows: Count = 10_000
    max_streams: Count = 100
    max_waiting: Count = 100_000
    max_waiting_bytes: Annotated[int, Field(ge=1 << 20)] = 256 * 1024 * 1024
    max_backlog: Count = 50_000
    max_backlog_bytes: Annotated[int, Field(ge=1 << 20)] = 64 * 1024 * 1024
    max_connections: Count = 1_000
    rate: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 5_000.0
    body_seconds: Seconds = 30.0
    drain_seconds: Seconds = 20.0
    n_workers: Annotated[int, Field(ge=1, le=256)] = 1
    feeds: dict[str, SecretStr] = {}
    answers: dict[str, SecretStr] = {}
    log_format: Literal["json", "text"] = "json"
    log_level: Literal["debug", "info", "warning", "error"] = "info"

    def __init__(self, config: Path | None = None, **flags: Any) -> None:
        in_file = {} if config is None else _read(config)
        _expect_variables()
        try:
            super().__init__(**flags, _in_file=in_file)
        except ValidationError as error:
            raise _trouble(error, config) from None  # its words hold what was given, and secrets
        except SettingsError as error:
            raise InputError(
                f"{error}; in the environment, feeds and answers are JSON objects such as "
                '{"clicks": "redis://host?stream=rows"}'
            ) from None
        self._expect_brokers()

    def _expect_brokers(self) -> None:
        """Refuse what no feed could ever use, before anybody waits for it."""
        for name in self.answers.keys() - self.feeds.keys():
            raise InputError(
                f"answers has the stream {name!r}, which no broker feeds; give its feed as well"
            )
        for setting in _SECRET:
            for name, url in getattr(self, setting).items():
                if not re.fullmatch(NAME, name):
                    raise InputError(f"{setting} has the stream {name!r}, but {NAME_WORDS}")
                try:
                    find_source(url.get_secret_value())
                except InputError as error:
                    raise InputError(f"{setting}, stream {name!r}: {error}") from error

    @field_validator("*", mode="before")
    @classmethod
    def _refuse_switch(cls, value: Any) -> Any:
        """True would be read as the number 1."""
        if isinstance(value, bool):
            raise PydanticCustomError("switch", "Input should not be true or false")
        return value

    @field_validator("store", mode="before")
    @classmethod
    def _refuse_nowhere(cls, value: Any) -> Any:
        """Nothing would be read as the folder that the service was started in."""
        if value == "":
            raise PydanticCustomError("nowhere", "Input should not be empty")
        return value

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003  # no such file is read
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Whole settings by precedence: those that are tables are not mixed."""
        flags = dict(init_settings())
        in_file = flags.pop("_in_file", {})
        return (InitSettingsSource(settings_cls, {**in_file, **env_settings(), **flags}),)

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach the service."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host.strip("[]")).is_loopback
        except ValueError:  # a name, which may stand for any address
            return False


def _read(config: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(config.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(
            f"cannot read the settings in {config}: {error}; give --config a TOML file"
        ) from error


def _expect_variables() -> None:
    """Refuse a variable that sets nothing: it would be a limit that nobody keeps."""
    known = {f"{_PREFIX}{name.upper()}" for name in ServeSettings.model_fields}
    for variable in sorted(os.environ):
        if variable.upper().startswith(_PREFIX) and variable.upper() not in known:
            raise _unknown(variable[len(_PREFIX) :].lower(), f" for the variable {variable}")


def _unknown(name: str, where: str) -> InputError:
    known = ", ".join(ServeSettings.model_fields)
    return InputError(f"there is no setting {name!r}{where}; there are {known}")


def _trouble(error: ValidationError, config: Path | None) -> InputError:
    """The first thing that is wrong, in a sentence."""
    first = error.errors(include_url=False)[0]
    name = str(first["loc"][0])
    if first["type"] == "extra_forbidden":
        return _unknown(name, f" in {config}" if config is not None else "")
    fault = first["msg"].removeprefix("Input ").removeprefix("String ")
    flag = _FLAGS.get(name, f"--{name.replace('_', '-')}")
    got = "" if name in _SECRET else f", but got {first['input']!r}"
    return InputError(
        f"{name} {fault}{got}; set it with {flag}, {_PREFIX}{name.upper()} or in the file of "
        "--config"
    )
