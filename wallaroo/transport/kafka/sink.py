"""A Kafka sink: outputs go to partitions of a topic, exactly once if there is a checkpoint.

An output has the number of the record that caused it. With a checkpoint, outputs leave in
transactions, and each transaction commits, with them, the *position*: the number behind that of its
last output (kafka-15). A restart makes the same outputs again, with the same numbers, and those
before the committed position are left out.
"""

from __future__ import annotations

import asyncio
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence

from wallaroo.errors import WallarooError
from wallaroo.kafka_records import Produced, size_of
from wallaroo.overriding import override
from wallaroo.transport.interfaces import OutputSink
from wallaroo.transport.kafka.cluster import client
from wallaroo.transport.kafka.destination import Destination
from wallaroo.transport.kafka.producing import (
    Committed,
    OutputProducer,
    Place,
    forgotten,
    older,
)
from wallaroo.transport.threads import Post

_LIMIT = 16 << 20  # bytes of outputs, with the memory to keep them, from which a sink is full
_COST = 300  # bytes to keep an output, besides its own
_LOOK = 0.002  # seconds between looks while `drain` waits
_WAIT = 0.05  # seconds between looks whether to go on
_INTERVAL = 0.005  # seconds after which outputs are waited for that are in no transaction
_PLACE = 0  # the partition under which a position is committed; every topic has it


class KafkaSink(OutputSink):
    """Delivers outputs to a topic, from a thread. Call its methods in the loop's thread.

    Args:
        there: where they go; with an id, exactly once.
        interval: seconds that a transaction stays open.
        post: calls a function in the loop's thread.
        on_room: called when it was full and has room again.
        failed: called with an error's text if outputs cannot be delivered any more.

    Attributes:
        there: as given.
        position: with transactions, the number that the brokers have as committed: the outputs of
            all records before it are there, and are not sent again.
    """

    def __init__(
        self,
        there: Destination,
        *,
        interval: float,
        post: Post,
        on_room: Callable[[], None],
        failed: Callable[[str], None],
    ) -> None:
        self.there = there
        self.position = 0
        self._kafka = client()
        self._once = there.id is not None
        self._interval = interval if self._once else _INTERVAL
        self._post = post
        self._on_room = on_room
        self._failed = failed
        self._kept: deque[tuple[int, int]] = deque()  # outputs of each write, and their cost
        self._cost = 0
        self._given: queue.SimpleQueue[Sequence[Produced]] = queue.SimpleQueue()
        self._closed = threading.Event()
        self._hurry = threading.Event()  # somebody waits for what is open
        self._producer = OutputProducer(
            there, interval=interval, going_on=lambda: not self._closed.is_set()
        )
        self._thread = threading.Thread(
            target=self._run, name=f"wallaroo-{there.name}", daemon=True
        )

    def prepare(self, end: int, *, needs_position: bool) -> None:
        """Shut out every earlier run, and learn what it has committed; it blocks (kafka-15).

        Args:
            end: number of the input log's next record.
            needs_position: outputs that will be made again may have been delivered, so the brokers
                must say how far (kafka-16).

        Raises:
            BrokerError: the brokers do not answer, have forgotten the position, or have one of
                a later run (kafka-16).
        """
        there = self.there
        if there.id is None:
            return
        committed = self._producer.take_over(Place(there.id, _PLACE))
        if committed is not None:
            self.position = committed.number
            if self.position > end:
                raise older(there, self.position - 1, end)
        elif needs_position:
            said = "the checkpoint says that outputs were delivered, or may have been"
            raise forgotten(there, said)
        else:  # from now on, where there is none it was forgotten
            self._producer.deliver_once([], Committed(0))

    @property
    def committed(self) -> int | None:
        """The committed position; `None`: there are no transactions."""
        return self.position if self._once else None

    @property
    @override
    def connected(self) -> bool:
        return self._thread.is_alive()

    @override
    def start(self) -> None:
        self.connects = 1
        self._thread.start()

    @override
    def write(self, outputs: Sequence[Produced]) -> None:
        position = self.position
        if outputs[0].number < position:  # an earlier run has delivered them
            rest = [output for output in outputs if output.number >= position]
            self.written += len(outputs) - len(rest)
            outputs = rest
        else:
            outputs = outputs[:]
        if outputs:
            size = size_of(outputs)
            self.pending += len(outputs)
            self.bytes_out += size
            self._kept.append((len(outputs), size + _COST * len(outputs)))
            self._cost += self._kept[-1][1]
            self.full = self._cost >= _LIMIT
            self._given.put(outputs)

    @override
    def look(self) -> None:
        pass

    @override
    async def drain(self) -> None:
        self._hurry.set()
        while self.pending and self._thread.is_alive():
            await asyncio.sleep(_LOOK)

    @override
    def close(self) -> None:
        self._closed.set()
        self._hurry.set()

    # -- in the thread ---------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            self._deliver()
        except WallarooError as error:
            self._post(self._failed, str(error))
        except self._kafka.KafkaException as error:
            self._post(self._failed, str(self._producer.wrong(error.args[0])))
        finally:
            self._producer.client.purge()

    def _deliver(self) -> None:
        """Deliver what comes within an interval together: in a transaction, if there are any.

        Each partition acknowledges on its own. A checkpoint takes the first `written` outputs for
        delivered, so outputs count when all of an interval are acknowledged.
        """
        while not self._closed.is_set():
            outputs = list(self._next(_WAIT))
            if not outputs:
                continue
            end = time.monotonic() + self._interval
            if self._once:
                self._producer.begin()
            self._producer.send(outputs)
            while (left := end - time.monotonic()) > 0:
                if self._hurry.is_set() and self._given.empty():
                    break
                more = self._next(min(left, _WAIT))
                self._producer.send(more)
                outputs += more
            position = outputs[-1].number + 1
            if self._once:
                if self._producer.commit(outputs, Committed(position)):
                    self._post(self._committed, len(outputs), position)
            elif self._producer.flush():
                self._post(self._delivered, len(outputs))

    def _next(self, seconds: float) -> Sequence[Produced]:
        """Return outputs that wait, or none after that time.

        All outputs of one record were written together, so they are in one transaction.
        """
        try:
            return self._given.get(timeout=seconds)
        except queue.Empty:
            return ()

    # -- in the loop's thread --------------------------------------------------------------------

    def _committed(self, count: int, position: int) -> None:
        self.position = position
        self._delivered(count)

    def _delivered(self, count: int) -> None:
        self.written += count
        self.pending -= count
        while count:  # what was written together is delivered together
            outputs, cost = self._kept.popleft()
            count -= outputs
            self._cost -= cost
        if self.full and self._cost <= _LIMIT // 2:
            self.full = False
            self._on_room()
