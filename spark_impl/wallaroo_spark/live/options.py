"""The engine's own options of ``wallaroo run``."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from wallaroo.cli.arguments import count, index
from wallaroo.cli.own_options import CHECKPOINT_HELP, RecoveryOptions, flag, option, several
from wallaroo_spark.jvm.session import submitted_conf
from wallaroo_spark.jvm.settings import SessionSettings
from wallaroo_spark.live.remote import CheckpointUrl, checkpoint_place


def _setting(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise argparse.ArgumentTypeError(f"write K=V, not {text!r}")
    return name, value


@dataclass(frozen=True)
class SparkOptions(RecoveryOptions):
    """The options. Besides a directory, a checkpoint may be at a URL."""

    checkpoint: Path | CheckpointUrl | None = option(  # type: ignore[assignment]  # noqa: RUF009 - it makes a field, of more kinds
        None, checkpoint_place, "DIR", CHECKPOINT_HELP
    )
    master: str | None = option(
        None, str, "URL", "Spark's master (local[*], or what spark-submit was told)"
    )
    trigger: int = option(0, index, "MS", "milliseconds between micro-batches; 0: no pause (0)")
    batch_bytes: int = option(
        *(16 << 20, count, "N"),
        "most payload bytes of a micro-batch (16 MiB); a record for each 32 of them at most",
    )
    conf: Sequence[tuple[str, str]] = several(_setting, "K=V", "a Spark setting; may be repeated")
    verbose: bool = flag("show Spark's own messages")

    @cached_property
    def settings(self) -> SessionSettings:
        """The session's settings."""
        conf = submitted_conf()
        master = conf.pop("spark.master", "local[*]")
        conf |= dict(self.conf)
        return SessionSettings(
            master=self.master or master,
            conf=conf,
            verbose=self.verbose,
            driver_memory=conf.get("spark.driver.memory", SessionSettings.driver_memory),
        )

    @property
    def default_partitions(self) -> int:
        """One partition for each core of a local master; two for other masters."""
        inside = self.settings.master.removeprefix("local").strip("[]").split(",")[0]
        if inside == "*":
            return os.cpu_count() or 1
        return int(inside) if inside.isdigit() else 2
