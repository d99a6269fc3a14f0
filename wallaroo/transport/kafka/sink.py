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
from dataclasses import dataclass

from wallaroo.errors import WallarooError
from wallaroo.kafka_records import Produced, size_of
from wallaroo.overriding import override
from wallaroo.topology import SinkId
from wallaroo.transport.interfaces import OutputSink
from wallaroo.transport.kafka.cluster import Cluster, client
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


@dataclass(frozen=True)
class Transactions:
    """How outputs are delivered exactly once.

    Args:
        id: of the application, its checkpoint and the sink: the transactional id, and the group
            under which positions are committed.
        interval: seconds that a transaction stays open.
        sent: outputs that would be made again may have been delivered, so a position must be there.
        end: number of the input log's next record.
        accept_repeats: go on if the brokers have forgotten the position (kafka-16).
    """

    id: str
    interval: float
    sent: bool
    end: int
    accept_repeats: bool = False


class KafkaSink(OutputSink):
    """Delivers outputs to a topic, from a thread. Call its methods in the loop's thread.

    Args:
        sink: the sink's id, for messages.
        cluster: the brokers.
        topic: the topic's name.
        partitions: how many partitions outputs go to that name none (kafka-13).
        transactions: deliver exactly once; `None`: at least once.
        post: calls a function in the loop's thread.
        on_room: called when it was full and has room again.
        failed: called with an error's text if outputs cannot be delivered any more.

    Attributes:
        partitions: as given.
        position: with transactions, the number that the brokers have as committed: the outputs of
            all records before it are there, and are not sent again.
    """

    def __init__(
        self,
        sink: SinkId,
        cluster: Cluster,
        topic: str,
        partitions: int,
        transactions: Transactions | None,
        *,
        post: Post,
        on_room: Callable[[], None],
        failed: Callable[[str], None],
    ) -> None:
        self.partitions = partitions
        self.position = 0
        self._name = f"sink {sink[0]}/{sink[1]}"
        self._kafka = client()
        self._brokers = cluster.brokers
        self._transactions = transactions
        self._post = post
        self._on_room = on_room
        self._failed = failed
        self._kept: deque[tuple[int, int]] = deque()  # outputs of each write, and their cost
        self._cost = 0
        self._given: queue.SimpleQueue[Sequence[Produced]] = queue.SimpleQueue()
        self._closed = threading.Event()
        self._hurry = threading.Event()  # somebody waits for what is open
        self._producer = OutputProducer(
            self._name,
            cluster,
            topic,
            partitions,
            *(() if transactions is None else (transactions.id,)),
            interval=0.0 if transactions is None else transactions.interval,
            going_on=lambda: not self._closed.is_set(),
        )
        self._thread = threading.Thread(
            target=self._run, name=f"wallaroo-{self._name}", daemon=True
        )

    def prepare(self) -> None:
        """Shut out every earlier run, and learn what it has committed; it blocks (kafka-15).

        Raises:
            BrokerError: the brokers do not answer, have forgotten the position, or have one of
                a later run (kafka-16).
        """
        if self._transactions is None:
            return
        group = self._transactions.id
        committed = self._producer.take_over(Place(group, _PLACE))
        if committed is not None:
            self.position = committed.number
            if self.position > self._transactions.end:
                raise older(self._name, self._brokers, self.position - 1, self._transactions.end)
        elif self._transactions.sent and not self._transactions.accept_repeats:
            said = "the checkpoint says that outputs were delivered, or may have been"
            raise forgotten(self._name, self._brokers, group, said)
        else:  # from now on, where there is none it was forgotten
            self._producer.deliver_once([], Committed(0))

    @property
    def committed(self) -> int | None:
        """The committed position; `None`: there are no transactions."""
        return None if self._transactions is None else self.position

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
        transactions = self._transactions
        interval = _INTERVAL if transactions is None else transactions.interval
        while not self._closed.is_set():
            outputs = list(self._next(_WAIT))
            if not outputs:
                continue
            end = time.monotonic() + interval
            if transactions is not None:
                self._producer.begin()
            self._producer.send(outputs)
            while (left := end - time.monotonic()) > 0:
                if self._hurry.is_set() and self._given.empty():
                    break
                more = self._next(min(left, _WAIT))
                self._producer.send(more)
                outputs += more
            position = outputs[-1].number + 1
            if transactions is None:
                if self._producer.flush():
                    self._post(self._delivered, len(outputs))
            elif self._producer.commit(outputs, Committed(position)):
                self._post(self._committed, len(outputs), position)

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
