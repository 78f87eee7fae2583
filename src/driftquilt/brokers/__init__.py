"""Kafka, Redis Streams and NATS JetStream as sources of a stream, each message exactly once.

`open_source` reads a URL, `consume` feeds a stream from a source, and `Source` is the contract.
"""

from __future__ import annotations

from driftquilt.brokers.address import find_source, open_source
from driftquilt.brokers.broker import Message, Note, Position, Source
from driftquilt.brokers.consume import Refused, Tally, consume

__all__ = [
    "Message",
    "Note",
    "Position",
    "Refused",
    "Source",
    "Tally",
    "consume",
    "find_source",
    "open_source",
]
