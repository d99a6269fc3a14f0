"""Spark served from topic to topic, against a real broker."""

from __future__ import annotations

from typing import Any

import pytest
from live_on_spark import PATIENCE
from wallaroo_conformance.live.check import check_kafka
from wallaroo_conformance.live.kafka import KAFKA_LAWS

from wallaroo.engine import load_engine

pytestmark = [pytest.mark.alone, pytest.mark.timeout(1800)]


@pytest.mark.nightly("a dozen starts of Spark; by hand: wallaroo conform --engine spark")
def test_spark_keeps_the_rules_against_a_broker(kafka: Any) -> None:
    laws, failures = check_kafka(load_engine("spark"), "kafka-*", kafka.address, PATIENCE)
    assert failures == []
    assert {law.rule for law in laws if law.status == "kept"} == {*KAFKA_LAWS} - {"scale-2"}


@pytest.mark.nightly("three starts of Spark; test_moved.py goes there and back each time")
def test_scale_2_a_run_goes_on_on_spark_and_again_on_the_reference(kafka: Any) -> None:
    reference = load_engine("reference")
    laws, failures = check_kafka(reference, "scale-2", kafka.address, PATIENCE, other="spark")
    assert failures == []
    assert [law.status for law in laws] == ["kept"]
