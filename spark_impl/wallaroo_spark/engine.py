"""`SparkEngine`: Wallaroo applications on Apache Spark."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from wallaroo.cli.own_options import add_options
from wallaroo.engine import Capabilities, Case, Handle, ServeOptions
from wallaroo.errors import WallarooParameterError
from wallaroo.topology import Application
from wallaroo.trace import Trace
from wallaroo_spark.bounded.runs import run_cases
from wallaroo_spark.bounded.traces import SMALL
from wallaroo_spark.jvm.pickling import pickle_application, warn_of_unportable_states
from wallaroo_spark.jvm.process import SubmittingJvm
from wallaroo_spark.jvm.session import session
from wallaroo_spark.live.options import SparkOptions
from wallaroo_spark.live.serve import Server
from wallaroo_spark.live.stored import StoredOnSpark


class SparkEngine:
    """The engine of that name; see `wallaroo.engine.Engine`."""

    name = "spark"
    one_at_a_time = True  # a process has one live run: its session is not shared

    def capabilities(self) -> Capabilities:
        """Return what it can do."""
        return Capabilities(
            recovery=True,
            always_logs=True,
            kafka=True,
            faults=frozenset({"task"}),
            small=SMALL,
        )

    def check(self, application: Application) -> None:
        """Refuse what cannot be sent; warn of states that cannot be kept."""
        pickle_application(application)
        warn_of_unportable_states(application)

    def run(self, case: Case) -> Trace:
        """Run one bounded case: as a stream if it chooses its batches, else as a batch job."""
        return self.run_many([case])[0]

    def run_many(self, cases: Sequence[Case]) -> list[Trace]:
        """Run independent cases in one batch job and one stream; traces in their order."""
        return run_cases(session(), cases)

    def serve(self, application: Application, options: ServeOptions) -> Handle:
        """Listen on the application's sources and run until stopped.

        Raises:
            WallarooParameterError: stdin is asked for under `spark-submit`.
        """
        if options.stdin is not None and SubmittingJvm.is_there():  # it would wait for ever
            raise WallarooParameterError("spark-submit does not pass on standard input: no --stdin")
        return Server(application, options, SparkOptions.given(options.options))

    def stored(self, directory: Path) -> StoredOnSpark:
        """Return the engine's part of a checkpoint, for `wallaroo checkpoint`."""
        return StoredOnSpark(directory)

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the engine's own options of ``wallaroo run`` to `parser`."""
        add_options(parser, SparkOptions)
