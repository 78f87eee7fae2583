"""From a URL to a source.

>>> open_source("mqtt://hub/rows")
Traceback (most recent call last):
driftquilt.errors.InputError: there is no source with the scheme 'mqtt'; give one of \
kafka://host:9092/topic, redis://host:6379/0?stream=name, nats://host:4222/stream/subject
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from driftquilt.brokers.address import read_address
from driftquilt.brokers.broker import Source

__all__ = ["find_source", "open_source"]


def open_source(url: str) -> Source:
    """The source that a URL names; see `address` for what it may say.

    Nothing is sent yet: a broker that is away is waited for by `read`. `MissingExtraError` if
    the package that speaks with such a broker is not installed.
    """
    return find_source(url)()


def find_source(url: str) -> Callable[[], Source]:
    """What opens the source; the same errors."""
    address = read_address(url)
    if address.scheme == "kafka":
        from driftquilt.brokers.kafka import KafkaSource  # noqa: PLC0415  # an extra

        return partial(KafkaSource, address)
    if address.scheme == "redis":
        from driftquilt.brokers.redis import RedisSource  # noqa: PLC0415

        return partial(RedisSource, address)
    from driftquilt.brokers.nats import NatsSource  # noqa: PLC0415

    return partial(NatsSource, address)
