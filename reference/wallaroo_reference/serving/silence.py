"""Says for which partitions windows wait that have been silent for long (kafka-9)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping

from wallaroo.kafka import KafkaSourceConfig
from wallaroo.metrics.registry import Registry
from wallaroo.metrics.silence import SILENT, named, silent_partitions
from wallaroo.topology import Application
from wallaroo_reference.machine import Machine

_LOOK = 5.0  # seconds between looks

_log = logging.getLogger("wallaroo.reference")


class Silence:
    """Looks at a machine now and then, in the loop's thread.

    Args:
        application: what runs.
        machine: runs it.
        metrics: gets what is found; `None`: nobody wants it.

    Attributes:
        partitions: those for which windows wait, by source, as of the last look.
    """

    def __init__(
        self, application: Application, machine: Machine, metrics: Registry | None
    ) -> None:
        self.partitions: Mapping[str, list[int]] = {}
        self._machine = machine
        self._metrics = metrics
        waited_for = {name for at in application.window_steps for name in application.ways[at]}
        self._sources = {
            name: source
            for name, source in application.sources.items()
            if name in waited_for and isinstance(source.config, KafkaSourceConfig)
        }
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Begin, in the running loop."""
        if self._sources:
            self._timer = asyncio.get_running_loop().call_later(_LOOK, self._look_again)

    def close(self) -> None:
        """Look a last time."""
        if self._timer is not None:
            self._timer.cancel()
            self.look()

    def _look_again(self) -> None:
        self.look()
        self.start()

    def look(self) -> None:
        """Look now, between two records."""
        before, moment = self.partitions, self._machine.moment()
        found = {
            name: silent_partitions(
                source, moment.sources[name].partitions, moment.now, moment.first
            )
            for name, source in self._sources.items()
        }
        waiting = any(found.values()) and self._machine.open_windows
        self.partitions = {name: some for name, some in found.items() if some and waiting}
        for name, some in self.partitions.items():
            if new := set(some).difference(before.get(name, [])):
                _log.warning(
                    "windows wait for %s: nothing came from there for %d s or more, while others "
                    "went on. With idle_after= of the source they do not wait (kafka-9)",
                    named(name, new),
                    SILENT // 10**9,
                )
        if self._metrics is not None:
            for name in self._sources:
                self._metrics.sources[name].silent = tuple(self.partitions.get(name, ()))
