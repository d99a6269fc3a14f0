"""The reference engine's own options of ``wallaroo run``."""

from __future__ import annotations

from dataclasses import dataclass

from wallaroo.cli.arguments import duration
from wallaroo.cli.own_options import RecoveryOptions, option


@dataclass(frozen=True)
class CheckpointOptions(RecoveryOptions):
    """The options, which are all about what outlives a run."""

    checkpoint_interval: float = option(1.0, duration, "SECONDS", "how often state is stored (1)")
    transaction: float = option(
        *(0.1, duration, "SECONDS"),
        "how long a transaction of a Kafka sink stays open: readers of committed records get "
        "outputs so much later (0.1)",
    )
