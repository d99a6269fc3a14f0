"""Rules that only a live server can keep or break: framing, sinks that go away, stops, recovery."""

from wallaroo_conformance.live.check import LIVE_LAWS, PATIENCE, check_live
from wallaroo_conformance.live.kafka import KAFKA_LAWS

__all__ = ["KAFKA_LAWS", "LIVE_LAWS", "PATIENCE", "check_live"]
