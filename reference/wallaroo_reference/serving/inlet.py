"""The engine's part between the edges: takes what they receive, and ends the run when it must."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from wallaroo.kafka_records import KafkaRun
from wallaroo.overriding import override
from wallaroo.records import Assigned, End, Tick, Value
from wallaroo.topology import Application
from wallaroo.transport.edges import Edges
from wallaroo.transport.interfaces import Receiver
from wallaroo.transport.stop_clock import StopClock
from wallaroo_reference.checkpoints.on_disk import FromTopic
from wallaroo_reference.serving.feeder import Feeder, Intake

_log = logging.getLogger("wallaroo.reference")


class Inlet(Receiver):
    """Gives what is received its arrival time, and hands it to the journal or the feeder.

    All methods belong to the loop's thread. Nothing is received before `begin`.

    Args:
        application: what is run.
        arrival: returns the arrival time of a record, in nanoseconds since 1970; 0 where no time
            is needed.
        lasts: windows that are open at the end go on in the next run.

    Attributes:
        stop: when the run has to stop; there from `begin` on.
    """

    stop: StopClock

    def __init__(
        self, application: Application, arrival: Callable[[], int], *, lasts: bool
    ) -> None:
        self._arrival = arrival
        self._ends_sources = application.time_decides or not lasts
        self._unended = set(application.sources)
        self._edges: Edges
        self._intake: Intake
        self._feeder: Feeder

    def begin(self, edges: Edges, intake: Intake, feeder: Feeder, stop: StopClock) -> None:
        """Hand what is received from now on to `intake`."""
        self._edges, self._intake, self._feeder, self.stop = edges, intake, feeder, stop

    @override
    def receive(self, source: str, payloads: list[bytes]) -> None:
        self._intake.receive(source, payloads, self._arrival())

    @override
    def when_sequenced(self, close: Callable[[], None]) -> None:
        self._intake.when_sequenced(close)

    @override
    def sinks_have_room(self) -> None:
        self._feeder.sinks_have_room()

    @override
    def receive_records(self, records: Sequence[Value | Assigned | Tick | End]) -> None:
        self._intake.receive_records(records)
        ends = [record for record in records if isinstance(record, End)]
        self._ended({record.source for record in ends if record.partition is None})

    @override
    def receive_run(self, source: str, run: KafkaRun, at: int | None) -> None:
        at = self._arrival() if at is None else at
        self._intake.receive_run(FromTopic(source, run, at))

    @override
    def input_failed(self, problem: str) -> None:
        self.stop.input_ended(problem)

    @override
    def input_ended(self, problem: str | None) -> None:
        if problem is not None:
            self.stop.input_ended(problem)
        ended = self._edges.listened_to & self._unended
        if self._ends_sources:
            self.receive_records([End(name, self._arrival()) for name in ended])
        else:  # ending the source is not needed, and the next run on the checkpoint reads on
            self._ended(ended)

    @override
    def outputs_broken(self, problem: str) -> None:
        self.fail(problem)
        self._feeder.abandon()

    def caught_up(self, ended: set[str]) -> None:
        """Go on behind what earlier runs have received, unless all sources had ended in these."""
        if not self._unended - ended:
            _log.warning("every source has ended in an earlier run: nothing more is received")
        self._ended(ended)

    def fail(self, problem: str) -> None:
        """End the run: receive and process nothing more; deliver the outputs that were made."""
        self._edges.refuse()
        self.stop.fail(problem)

    def _ended(self, sources: set[str]) -> None:
        self._unended -= sources
        if not self._unended:
            self.stop.input_ended(None)
