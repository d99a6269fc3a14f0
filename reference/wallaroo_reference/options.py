"""The reference engine's own options of ``wallaroo run``."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wallaroo.cli.arguments import add_checkpoint, add_input_log, duration
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
    """

    directory: Path | None = None
    interval: float = 1.0
    log_bytes: int = 256 << 20
    record: Path | None = None
    accepted: Accepted = NOTHING_ACCEPTED
    skip: Sequence[int] = ()


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
    )
