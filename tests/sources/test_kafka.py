"""What is Kafka's own: partitions, unknown topics, offsets that never were."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from driftquilt.errors import SourceError
from driftquilt.sources.connect import open_source
from tests.sources.brokers import PASSWORD, KafkaBroker, running
from tests.sources.test_brokers import read


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBroker]:
    with running("kafka", Path(tmp_path_factory.mktemp("kafka")), n_partitions=3) as started:
        yield started


def test_each_partition_keeps_its_order_and_a_position_knows_all_of_them(
    broker: KafkaBroker,
) -> None:
    for partition in range(3):
        broker.send([b"%d %d" % (partition, number) for number in range(100)], partition)
    with contextlib.closing(open_source(broker.url)) as source:
        found = read(source, 300)
        assert all(message.position.keys() == {"0", "1", "2"} for message in found)
        assert found[-1].position == {"0": 100, "1": 100, "2": 100}
        half = found[149].position
        again = read(source, 150, after=half)
    for some in (found, found[:150] + again):
        parts = [[*map(int, message.body.split())] for message in some]
        for partition in range(3):
            assert [n for p, n in parts if p == partition] == [*range(100)]


def test_an_unknown_topic_is_told(broker: KafkaBroker) -> None:
    with (
        contextlib.closing(open_source(broker.url.replace("/rows", "/other"))) as source,
        pytest.raises(SourceError, match="kafka:other: there is no such topic; make it first"),
    ):
        read(source, 1)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("", "refuses the user or the password"),  # this cluster knows no users
        ("?mechanism=NONE", "cannot be set up: .* Unsupported SASL mechanism: NONE"),
    ],
)
def test_a_user_that_is_refused_is_told_and_the_password_is_not(
    broker: KafkaBroker, options: str, said: str
) -> None:
    url = broker.url.replace("://", f"://me:{PASSWORD}@") + options
    with (
        contextlib.closing(open_source(url)) as source,
        pytest.raises(SourceError, match=said) as refused,
    ):
        read(source, 1)
    assert PASSWORD not in f"{refused.value} {refused.value.__cause__}"


@pytest.mark.parametrize("position", [{"0": 10**6, "1": 100, "2": 100}, {"7": 3}])
def test_a_position_that_never_was_is_told(broker: KafkaBroker, position: dict[str, int]) -> None:
    with contextlib.closing(open_source(broker.url)) as source, pytest.raises(SourceError):
        read(source, 1, after=position)
