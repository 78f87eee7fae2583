"""Settings of the service: whose word counts, and what is said of wrong ones."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from driftquilt.errors import InputError, MissingExtraError
from driftquilt.server.settings import load_settings


def test_flags_come_before_the_environment_before_the_file_before_the_defaults(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "serve.toml"
    config.write_text('port = 1\nmax_rows = 1\nmax_streams = 1\nstore = "kept"\n')
    monkeypatch.setenv("DRIFTQUILT_SERVE_PORT", "2")
    monkeypatch.setenv("DRIFTQUILT_SERVE_MAX_ROWS", "2")
    settings = load_settings(config, port=3)
    assert (settings.port, settings.max_rows, settings.max_streams) == (3, 2, 1)
    assert (settings.store, settings.max_waiting) == (Path("kept"), 100_000)


def test_brokers_of_the_flags_are_not_mixed_with_those_of_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "serve.toml"
    config.write_text('[feeds]\na = "redis://h?stream=a"\n')
    monkeypatch.setenv("DRIFTQUILT_SERVE_FEEDS", '{"b": "redis://h?stream=b"}')
    assert {*load_settings(config).feeds} == {"b"}
    assert {*load_settings(config, feeds={"c": "redis://h?stream=c"}).feeds} == {"c"}
    assert {*load_settings(config, feeds={}).feeds} == set()


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("port", "http", "`int`"),
        ("port", -1, ">= 0"),
        ("host", "", "length >= 1"),
        ("max_rows", 0, ">= 1"),
        ("store", "", "path"),
        ("rate", True, "`float`"),
        ("rate", "nan", "> 0"),
        ("rate", "inf", "<="),
        ("drain_seconds", 0, "> 0"),
        ("log_format", "xml", "'json', 'text'"),
        ("log_level", "loud", "'debug', 'info', 'warning', 'error'"),
    ],
)
def test_a_wrong_value_is_refused_with_its_name_what_it_takes_and_where_to_set_it(
    name: str, value: Any, expected: str
) -> None:
    with pytest.raises(InputError) as caught:
        load_settings(**{name: value})
    assert str(caught.value).startswith(f"{name} is {value!r}: Expected ")
    assert expected in str(caught.value)
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
        load_settings(**given)
    assert "rosebud" not in str(caught.value)


def test_a_wrong_value_in_the_environment_is_told_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRIFTQUILT_SERVE_MAX_BODY_BYTES", "8MiB")
    with pytest.raises(InputError, match=r"max_body_bytes is '8MiB': Expected `int`"):
        load_settings()


def test_a_name_in_the_file_that_is_no_setting_is_refused(tmp_path: Path) -> None:
    config = tmp_path / "serve.toml"
    config.write_text("prot = 1\n")
    with pytest.raises(InputError, match=r"no setting 'prot' in .*serve.toml; there are store, "):
        load_settings(config)


def test_a_variable_that_is_no_setting_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRIFTQUILT_SERVE_MAX_ROW", "5")
    with pytest.raises(InputError, match=r"no setting 'max_row' for the variable .*_MAX_ROW; "):
        load_settings()


def test_addresses_of_brokers_are_in_no_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "serve.toml"
    path.write_text('feeds = "clicks=redis://:s3cret@host"')
    with pytest.raises(InputError, match="set it with --feed, ") as refused:
        load_settings(path)
    assert "s3cret" not in str(refused.value)
    assert refused.value.__cause__ is None
    monkeypatch.setenv("DRIFTQUILT_SERVE_FEEDS", "clicks=redis://:s3cret@host")
    with pytest.raises(InputError, match="are JSON objects") as refused:
        load_settings()
    assert "s3cret" not in str(refused.value)


@pytest.mark.parametrize("content", [None, b"port = ", b"\xff"])
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, content: bytes | None) -> None:
    config = tmp_path / "serve.toml"
    if content is not None:
        config.write_bytes(content)
    with pytest.raises(InputError, match=r"cannot read the settings in .*serve.toml: "):
        load_settings(config)


@pytest.mark.parametrize(
    ("host", "is_loopback"),
    [("127.0.0.1", True), ("127.8.9.1", True), ("::1", True), ("[::1]", True), ("localhost", True),
     ("0.0.0.0", False), ("::", False), ("10.0.0.7", False), ("example.org", False)],  # noqa: S104
)  # fmt: skip
def test_only_addresses_of_this_machine_are_loopback(host: str, is_loopback: bool) -> None:
    assert load_settings(host=host).is_loopback is is_loopback


def test_no_address_of_a_broker_is_printed() -> None:
    settings = load_settings(feeds={"a": "redis://:rosebud@h?stream=a"})
    assert "rosebud" not in repr(settings)
    assert settings.to_json()["feeds"] == {"a": "**********"}


def test_a_broker_whose_client_is_not_installed_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "driftquilt.brokers.redis", raising=False)
    monkeypatch.setitem(sys.modules, "redis", None)  # as if it were not there
    with pytest.raises(MissingExtraError, match=r"pip install 'driftquilt\[redis\]'"):
        load_settings(feeds={"clicks": "redis://host?stream=rows"})
