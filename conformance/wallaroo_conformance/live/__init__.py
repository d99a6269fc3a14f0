"""Rules that only a live server can keep or break: framing, sinks that go away, stops, recovery."""

from wallaroo_conformance.live.check import LIVE_LAWS, PATIENCE, check_live

__all__ = ["LIVE_LAWS", "PATIENCE", "check_live"]
