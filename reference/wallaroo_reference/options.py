"""The reference engine's own options of ``wallaroo run``."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wallaroo.cli.arguments import add_accept_repeats, add_checkpoint, add_input_log, duration
from wallaroo.transport.changed_topology import NOTHING_ACCEPTED, Accepted


@dataclass(frozen=True)
class CheckpointOptions:
    """The values of the options that `add_arguments` adds.

    Args:
        directory: for recovery; `None`: state and input are lost with the run.
        interval: seconds from one checkpoint to the next.
        log_bytes: size of the input log at which reading from the sources stops.
        record: directory in which the whole input log is kept; `None`: it is not.
        accepted: what is accepted of a checkpoint that another version of the application wrote.
        skip: numbers of records that a restart leaves out.
        accept_gaps: go on where brokers have deleted records that were not read (kafka-5).
        accept_repeats: go on where brokers have forgotten a sink's position (kafka-16).
        transaction: seconds that a transaction of a Kafka sink stays open (kafka-15).
    """

    directory: Path | None = None
    interval: float = 1.0
    log_bytes: int = 256 << 20
    record: Path | None = None
    accepted: Accepted = NOTHING_ACCEPTED
    skip: Sequence[int] = ()
    accept_gaps: bool = False
    accept_repeats: bool = False
    transaction: float = 0.1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options to `parser`."""
    add_checkpoint(parser)
    parser.add_argument(
        "--checkpoint-interval",
        type=duration,
        default=CheckpointOptions.interval,
        metavar="SECONDS",
        help="how often state is stored (1)",
    )
    parser.add_argument(
        "--transaction",
        type=duration,
        default=CheckpointOptions.transaction,
        metavar="SECONDS",
        help="how long a transaction of a Kafka sink stays open: readers of committed records get "
        "outputs so much later (0.1)",
    )
    parser.add_argument(
        "--accept-gaps",
        action="store_true",
        help="go on where brokers have deleted records of a Kafka source that were not read yet",
    )
    add_accept_repeats(parser)
    add_input_log(parser, CheckpointOptions.log_bytes)


def checkpoint_options(given: Mapping[str, Any]) -> CheckpointOptions:
    """Return the options from their values by name, with defaults for those not given."""
    return CheckpointOptions(
        directory=given.get("checkpoint"),
        interval=given.get("checkpoint_interval", CheckpointOptions.interval),
        log_bytes=given.get("log_bytes", CheckpointOptions.log_bytes),
        record=given.get("record"),
        accepted=Accepted.given(given),
        skip=given.get("skip_record", ()),
        accept_gaps=given.get("accept_gaps", False),
        accept_repeats=given.get("accept_repeats", False),
        transaction=given.get("transaction", CheckpointOptions.transaction),
    )
