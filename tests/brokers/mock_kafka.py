"""A process that is a Kafka cluster: librdkafka's own, real over TCP, with its logs in memory.

It says where its brokers listen, and then does what the lines of its input say:

    topic rows 3        a topic with three partitions
    leader rows 0 2     its first partition belongs to the second broker
    down, up            all brokers; with a number, that one
    delay 500           milliseconds before every answer
    errors 0 10 3       the next three requests of the kind 0 get the code 10

    python -m tests.brokers.mock_kafka
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
        say(str(obey(lib, cluster, *line.split())))


def obey(lib: ctypes.CDLL, cluster: ctypes.c_void_p, word: str, *rest: str) -> int:
    """Do what a line says; 0 if all went well."""
    names = [text.encode() for text in rest if not text.isdigit()]
    numbers = [int(text) for text in rest if text.isdigit()]
    code = 0
    match word:
        case "topic":
            code = lib.rd_kafka_mock_topic_create(cluster, *names, *numbers, N_BROKERS)
        case "leader":
            code = lib.rd_kafka_mock_partition_set_leader(cluster, *names, *numbers)
        case "delay":
            code = lib.rd_kafka_mock_broker_set_rtt(cluster, -1, *numbers)
        case "errors":
            kind, error, n_times = numbers
            lib.rd_kafka_mock_push_request_errors(
                cluster, ctypes.c_int16(kind), ctypes.c_size_t(n_times), *[error] * n_times
            )
        case "down" | "up":
            turn = getattr(lib, f"rd_kafka_mock_broker_set_{word}")
            code = max(turn(cluster, each) for each in numbers or range(1, N_BROKERS + 1))
    return code


if __name__ == "__main__":
    main()
