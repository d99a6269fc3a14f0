"""An application whose checkpoint on Spark is opened, and what a run does next with it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from small_steps import decode
from wallaroo_spark.live.checkpoint import STAMP, Checkpoint
from wallaroo_spark.live.stamped import write_stamped

import wallaroo
from wallaroo.topology import Application
from wallaroo.transport.identity import read_identity
from wallaroo.transport.input_log import InputLog
from wallaroo.transport.log_directory import LogEnds
from wallaroo.transport.stamps import Stamp


@wallaroo.state_computation(name="count")
def count(message: Any, state: Any) -> Any:
    return message, False


@wallaroo.state_computation(name="total")
def total(message: Any, state: Any) -> Any:
    return message, False


def application(name: str = "app", *steps: Any, state: Any = dict) -> Application:
    builder = wallaroo.ApplicationBuilder(name)
    builder.new_pipeline("p", wallaroo.TCPSourceConfig("127.0.0.1", 0, decode))
    for step in steps or (count,):
        builder.to_stateful(step, state, "state")
    return builder.done().build()


def begun(found: Checkpoint, frames: int = 0) -> Checkpoint:
    """Do what a run does next with a checkpoint, and log some frames."""

    def admit(log: LogEnds) -> Stamp:
        found.check_input(log)
        return found.begin_run()

    log = InputLog.open(found.input_log, 1 << 20, admit=admit)
    log.append("p", [b""] * frames)
    log.close()
    found.begin()
    return found


def spark_wrote(
    directory: Path,
    offsets: Mapping[int, int],
    commits: Sequence[int],
    partitions: int = 2,
    **kept: Any,
) -> None:
    """Write what Spark writes of its batches: where they end, and which are committed.

    With `kept`, what it keeps with an offset, there is no input log.
    """
    for folder in ("offsets", "commits"):
        (directory / "spark" / folder).mkdir(parents=True, exist_ok=True)
        (directory / "spark" / folder / ".0.crc").write_bytes(b"crc")
    (directory / "spark" / "metadata").write_text('{"id": "096e"}')
    stamp = read_identity(directory / "identity.json").stamp
    write_stamped(directory / "spark" / STAMP, stamp, None)
    settings = json.dumps({"conf": {"spark.sql.shuffle.partitions": str(partitions)}})
    for number, end in offsets.items():
        offset = json.dumps({"next": end, **kept})
        (directory / "spark" / "offsets" / str(number)).write_text(f"v1\n{settings}\n{offset}")
    for number in commits:
        (directory / "spark" / "commits" / str(number)).write_text("v1\n{}")
    (directory / "input").mkdir(exist_ok=True)
    if not kept:
        (directory / "input" / f"{0:020}.log").touch()
