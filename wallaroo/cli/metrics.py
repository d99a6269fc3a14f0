"""``--metrics HOST:PORT`` of ``wallaroo run``: the figures of the run, and what serves them."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from wallaroo.topology import Application

if TYPE_CHECKING:
    from wallaroo.metrics.registry import Registry


@contextmanager
def metrics_of(
    application: Application, engine: str, options: argparse.Namespace
) -> Iterator[Registry | None]:
    """Yield the run's figures, served until the end of the block; `None` without ``--metrics``.

    Raises:
        MetricsAddressError: they cannot be served there.
    """
    if options.metrics is None:
        yield None
        return
    from wallaroo.metrics.registry import Registry
    from wallaroo.monitor.server import Monitor  # an HTTP server, only where it is wanted

    registry = Registry(application, engine, partitions=options.partitions or 1)
    monitor = Monitor(registry, *options.metrics)
    # One write: print makes two, and another thread's log could come between them.
    sys.stderr.write(f"metrics at {monitor.url}\n")
    sys.stderr.flush()
    monitor.start()
    try:
        yield registry
    finally:
        monitor.close()
