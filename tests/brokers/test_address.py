"""URLs of brokers: what they say is read, what they lack is told, what is secret is not."""

from __future__ import annotations

import subprocess
import sys
import traceback
from typing import Any

import pytest

from driftquilt.brokers import open_source
from driftquilt.brokers.address import read_address
from driftquilt.errors import InputError
from tests.brokers.brokers import PASSWORD

FULL = [
    f"kafka://me:{PASSWORD}@a:9093,b/rows?mechanism=SCRAM-SHA-256&tls=true",
    f"redis://me:{PASSWORD}@hub/3?stream=rows",
    f"nats://me:{PASSWORD}@hub/ROWS/rows.new",
]


def test_several_hosts_get_the_usual_port_where_none_is_given() -> None:
    assert read_address("kafka://a:9093,b,[::1]/rows").hosts == ("a:9093", "b:9092", "[::1]:9092")


def test_a_password_may_hold_signs_that_are_written_as_percent_codes() -> None:
    assert read_address("nats://me:a%40b%2Fc@hub/S/s").password == "a@b/c"  # noqa: S105


def test_user_and_password_come_from_the_environment_if_the_url_has_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("DRIFTQUILT_BROKER_USER", "me")
    monkeypatch.setenv("DRIFTQUILT_BROKER_PASSWORD", PASSWORD)
    assert (read_address("nats://hub/S/s").user, read_address("nats://hub/S/s").password) == (
        "me",
        PASSWORD,
    )
    assert read_address("nats://you:other@hub/S/s").password == "other"  # noqa: S105


def test_redis_reads_database_0_unless_told_otherwise() -> None:
    assert read_address("redis://hub?stream=rows").path == ("0",)


@pytest.mark.parametrize("url", ["kafka://hub/rows", "redis://hub?stream=rows", "nats://hub/S/s"])
def test_tls_is_off_unless_asked_for(url: str) -> None:
    assert read_address(url).context() is None
    assert read_address(f"{url}{'&' if '?' in url else '?'}tls=true").context() is not None


@pytest.mark.parametrize("url", FULL)
def test_a_password_is_in_no_repr(url: str) -> None:
    source = open_source(url)
    assert PASSWORD not in f"{read_address(url)!r} {source!r} {source.name}"
    source.close()


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("rows.csv", "no source with the scheme ''"),
        ("http://hub/rows", "no source with the scheme 'http'"),
        ("kafka://hub", "names no topic"),
        ("kafka:///rows", "names no host"),
        ("kafka://hub:x/rows", "has a host that is not host:port"),
        ("kafka://hub/rows/more", "goes on after the topic"),
        ("kafka://hub/rows?stream=x", "has an option 'stream'; it takes tls, ca, mechanism"),
        ("redis://hub/0", "names no stream"),
        ("redis://hub/rows?stream=x", "has the database 'rows', which is not a number"),
        ("nats://hub/ROWS", "names no subject"),
        ("nats://hub/rows.v1/rows", "has the stream 'rows.v1', and names have no blank"),
        ("nats://hub/ROWS/new%20rows", "has the subject 'new rows', which is not words with dots"),
        ("nats://hub/ROWS/rows.", "has the subject 'rows.', which is not words with dots"),
        ("nats://hub/ROWS/rows?tls=1", "has tls='1'; it takes true or false"),
        ("nats://hub/ROWS/rows?ca=nowhere.pem", "has ca='nowhere.pem', which is not a file"),
        ("kafka://[hub/rows", "this is not the URL of a broker"),
        ("kafka://hub..org/rows", "has a host that is not host:port"),
        ("nats://hub:99999/ROWS/rows", "has the port 99999; ports go from 1 to 65535"),
        ("nats://hub:0/ROWS/rows", "has the port 0"),
        ("redis://a,b/0?stream=x", "names several hosts, and one is read"),
        ("redis://hub/0?stream=orders#1", "write %40 for @, %23 for #"),
    ],
)
def test_a_url_that_cannot_be_used_is_told_with_an_example(url: str, said: str) -> None:
    with pytest.raises(InputError, match="give") as refused:
        open_source(url.replace("://", f"://me:{PASSWORD}@", 1))
    assert said in str(refused.value)
    assert PASSWORD not in str(refused.value)


@pytest.mark.parametrize("sign", ["\u2100", "[", "/", "?", "#"])
@pytest.mark.parametrize("login", ["me:", "me:12"])
def test_a_password_with_signs_that_a_url_cannot_hold_is_not_shown(sign: str, login: str) -> None:
    url = f"redis://{login}{sign}{PASSWORD}@hub/0?stream=rows"
    with pytest.raises(InputError, match="give") as refused:
        open_source(url)
    assert PASSWORD not in "".join(traceback.format_exception(refused.value))


@pytest.mark.parametrize("url", [5, None, b"redis://hub/0?stream=rows"])
def test_what_is_no_text_is_told(url: Any) -> None:
    with pytest.raises(InputError, match=f"a broker is a {type(url).__name__}; give its URL"):
        open_source(url)


@pytest.mark.parametrize(
    ("package", "extra", "url"),
    [
        ("confluent_kafka", "kafka", "kafka://hub/rows"),
        ("redis", "redis", "redis://hub?stream=rows"),
        ("nats", "nats", "nats://hub/S/s"),
    ],
)
def test_a_package_that_is_missing_is_told_with_the_command_that_installs_it(
    package: str, extra: str, url: str
) -> None:
    code = (
        f"import sys; sys.modules[{package!r}] = None\n"
        "from driftquilt.errors import MissingExtraError\n"
        "from driftquilt.brokers import open_source\n"
        f"try: open_source({url!r})\n"
        "except MissingExtraError as error: print(error)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip().endswith(f"run: pip install 'driftquilt[{extra}]'")
