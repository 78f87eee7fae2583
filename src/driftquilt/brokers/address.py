"""The URL of a broker, from text to a source; the password is shown nowhere.

    kafka://user:password@host:9092,host:9092/topic
    redis://user:password@host:6379/0?stream=name
    nats://user:password@host:4222/stream/subject

Kafka and NATS may have several hosts, with commas between them. Options follow after `?`:
`tls=true`, `ca=file` with the certificates to trust (which implies tls), and for Kafka
`mechanism=SCRAM-SHA-256`. Without a user in the URL, `DRIFTQUILT_BROKER_USER` and
`DRIFTQUILT_BROKER_PASSWORD` of the environment are taken. Signs that mean something in a URL are
written as percent codes: `%40` for @, `%2F` for /, `%23` for #.

>>> read_address("nats://me:secret@hub/ORDERS/orders.new?tls=true")
Address(scheme='nats', hosts=('hub:4222',), path=('ORDERS', 'orders.new'), \
options={'tls': 'true'}, user='me')
>>> open_source("mqtt://hub/rows")
Traceback (most recent call last):
driftquilt.errors.InputError: there is no source with the scheme 'mqtt'; give one of \
kafka://host:9092/topic, redis://host:6379/0?stream=name, nats://host:4222/stream/subject
>>> read_address("kafka://hub")
Traceback (most recent call last):
driftquilt.errors.InputError: the URL of a kafka broker names no topic; give, for example, \
kafka://host:9092/topic
"""

from __future__ import annotations

import ipaddress
import os
import re
import ssl
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from pathlib import Path
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from driftquilt.brokers.broker import Source
from driftquilt.errors import InputError, SourceError

__all__ = ["Address", "find_source", "open_source", "read_address", "refuse_untrusted"]

_EXAMPLES = {
    "kafka": "kafka://host:9092/topic",
    "redis": "redis://host:6379/0?stream=name",
    "nats": "nats://host:4222/stream/subject",
}
_PORTS = {"kafka": 9092, "redis": 6379, "nats": 4222}
_PARTS = {"kafka": ("topic",), "redis": ("database",), "nats": ("stream", "subject")}
_OPTIONS = {"kafka": ("tls", "ca", "mechanism"), "redis": ("tls", "ca", "stream")}
_LAST_PORT = 65535
_NATS_STREAM = re.compile(r"[^\s.*>/\\]+")
_NATS_SUBJECT = re.compile(r"[^\s.]+(\.[^\s.]+)*")
_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[\w.-]+)(?::(\d{1,5}))?")


#: The module and class of each; the modules are imported when needed, for each is an extra.
_SOURCES = {"kafka": "KafkaSource", "redis": "RedisSource", "nats": "NatsSource"}


@dataclass(frozen=True)
class Address:
    """A broker, and what to read of it."""

    scheme: str
    hosts: tuple[str, ...]
    path: tuple[str, ...]
    options: dict[str, str]
    user: str | None = None
    password: str | None = field(default=None, repr=False)

    @property
    def tls(self) -> bool:
        """Whether the connection is encrypted."""
        return self.options.get("tls") == "true" or "ca" in self.options

    def context(self) -> ssl.SSLContext | None:
        """How to encrypt, for clients that take a context."""
        return ssl.create_default_context(cafile=self.options.get("ca")) if self.tls else None


def open_source(url: str) -> Source:
    """Open the source that a URL names.

    Nothing is sent yet: a broker that is away is waited for by `read`. `MissingExtraError` if
    the package that speaks with such a broker is not installed.
    """
    return find_source(url)()


def find_source(url: str) -> Callable[[], Source]:
    """Return what opens the source; the same errors."""
    address = read_address(url)
    module = import_module(f"driftquilt.brokers.{address.scheme}")
    return partial(getattr(module, _SOURCES[address.scheme]), address)


def read_address(url: str) -> Address:
    """Read a URL; `InputError` with an example for one that cannot be used."""
    parts = _split(url)
    userinfo, _, hosts = parts.netloc.rpartition("@")
    name, _, password = userinfo.partition(":")
    user, secret = unquote(name) or None, unquote(password) or None
    if not userinfo:
        user = os.environ.get("DRIFTQUILT_BROKER_USER")
        secret = os.environ.get("DRIFTQUILT_BROKER_PASSWORD")
    options = _options(parts)
    read = _hosts(parts.scheme, hosts)
    return Address(parts.scheme, read, _path(parts, options), options, user, secret)


