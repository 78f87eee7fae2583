"""A process that is a Kafka cluster: librdkafka's own, real over TCP, with its logs in memory.

It says where its brokers listen, and then does what the lines of its input say.

    python -m tests.sources.mock_kafka
"""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path

import confluent_kafka

N_BROKERS = 3


def library() -> ctypes.CDLL:
    """The library that the client brings along."""
    folder = Path(confluent_kafka.__file__).parents[1] / "confluent_kafka.libs"
    loaded = ctypes.CDLL(str(next(folder.glob("librdkafka*.so*"))))
    loaded.rd_kafka_new.restype = ctypes.c_void_p
    loaded.rd_kafka_mock_cluster_new.restype = ctypes.c_void_p
    loaded.rd_kafka_mock_cluster_bootstraps.restype = ctypes.c_char_p
    return loaded


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main() -> None:
    lib, why = library(), ctypes.create_string_buffer(512)
    client = ctypes.c_void_p(lib.rd_kafka_new(0, None, why, len(why)))
    cluster = ctypes.c_void_p(lib.rd_kafka_mock_cluster_new(client, N_BROKERS))
    say(lib.rd_kafka_mock_cluster_bootstraps(cluster).decode())
    for line in sys.stdin:
        word, *rest = line.split()
        if word == "topic":
            name, n_partitions = rest
            code = lib.rd_kafka_mock_topic_create(
                cluster, name.encode(), int(n_partitions), N_BROKERS
            )
        else:
            turn = {
                "down": lib.rd_kafka_mock_broker_set_down,
                "up": lib.rd_kafka_mock_broker_set_up,
            }
            code = max(turn[word](cluster, number) for number in range(1, N_BROKERS + 1))
        say(str(code))


if __name__ == "__main__":
    main()
