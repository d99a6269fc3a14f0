"""``--metrics`` and ``--otel`` of ``wallaroo run``: the run's figures, and where they are shown."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from wallaroo.errors import ExtraMissingError
from wallaroo.topology import Application

if TYPE_CHECKING:
    from wallaroo.metrics.registry import Registry
    from wallaroo.monitor.otel import Exporter


@contextmanager
def metrics_of(
    application: Application, engine: str, options: argparse.Namespace
) -> Iterator[Registry | None]:
    """Yield the run's figures, served and sent until the end of the block; `None`: not wanted.

    Raises:
        MetricsAddressError: they cannot be served there.
        ExtraMissingError: the packages that send them are not installed.
    """
    if options.metrics is None and options.otel is None:
        yield None
        return
    from wallaroo.metrics.registry import Registry

    registry = Registry(application, engine, partitions=options.partitions or 1)
    with ExitStack() as stack:
        if options.otel is not None:
            exporter = _exporter(registry, options.otel)
            exporter.start()
            stack.callback(exporter.close)
        if options.metrics is not None:
            from wallaroo.monitor.server import Monitor  # an HTTP server, only where it is wanted

            monitor = Monitor(registry, *options.metrics)
            # One write: print makes two, and another thread's log could come between them.
            sys.stderr.write(f"metrics at {monitor.url}\n")
            sys.stderr.flush()
            monitor.start()
            stack.callback(monitor.close)
        yield registry


def _exporter(registry: Registry, url: str) -> Exporter:
    try:
        from wallaroo.monitor.otel import Exporter
    except ModuleNotFoundError as error:
        raise ExtraMissingError(
            f"--otel needs the OpenTelemetry SDK, and {error.name} is not installed; "
            "try: pip install 'wallaroo-streams[otel]'"
        ) from error
    return Exporter(registry, url)