def refuse_untrusted(name: str, reason: str) -> None:
    """`SourceError` for a broker whose certificate is not trusted, by what its client reports."""
    if "certificate verify failed" in reason:
        raise SourceError(
            f"{name}: the certificate of the broker is not trusted; name those to trust in the "
            "URL: ca=file"
        )


def _split(url: str) -> SplitResult:
    """Return the parts of a URL; what it says is not repeated, for its password may be anywhere."""
    if not isinstance(url, str):
        raise InputError(f"a broker is a {type(url).__name__}; give its URL, one of {_listed()}")
    try:
        parts = urlsplit(url)
    except ValueError:
        raise InputError(
            "this is not the URL of a broker; write signs of a password that are neither letters "
            f"nor digits as percent codes, and give one of {_listed()}"
        ) from None
    if parts.scheme not in _EXAMPLES:
        raise InputError(
            f"there is no source with the scheme {parts.scheme!r}; give one of {_listed()}"
        )
    if "@" in f"{parts.path}{parts.query}" or "#" in url:
        raise _refusal(
            parts.scheme, "has an @ behind its hosts, or a #; write %40 for @, %23 for #, %2F for /"
        )
    return parts


def _hosts(scheme: str, text: str) -> tuple[str, ...]:
    hosts = tuple(_host(scheme, host) for host in text.split(","))
    if scheme == "redis" and len(hosts) > 1:
        raise _refusal(scheme, "names several hosts, and one is read")
    return hosts


def _host(scheme: str, text: str) -> str:
    found = _HOST.fullmatch(text)
    if not text:
        raise _refusal(scheme, "names no host")
    if found is None or not _is_name(found[1]):
        raise _refusal(scheme, "has a host that is not host:port")
    port = int(found[2] or _PORTS[scheme])
    if not 0 < port <= _LAST_PORT:
        raise _refusal(scheme, f"has the port {port}; ports go from 1 to {_LAST_PORT}")
    return f"{found[1]}:{port}"


def _is_name(host: str) -> bool:
    """Whether a host can be looked up at all; clients answer others in ways of their own."""
    try:
        if host.startswith("["):
            ipaddress.IPv6Address(host[1:-1])
        else:
            host.encode("idna")
    except ValueError:
        return False
    return True


def _options(parts: SplitResult) -> dict[str, str]:
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    known = _OPTIONS.get(parts.scheme, ("tls", "ca"))
    unknown = sorted(set(options) - set(known))
    if unknown:
        raise _refusal(parts.scheme, f"has an option {unknown[0]!r}; it takes {', '.join(known)}")
    if "ca" in options and not Path(options["ca"]).is_file():
        raise _refusal(parts.scheme, f"has ca={options['ca']!r}, which is not a file")
    if options.get("tls", "true") not in ("true", "false"):
        raise _refusal(parts.scheme, f"has tls={options['tls']!r}; it takes true or false")
    return options


def _path(parts: SplitResult, options: dict[str, str]) -> tuple[str, ...]:
    scheme, wanted = parts.scheme, _PARTS[parts.scheme]
    path = tuple(unquote(part) for part in parts.path.strip("/").split("/") if part)
    if scheme == "redis":
        path = path or ("0",)
        if not options.get("stream"):
            raise _refusal(scheme, "names no stream")
        if not path[0].isdecimal():
            raise _refusal(scheme, f"has the database {path[0]!r}, which is not a number")
    if len(path) < len(wanted):
        raise _refusal(scheme, f"names no {wanted[len(path)]}")
    if len(path) > len(wanted):
        raise _refusal(scheme, f"goes on after the {wanted[-1]}")
    if scheme == "nats":
        _expect_nats_names(*path)
    return path


def _expect_nats_names(stream: str, subject: str) -> None:
    """Refuse names that no JetStream has; its client answers some of them as if it were away."""
    if not _NATS_STREAM.fullmatch(stream):
        raise _refusal("nats", f"has the stream {stream!r}, and names have no blank . * > / or \\")
    if not _NATS_SUBJECT.fullmatch(subject):
        raise _refusal("nats", f"has the subject {subject!r}, which is not words with dots between")


def _refusal(scheme: str, what: str) -> InputError:
    return InputError(
        f"the URL of a {scheme} broker {what}; give, for example, {_EXAMPLES[scheme]}"
    )


def _listed() -> str:
    return ", ".join(_EXAMPLES.values())
