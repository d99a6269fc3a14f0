"""The reference engine's own options of ``wallaroo run``."""

from __future__ import annotations

import argparse
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class CheckpointOptions:
    """The values of the options that `add_arguments` adds.

    Args:
        directory: for recovery; `None`: state and input are lost with the run.
        interval: seconds from one checkpoint to the next.
        log_bytes: size of the input log at which reading from the sources stops.
    """

    directory: Path | None = None
    interval: float = 1.0
    log_bytes: int = 256 << 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options to `parser`."""
    parser.add_argument(
        "--checkpoint",
        type=Path,
        metavar="DIR",
        help="keep state and unprocessed input here, and go on from here after a crash",
    )
    parser.add_argument(
        "--checkpoint-interval",
        type=_seconds,
        default=CheckpointOptions.interval,
        metavar="SECONDS",
        help="how often state is stored (1)",
    )
    parser.add_argument(
        "--log-bytes",
        type=_bytes,
        default=CheckpointOptions.log_bytes,
        metavar="N",
        help="size of the input log from which senders have to wait (256 MiB)",
    )


def checkpoint_options(given: Mapping[str, Any]) -> CheckpointOptions:
    """Return the options from their values by name, with defaults for those not given."""
    return CheckpointOptions(
        directory=given.get("checkpoint"),
        interval=given.get("checkpoint_interval", CheckpointOptions.interval),
        log_bytes=given.get("log_bytes", CheckpointOptions.log_bytes),
    )


def _seconds(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 < number < math.inf:
        raise argparse.ArgumentTypeError(f"expected seconds, more than 0, not {text!r}")
    return number


def _bytes(text: str) -> int:
    number = int(text) if text.isascii() and text.isdigit() else 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"expected a number of bytes, not {text!r}")
    return number
