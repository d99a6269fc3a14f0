"""Engines served from topic to topic, against a real broker."""

from __future__ import annotations

from typing import Any

import pytest
from wallaroo_conformance.live import PATIENCE
from wallaroo_conformance.live.check import check_kafka
from wallaroo_conformance.live.kafka import KAFKA_LAWS
from wallaroo_reference.engine import ReferenceEngine

from wallaroo.engine import Handle, ServeOptions
from wallaroo.topology import Application

pytestmark = pytest.mark.xdist_group("Kafka")  # one broker for all of them


def test_an_engine_keeps_the_rules_against_a_broker(kafka: Any) -> None:
    laws, failures = check_kafka(ReferenceEngine(), "*", kafka.address, PATIENCE)
    assert failures == []
    assert {law.rule for law in laws if law.status == "kept"} == set(KAFKA_LAWS)


class Careless(ReferenceEngine):
    """Reads what was never committed."""

    def serve(self, application: Application, options: ServeOptions) -> Handle:
        [source] = application.sources.values()
        object.__setattr__(source.config, "isolation_level", "read_uncommitted")
        return super().serve(application, options)


def test_an_engine_that_reads_aborted_transactions_is_found(kafka: Any) -> None:
    _, [failure] = check_kafka(Careless(), "kafka-10", kafka.address, PATIENCE)
    assert failure.rule == "kafka-10"
    assert "are there" in failure.text
