"""Settings of the service: whose word counts, and what is said of wrong ones."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from driftquilt.errors import InputError, MissingExtraError
from driftquilt.server.setting_words import WORDS
from driftquilt.server.settings import ServeSettings


def test_flags_come_before_the_environment_before_the_file_before_the_defaults(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "serve.toml"
    config.write_text('port = 1\nmax_rows = 1\nmax_streams = 1\nstore = "kept"\n')
    monkeypatch.setenv("DRIFTQUILT_SERVE_PORT", "2")
    monkeypatch.setenv("DRIFTQUILT_SERVE_MAX_ROWS", "2")
    settings = ServeSettings(config, port=3)
    assert (settings.port, settings.max_rows, settings.max_streams) == (3, 2, 1)
    assert (settings.store, settings.max_waiting) == (Path("kept"), 100_000)


def test_brokers_of_the_flags_are_not_mixed_with_those_of_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "serve.toml"
    config.write_text('[feeds]\na = "redis://h?stream=a"\n')
    monkeypatch.setenv("DRIFTQUILT_SERVE_FEEDS", '{"b": "redis://h?stream=b"}')
    assert {*ServeSettings(config).feeds} == {"b"}
    assert {*ServeSettings(config, feeds={"c": "redis://h?stream=c"}).feeds} == {"c"}
    assert {*ServeSettings(config, feeds={}).feeds} == set()


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("port", "http", "port should be a valid integer"),
        ("port", -1, "port should be greater than or equal to 0"),
        ("host", "", "host should have at least 1 character"),
        ("max_rows", 0, "max_rows should be greater than or equal to 1"),
        ("store", "", "store should not be empty"),
        ("rate", True, "rate should not be true or false"),
        ("rate", "nan", "rate should be a finite number"),
        ("drain_seconds", 0, "drain_seconds should be greater than 0"),
        ("log_format", "xml", "log_format should be 'json' or 'text'"),
        ("log_level", "loud", "log_level should be 'debug', 'info', 'warning' or 'error'"),
    ],
)
def test_a_wrong_value_is_told_with_its_name_what_it_takes_and_where_to_set_it(
    name: str, value: Any, told: str
) -> None:
    with pytest.raises(InputError) as caught:
        ServeSettings(**{name: value})
    assert str(caught.value).startswith(told)
    assert f"but got {value!r}" in str(caught.value)
    assert f"DRIFTQUILT_SERVE_{name.upper()}" in str(caught.value)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"feeds": {"a": "redis://x:rosebud@h/0"}}, "feeds, stream 'a': .* names no stream"),
        (
            {"feeds": {"a": "redis://h?stream=s"}, "answers": {"a": "mqtt://x:rosebud@h/rows"}},
            "answers, stream 'a': there is no source with the scheme 'mqtt'",
        ),
        ({"answers": {"a": "redis://h?stream=s"}}, "the stream 'a', which no broker feeds"),
        ({"feeds": {"A b": "redis://h?stream=s"}}, "feeds has the stream 'A b', but a stream's"),
    ],
)
def test_a_broker_that_no_feed_could_use_is_told_at_once(given: Any, told: str) -> None:
    with pytest.raises(InputError, match=told) as caught:
        ServeSettings(**given)
    assert "rosebud" not in str(caught.value)


def test_a_wrong_value_in_the_environment_is_told_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRIFTQUILT_SERVE_MAX_BODY_BYTES", "8MiB")
    with pytest.raises(InputError, match=r"max_body_bytes should be a valid integer.*'8MiB'"):
        ServeSettings()


def test_a_name_in_the_file_that_is_no_setting_is_refused(tmp_path: Path) -> None:
    config = tmp_path / "serve.toml"
    config.write_text("prot = 1\n")
    with pytest.raises(InputError, match=r"no setting 'prot' in .*serve.toml; there are store, "):
        ServeSettings(config)


def test_a_variable_that_is_no_setting_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRIFTQUILT_SERVE_MAX_ROW", "5")
    with pytest.raises(InputError, match=r"no setting 'max_row' for the variable .*_MAX_ROW; "):
        ServeSettings()


def test_addresses_of_brokers_are_in_no_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "serve.toml"
    path.write_text('feeds = "clicks=redis://:s3cret@host"')
    with pytest.raises(InputError, match="set it with --feed, ") as refused:
        ServeSettings(path)
    assert "s3cret" not in str(refused.value)
    assert refused.value.__cause__ is None
    monkeypatch.setenv("DRIFTQUILT_SERVE_FEEDS", "clicks=redis://:s3cret@host")
    with pytest.raises(InputError, match="are JSON objects") as refused:
        ServeSettings()
    assert "s3cret" not in str(refused.value)


@pytest.mark.parametrize("content", [None, b"port = ", b"\xff"])
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, content: bytes | None) -> None:
    config = tmp_path / "serve.toml"
    if content is not None:
        config.write_bytes(content)
    with pytest.raises(InputError, match=r"cannot read the settings in .*serve.toml: "):
        ServeSettings(config)


@pytest.mark.parametrize(
    ("host", "is_loopback"),
    [("127.0.0.1", True), ("127.8.9.1", True), ("::1", True), ("[::1]", True), ("localhost", True),
     ("0.0.0.0", False), ("::", False), ("10.0.0.7", False), ("example.org", False)],  # noqa: S104
)  # fmt: skip
def test_only_addresses_of_this_machine_are_loopback(host: str, is_loopback: bool) -> None:
    assert ServeSettings(host=host).is_loopback is is_loopback


def test_settings_do_not_change() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        ServeSettings().port = 1


@pytest.mark.parametrize("name", ServeSettings.model_fields)
def test_every_setting_is_told_of_with_its_default(name: str) -> None:
    default = ServeSettings.model_fields[name].default
    told = f"{default:,.0f}" if isinstance(default, float) else str(default)
    told = f"{default:,}" if isinstance(default, int) and name != "port" else told
    assert f"({told if default != {} else 'none'})" in WORDS[name]


def test_words_are_of_settings_only() -> None:
    assert list(WORDS) == list(ServeSettings.model_fields)


def test_a_broker_whose_client_is_not_installed_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "driftquilt.brokers.redis", raising=False)
    monkeypatch.setitem(sys.modules, "redis", None)  # as if it were not there
    with pytest.raises(MissingExtraError, match=r"pip install 'driftquilt\[redis\]'"):
        ServeSettings(feeds={"clicks": "redis://host?stream=rows"})
