"""Brokers that fail when they are told to: librdkafka's own mock cluster, in this process.

It is reached in the library that confluent-kafka brings. It answers requests of transactions, and
shows records of those that were aborted, so what readers of committed records get is no matter of
its own.
"""

from __future__ import annotations

import contextlib
import ctypes
import time
from collections.abc import Iterator
from enum import IntEnum
from pathlib import Path
from types import TracebackType
from typing import Any

import confluent_kafka
from confluent_kafka import Consumer, TopicPartition

_PRODUCER = 0  # rd_kafka_type_t


class Request(IntEnum):
    """The requests of Kafka's protocol that can be answered with an error."""

    PRODUCE = 0
    FETCH = 1
    INIT_PRODUCER_ID = 22
    ADD_OFFSETS = 25
    END_TRANSACTION = 26
    COMMIT_OFFSETS = 28


class MockCluster:
    """Three brokers, 1 to 3.

    Attributes:
        address: where they are.
    """

    def __init__(self) -> None:
        (path,) = Path(confluent_kafka.__file__).parent.parent.glob(
            "confluent_kafka.libs/librdkafka*"
        )
        self._library = library = ctypes.CDLL(str(path))
        for name in ("conf_new", "new", "handle_mock_cluster"):
            getattr(library, f"rd_kafka_{name}").restype = ctypes.c_void_p
        library.rd_kafka_mock_cluster_bootstraps.restype = ctypes.c_char_p
        said = ctypes.create_string_buffer(500)
        options = ctypes.c_void_p(library.rd_kafka_conf_new())
        for option, value in ((b"test.mock.num.brokers", b"3"), (b"log_level", b"0")):
            library.rd_kafka_conf_set(options, option, value, said, len(said))
        made = library.rd_kafka_new(_PRODUCER, options, said, len(said))
        if not made:
            raise RuntimeError(said.value.decode())
        self._handle = ctypes.c_void_p(made)
        self._cluster = ctypes.c_void_p(library.rd_kafka_handle_mock_cluster(self._handle))
        self.address: str = library.rd_kafka_mock_cluster_bootstraps(self._cluster).decode()

    def __enter__(self) -> MockCluster:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._library.rd_kafka_destroy(self._handle)

    def topic(self, name: str, partitions: int = 1) -> str:
        """Make a topic, led by broker 1, and return its name."""
        self._do("topic_create", name.encode(), partitions, 3)
        for partition in range(partitions):
            self.lead(name, partition, 1)
        return name

    def lead(self, topic: str, partition: int, broker: int) -> None:
        """Have a broker lead a partition."""
        self._do("partition_set_leader", topic.encode(), partition, broker)

    def slow(self, milliseconds: int) -> None:
        """Have each answer take so long."""
        for broker in (1, 2, 3):
            self._do("broker_set_rtt", broker, milliseconds)

    @contextlib.contextmanager
    def down(self, *brokers: int) -> Iterator[None]:
        """Have brokers be down in the block."""
        for broker in brokers:
            self._do("broker_set_down", broker)
        try:
            yield
        finally:
            for broker in brokers:
                self._do("broker_set_up", broker)

    def fail(self, request: Request, *errors: int) -> None:
        """Answer the next requests of a kind with these errors."""
        codes = (ctypes.c_int * len(errors))(*errors)
        kind = ctypes.c_int16(request)
        self._library.rd_kafka_mock_push_request_errors_array(
            self._cluster, kind, ctypes.c_size_t(len(errors)), codes
        )

    def values(self, topic: str, count: int, seconds: float = 60.0) -> list[bytes | None]:
        """Return the values of a topic with one partition, once there are so many."""
        consumer = Consumer({"bootstrap.servers": self.address, "group.id": "looks"})
        consumer.assign([TopicPartition(topic, 0, 0)])
        found: list[Any] = []
        end = time.monotonic() + seconds
        while len(found) < count and time.monotonic() < end:
            found += [one.value() for one in consumer.consume(1000, 0.1) if one.error() is None]
        found += [one.value() for one in consumer.consume(1000, 0.3) if one.error() is None]
        consumer.close()
        return found

    def _do(self, name: str, *arguments: Any) -> None:
        error = getattr(self._library, f"rd_kafka_mock_{name}")(self._cluster, *arguments)
        if error:
            raise RuntimeError(f"{name}{arguments}: error {error}")
