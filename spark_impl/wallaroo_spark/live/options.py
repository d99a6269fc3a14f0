"""The engine's own options of ``wallaroo run``."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wallaroo.cli.arguments import add_accept_repeats, add_checkpoint, add_input_log, count, index
from wallaroo.transport.changed_topology import NOTHING_ACCEPTED, Accepted
from wallaroo_spark.jvm.session import submitted_conf
from wallaroo_spark.jvm.settings import SessionSettings
from wallaroo_spark.live.remote import CheckpointUrl, checkpoint_place


@dataclass(frozen=True)
class SparkOptions:
    """The values of the options that `add_arguments` adds.

    Args:
        settings: the session's settings.
        checkpoint: place for recovery, a directory or a URL; `None`: state and input are lost with
            the run.
        resume: whether there must be a checkpoint already.
        trigger: milliseconds from one micro-batch's start to the next; 0: as soon as possible.
        batch_bytes: most payload bytes of a micro-batch, and 56 times its most records.
        log_bytes: size of the input log at which reading from the sources stops.
        record: directory in which the whole input log is kept; `None`: it is not.
        accepted: what is accepted of a checkpoint that another version of the application wrote.
        skip: numbers of records that a restart leaves out.
        accept_repeats: go on where brokers have forgotten a sink's position (kafka-16).
        accept_gaps: go on where brokers have deleted records that were not read (kafka-5).
    """

    settings: SessionSettings
    checkpoint: Path | CheckpointUrl | None = None
    resume: bool = False
    trigger: int = 0
    batch_bytes: int = 16 << 20
    log_bytes: int = 256 << 20
    record: Path | None = None
    accepted: Accepted = NOTHING_ACCEPTED
    skip: Sequence[int] = ()
    accept_repeats: bool = False
    accept_gaps: bool = False

    @property
    def default_partitions(self) -> int:
        """One partition for each core of a local master; two for other masters."""
        inside = self.settings.master.removeprefix("local").strip("[]").split(",")[0]
        if inside == "*":
            return os.cpu_count() or 1
        return int(inside) if inside.isdigit() else 2


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options to `parser`."""
    parser.add_argument(
        "--master", metavar="URL", help="Spark's master (local[*], or what spark-submit was told)"
    )
    add_checkpoint(parser, checkpoint_place)
    parser.add_argument(
        "--trigger",
        type=index,
        default=0,
        metavar="MS",
        help="milliseconds between micro-batches; 0: no pause (0)",
    )
    parser.add_argument(
        "--batch-bytes",
        type=count,
        default=SparkOptions.batch_bytes,
        metavar="N",
        help="most payload bytes of a micro-batch (16 MiB); a record for each 56 of them at most",
    )
    parser.add_argument(
        "--accept-gaps",
        action="store_true",
        help="go on where brokers have deleted records of a Kafka source that were not read yet",
    )
    add_input_log(parser, SparkOptions.log_bytes)
    add_accept_repeats(parser)
    parser.add_argument(
        "--throughput",
        action="store_true",
        help="run the JVM for throughput, not for a quick start and low latency",
    )
    parser.add_argument(
        "--conf",
        action="append",
        default=[],
        type=_setting,
        metavar="K=V",
        help="a Spark setting; may be repeated",
    )
    parser.add_argument("--verbose", action="store_true", help="show Spark's own messages")


def spark_options(given: Mapping[str, Any]) -> SparkOptions:
    """Return the options from their values by name, with defaults for those not given."""
    conf = submitted_conf()
    master = conf.pop("spark.master", "local[*]")
    conf |= dict(given.get("conf", ()))
    return SparkOptions(
        settings=SessionSettings(
            master=given.get("master") or master,
            conf=conf,
            verbose=given.get("verbose", False),
            server_jvm=given.get("throughput", False),
            driver_memory=conf.get("spark.driver.memory", SessionSettings.driver_memory),
        ),
        checkpoint=given.get("checkpoint"),
        resume=given.get("resume", False) or bool(given.get("skip_record")),
        trigger=given.get("trigger", 0),
        batch_bytes=given.get("batch_bytes", SparkOptions.batch_bytes),
        log_bytes=given.get("log_bytes", SparkOptions.log_bytes),
        record=given.get("record"),
        accepted=Accepted.given(given),
        skip=given.get("skip_record", ()),
        accept_repeats=given.get("accept_repeats", False),
        accept_gaps=given.get("accept_gaps", False),
    )


def _setting(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise argparse.ArgumentTypeError(f"write K=V, not {text!r}")
    return name, value
