"""`SparkEngine`: Wallaroo applications on Apache Spark."""

from __future__ import annotations

from collections.abc import Sequence

from wallaroo.engine import Capabilities, Case
from wallaroo.topology import Application
from wallaroo.trace import Trace
from wallaroo_spark.many import run_cases
from wallaroo_spark.session import session


class SparkEngine:
    """The engine of that name; see `wallaroo.engine.Engine`."""

    name = "spark"

    def capabilities(self) -> Capabilities:
        """Return what it claims."""
        return Capabilities(recovery=True)

    def check(self, application: Application) -> None:
        """Refuse what cannot be run; there is nothing this engine cannot run."""

    def run(self, case: Case) -> Trace:
        """Run one bounded case, as a batch job, or as a stream where it chooses its cuts."""
        return self.run_many([case])[0]

    def run_many(self, cases: Sequence[Case]) -> list[Trace]:
        """Run independent cases in one job of each kind; traces in their order."""
        running = session()
        return run_cases(running.spark, cases, running.spark.sparkContext.defaultParallelism)
