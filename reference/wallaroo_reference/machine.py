"""The interface of the interpreter and the compiled path: a machine that is fed records.

Sans-IO: no socket, thread or clock. The feeder empties `outputs` and `dead_letters`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from wallaroo.findings import Finding
from wallaroo.kafka import KafkaSourceConfig
from wallaroo.records import Consumed, Frame, Record, Single
from wallaroo.topology import SinkId, Source
from wallaroo.trace import DeadLetter, Ended, Entity, OpenWindow
from wallaroo_reference.cells import Cells, Moment
from wallaroo_reference.meter import Meter


class Machine(Protocol):
    """An application, running.

    Attributes:
        sequence: the number the next frame gets.
        outputs: the outputs of each sink, in order, until the feeder takes them: bytes, of a Kafka
            sink `wallaroo.kafka_records.Produced`.
        dead_letters: the dead letters, in order, until the feeder takes them.
        ended: why the run ended before its input did (dead-3, dead-4), else `None`; once it is
            set, `feed` does nothing.
        meter: measures the outputs of a feed; if it has limits, a feed may end early.
        findings: about the application; the compiled path has none.
        topics: how many partitions the topics of Kafka sinks have: at first where the sink says it
            (kafka-13). Whoever asks the brokers adds the others before anything is fed.
    """

    sequence: int
    outputs: dict[SinkId, list[Any]]
    dead_letters: list[DeadLetter]
    ended: Ended | None
    meter: Meter
    topics: dict[SinkId, int]

    @property
    def findings(self) -> Sequence[Finding]:
        """The findings about the application."""

    @property
    def late(self) -> Mapping[tuple[str, str], int]:
        """Late messages by (step, ``dropped`` or ``partly``) (window-6)."""

    def feed(
        self, source: str, payloads: Sequence[Any], at: int = 0, partition: int | None = None
    ) -> None:
        """Process frames of one source, in order, each completely before the next begins.

        Args:
            source: the source's name.
            payloads: the frames' payloads. Of a Kafka source the records of consecutive offsets
                of one partition: their values, or whole, if `KafkaSourceConfig.whole` says so.
                If the meter has limits this is a list; when there are enough outputs the feed ends
                early, and the payloads that were not processed are removed from the list.
            at: the arrival time of all of them, in nanoseconds; a time before the last record's
                counts as that record's (time-1).
            partition: of a Kafka source, where they stand.
        """

    def take(self, record: Single) -> None:
        """Process a record by itself."""

    def due(self) -> int | None:
        """Return the earliest arrival time at which time alone makes something due (time-1).

        In nanoseconds; it may have passed already. `None`: nothing will be due.
        """

    @property
    def open_windows(self) -> int:
        """The number of windows that are open now."""

    def windows(self) -> list[OpenWindow]:
        """Return the windows that are open now (window-11)."""

    def entities(self) -> list[Entity]:
        """Return the state entities as they are now."""

    def cells(self) -> Sequence[Cells]:
        """Return the machine's state in pieces: its partitions' entities, its steps' windows."""

    def moment(self) -> Moment:
        """Return the machine's position and times; call it between two records."""

    def go_on_from(self, moment: Moment) -> None:
        """Continue from the moment of the machine whose cells have been unpacked here."""


def process(machine: Machine, sources: Mapping[str, Source], records: Sequence[Record]) -> None:
    """Let a machine process records that belong together.

    Args:
        machine: the machine.
        sources: the application's sources, by name.
        records: frames of one source, or records of one partition, with one arrival time; or one
            other record.
    """
    first = records[0]
    if isinstance(first, Frame):
        payloads = [record.payload for record in records if isinstance(record, Frame)]
        machine.feed(first.source, payloads, first.at)
    elif isinstance(first, Consumed):
        config = sources[first.source].config
        assert isinstance(config, KafkaSourceConfig)
        read = [one.record for one in records if isinstance(one, Consumed)]
        fed: list[Any] = read if config.whole else [one.value for one in read]
        machine.feed(first.source, fed, first.at, first.record.partition)
    else:
        machine.take(first)
