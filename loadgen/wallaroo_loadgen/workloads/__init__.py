"""The workloads of the published applications, and two that need none."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from wallaroo_loadgen.workloads.echo import Echo
from wallaroo_loadgen.workloads.log_status import LogStatus
from wallaroo_loadgen.workloads.market_spread import MarketSpread
from wallaroo_loadgen.workloads.protocol import Options, Workload
from wallaroo_loadgen.workloads.replay import Replay
from wallaroo_loadgen.workloads.word_count import WordCount

MAKERS: Mapping[str, Callable[[Options], Workload]] = {
    "echo": Echo,
    "log_status": LogStatus,
    "market_spread": MarketSpread,
    "replay": Replay,
    "word_count": WordCount,
}
"""Workloads by name."""
