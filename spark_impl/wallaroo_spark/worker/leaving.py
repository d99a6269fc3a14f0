"""Outputs leave for Kafka: in order, once each, from the one task that has a partition (kafka-15).

What is committed with outputs says how far they are: the number of the record that caused the last
of them, how many this record has caused so far for this partition, and the run. So why is each
output there once, whatever is killed and whenever?

1. Outputs and position are committed in one transaction: both are there, or neither is. Outputs are
   a function of the log (order-2), so every attempt makes the same ones, in the same order, with
   the same numbers, however the log is cut into micro-batches. A record lies in one micro-batch.
2. An attempt takes the partition's transactional id over, and reads the position after that. From
   then on no earlier client of that id can commit, and what it had open is ended. So the position
   stands until this attempt commits, or is shut out itself. It sends what is behind the position:
   nothing twice, and no gap, since the attempts before it left none.
3. A commit whose answer is lost was made or was not; the next attempt reads which.
4. A worker keeps a client between micro-batches. If nobody has shut it out, nobody has committed,
   and the position that it remembers is right. If somebody has, its next commit fails, and nothing
   of it shows. Then the worker takes the id over again, as in 2.
5. A run writes its name into every position when it starts, before anything is received. So an
   attempt of an earlier run that takes an id over reads another run's name, and sends nothing
   (kafka-16).

Spark commits the micro-batch when all its outputs are there. A call that ends the run is told to
all tasks before they send, so nothing behind it leaves (dead-4).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from wallaroo.errors import WallarooError
from wallaroo.kafka_records import Produced, size_of
from wallaroo.topology import SinkId
from wallaroo.transport.kafka.context import Context, Contexts, carry_on
from wallaroo.transport.kafka.destination import Destination, persisting
from wallaroo.transport.kafka.producing import (
    Committed,
    OutputProducer,
    Place,
    ShutOutError,
    shut_out,
)
from wallaroo_spark.wire.job import Leaving, Report, Sent
from wallaroo_spark.wire.lineages import order_of
from wallaroo_spark.wire.outbox import Outputs, outputs_in_order
from wallaroo_spark.worker.garbage import begin_task

_AT_ONCE = 8  # partitions to which a task sends at the same time: each waits for brokers
_CLIENTS = 32  # that a worker keeps, or as many as a task has partitions


@dataclass(frozen=True)
class Departure:
    """Where the outputs of a live run leave to.

    Args:
        run: the run's name; it stands in positions.
        destinations: by the nodes of Kafka sinks.
    """

    run: str
    destinations: Mapping[int, Destination]


def place_of(there: Destination, partition: int) -> Place:
    """Return where the position of a partition stands, for a sink that has an id."""
    assert there.id is not None
    return Place(there.id, partition)


def note_of(run: str, count: int) -> str:
    """Return what a position says besides the number: the run, and outputs of that number."""
    return f"{run} {count}"


def read_note(note: str) -> tuple[str, int]:
    """Return what `note_of` was given; what no run has written counts as of no run."""
    run, _, count = note.partition(" ")
    return (run, int(count)) if count.isdecimal() else ("", 0)


def producer_of(there: Destination, partition: int) -> OutputProducer:
    """Return a new client for a partition.

    Raises:
        BrokerError: an option is not one of the client's.
    """
    return OutputProducer(there, f"-{partition}")


def leave(blocks: Iterable[Leaving], departure: Departure) -> Report:
    """Send the outputs of one task, and return once the brokers have them.

    Raises:
        ShutOutError: another attempt has taken a partition over; Spark tries again.
    """
    begin_task()
    runs: dict[tuple[int, int], list[Outputs]] = {}
    ends = []
    contexts: dict[int, Context] = {}
    for block in blocks:
        ends += block.ends
        contexts.update(block.contexts)
        for run in block.outputs:
            assert run.partition is not None
            runs.setdefault((run.node, run.partition), []).append(run)
    end = min([end.order for end in ends], default=None)
    report = Report()

    def send(place: tuple[int, int]) -> None:
        node, partition = place
        there = departure.destinations[node]
        outputs = outputs_in_order(runs[place])
        if end is not None:
            index = there.sink[1]
            outputs = [one for one in outputs if order_of(one[0], node, index) < end]
        produced = [output for _, output in outputs]
        if contexts:
            carry_on(produced, Contexts(contexts, 0), 0)
        if produced:
            report.sent[place] = _sent(there, partition, departure.run, produced)

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        try:
            list(pool.map(send, sorted(runs)))
        except ShutOutError:
            raise
        except WallarooError as error:  # to try again would change nothing
            report.problem = str(error)
    for place in [*_kept][: -max(_CLIENTS, len(runs))]:  # those that were used longest ago
        del _kept[place]
    return report


class NoLongerOursError(WallarooError):
    """A later run has begun: no attempt of this one sends anything any more (kafka-16)."""


def _sent(there: Destination, partition: int, run: str, outputs: list[Produced]) -> Sent:
    """Send the outputs of a partition, by the client that is kept or else by a new one."""
    place = run, there.sink, partition
    kept = _kept.pop(place, None)
    if kept is not None:
        with contextlib.suppress(WallarooError):  # it was shut out, or brokers were away for long
            sent = kept.send(outputs)
            _kept[place] = kept
            return sent

    def begin_anew() -> Sent:
        outlet = _Outlet(there, partition, run)
        sent = outlet.send(outputs)
        _kept[place] = outlet
        return sent

    return persisting(begin_anew)


class _Outlet:
    """A client for one partition.

    Raises:
        BrokersAwayError: they cannot be reached.
        NoLongerOursError: a later run has begun.
    """

    def __init__(self, there: Destination, partition: int, run: str) -> None:
        self._run = run
        self._once = there.id is not None
        self._producer = producer_of(there, partition)
        # A position that brokers have forgotten since the start is older than this micro-batch.
        self._number, self._count = 0, 0
        if self._once:
            position = self._producer.take_over(place_of(there, partition))
            if position is not None:
                self._number = position.number
                owner, self._count = read_note(position.note)
                if owner != run:
                    raise NoLongerOursError(str(shut_out(there.name)))

    def send(self, outputs: list[Produced]) -> Sent:
        """Send what is behind the position, and commit it."""
        rest = self._behind(outputs)
        if rest and self._once:
            number = rest[-1].number
            count = len([output for output in rest if output.number == number])
            if number == self._number:
                count += self._count
            self._producer.deliver_once(rest, Committed(number, note_of(self._run, count)))
            self._number, self._count = number, count
        elif rest:
            self._producer.deliver(rest)
        return Sent(len(outputs), size_of(rest))

    def _behind(self, outputs: list[Produced]) -> list[Produced]:
        """Return the outputs that are not there yet."""
        if outputs[0].number > self._number:
            return outputs
        rest = [output for output in outputs if output.number >= self._number]
        there = self._count if rest and rest[0].number == self._number else 0
        return rest[there:]


_kept: dict[tuple[str, SinkId, int], _Outlet] = {}
"""The clients of this worker, by run, sink and partition."""
