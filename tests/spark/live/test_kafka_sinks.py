"""Partitions of Kafka sinks are taken over at the same time."""

import threading

import pytest
from wallaroo_spark.live.kafka_sinks import call_at_once

from wallaroo.transport.kafka.cluster import BrokerError


def test_all_calls_are_made():
    made = []
    call_at_once([lambda number=number: made.append(number) for number in range(20)])
    assert sorted(made) == [*range(20)]


def test_a_call_that_waits_for_brokers_does_not_keep_an_error_back():
    def refused():
        raise BrokerError("no position")

    over = threading.Event()
    with pytest.raises(BrokerError, match="no position"):
        call_at_once([over.wait, refused])
    over.set()  # else other tests of this process would wait for its thread
