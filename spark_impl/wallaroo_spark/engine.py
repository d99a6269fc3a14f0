"""`SparkEngine`: Wallaroo applications on Apache Spark."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from wallaroo.engine import Capabilities, Case, Handle, ServeOptions
from wallaroo.topology import Application
from wallaroo.trace import Trace
from wallaroo_spark.many import run_cases
from wallaroo_spark.serve import Server, SparkOptions
from wallaroo_spark.session import SessionSettings, session


class SparkEngine:
    """The engine of that name; see `wallaroo.engine.Engine`."""

    name = "spark"

    def capabilities(self) -> Capabilities:
        """Return what it claims."""
        return Capabilities(recovery=True)

    def check(self, application: Application) -> None:
        """Refuse what cannot be run; of what can be built today, there is nothing."""

    def run(self, case: Case) -> Trace:
        """Run one bounded case, as a batch job, or as a stream where it chooses its cuts."""
        return self.run_many([case])[0]

    def run_many(self, cases: Sequence[Case]) -> list[Trace]:
        """Run independent cases in one job of each kind; traces in their order."""
        return run_cases(session(), cases)

    def serve(self, application: Application, options: ServeOptions) -> Handle:
        """Listen on the application's sources and run until stopped."""
        return Server(application, options, spark_options(options.options))

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the engine's own options of ``wallaroo run`` to `parser`."""
        parser.add_argument(
            "--master", default="local[*]", metavar="URL", help="Spark's master (local[*])"
        )
        parser.add_argument(
            "--checkpoint",
            type=Path,
            metavar="DIR",
            help="keep state and unprocessed input here, and go on from here after a crash",
        )
        parser.add_argument(
            "--trigger",
            type=int,
            default=0,
            metavar="MS",
            help="milliseconds between micro-batches; 0: no pause (0)",
        )
        parser.add_argument(
            "--batch-bytes",
            type=int,
            default=SparkOptions.batch_bytes,
            metavar="N",
            help="payload bytes of a micro-batch at most (4 MiB)",
        )
        parser.add_argument(
            "--log-bytes",
            type=int,
            default=SparkOptions.log_bytes,
            metavar="N",
            help="size of the input log from which senders have to wait (256 MiB)",
        )
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
    """Return the options that `SparkEngine.add_arguments` named, with defaults for the others."""
    return SparkOptions(
        settings=SessionSettings(
            master=given.get("master", "local[*]"),
            conf=dict(given.get("conf", ())),
            verbose=given.get("verbose", False),
            server_jvm=given.get("throughput", False),
        ),
        checkpoint=given.get("checkpoint"),
        trigger=given.get("trigger", 0),
        batch_bytes=given.get("batch_bytes", SparkOptions.batch_bytes),
        log_bytes=given.get("log_bytes", SparkOptions.log_bytes),
    )


def _setting(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise argparse.ArgumentTypeError(f"write K=V, not {text!r}")
    return name, value
