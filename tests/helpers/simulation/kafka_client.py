"""The client of Kafka as the engine's process has it: the module `confluent_kafka`, simulated.

What a producer is given leaves a little later, by itself. A request that is on its way when the
process dies may be lost, be there, or come late, as from a process that was only thought dead: then
the brokers have to shut it out.
"""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import ModuleType
from typing import Any

import confluent_kafka
from confluent_kafka import KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin._listoffsets import OffsetSpec

from simulation.brokers import Brokers, Position, ShutOut
from simulation.machine import Machine
from simulation.threads import Threads
from simulation.world import Crash

# Seconds that a request of a dead process is on its way, if it comes late: by then the next process
# may have sent the same outputs.
_LATE = 0.2, 0.4
_AT_ONCE = 4  # records that come or leave together, at most
_ANSWER_LOST = 0.02  # of the requests
_TO_ABORT = 0.05  # of the positions: brokers want the transaction aborted
_QUEUE = 6  # records that a producer holds until it takes no more


def client(machine: Machine, brokers: Brokers, threads: Threads) -> dict[str, ModuleType]:
    """Return the modules that stand in for `confluent_kafka`, by name."""
    kafka, admin = ModuleType("confluent_kafka"), ModuleType("confluent_kafka.admin")
    parts = machine, brokers, threads
    for name in ("KafkaError", "KafkaException", "TopicPartition", "TopicCollection"):
        setattr(kafka, name, getattr(confluent_kafka, name))
    made = {
        "admin": admin,
        "OFFSET_END": confluent_kafka.OFFSET_END,
        "IsolationLevel": confluent_kafka.IsolationLevel,
        "Message": Message,
        "Consumer": partial(Consumer, *parts),
        "Producer": partial(Producer, *parts),
    }
    vars(kafka).update(made)
    vars(admin).update(AdminClient=partial(AdminClient, *parts), OffsetSpec=OffsetSpec)
    return {kafka.__name__: kafka, admin.__name__: admin}


class Message:
    """A record, or the news that a partition has no more for now."""

    def __init__(self, partition: int, offset: int, record: Sequence[Any] | None) -> None:
        self._partition, self._offset, self._record = partition, offset, record

    def error(self) -> KafkaError | None:
        return KafkaError(KafkaError._PARTITION_EOF) if self._record is None else None

    def partition(self) -> int:
        return self._partition

    def offset(self) -> int:
        return self._offset

    def value(self) -> Any:
        return self._record and self._record[0]

    def key(self) -> Any:
        return self._record and self._record[1]

    def headers(self) -> Any:
        return (self._record and self._record[2]) or None

    def timestamp(self) -> tuple[int, int]:
        milliseconds = self._record and self._record[3]
        if milliseconds is None:
            return confluent_kafka.TIMESTAMP_NOT_AVAILABLE, 0
        return confluent_kafka.TIMESTAMP_CREATE_TIME, milliseconds

    def __len__(self) -> int:
        return len(self.value() or b"")


class _Client:
    def __init__(
        self, machine: Machine, brokers: Brokers, threads: Threads, options: Mapping[str, Any]
    ) -> None:
        self._world = machine.world
        self._chance = machine.chance
        self._brokers = brokers
        self._threads = threads
        self._options = options

    def _reach(self, seconds: float, ready: Callable[[], bool] = lambda: True) -> None:
        """Wait for brokers that are there, and for something of theirs."""
        there = self._threads.wait(lambda: not self._brokers.away and ready(), seconds)
        if not there:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT, "away", False, True))


class _Answer:
    """A future that has its result."""

    def __init__(self, **result: Any) -> None:
        vars(self).update(result)

    def result(self) -> _Answer:
        return self

    def done(self) -> bool:
        return True


class AdminClient(_Client):
    """Asks what there is."""

    def describe_topics(self, topics: Any, request_timeout: float) -> dict[str, _Answer]:
        self._world.call("describe topics")
        self._reach(request_timeout)
        return {
            name: _Answer(
                topic_id=f"id of {name}",
                partitions=[_Answer(id=number) for number in range(self._brokers.topics[name])],
            )
            for name in topics.topic_names
        }

    def list_offsets(
        self, asked: Mapping[TopicPartition, Any], isolation_level: Any, request_timeout: float
    ) -> dict[TopicPartition, _Answer]:
        self._world.call("list offsets")
        self._reach(request_timeout)
        only = isolation_level == confluent_kafka.IsolationLevel.READ_COMMITTED
        earliest = OffsetSpec.earliest()._value
        return {
            at: _Answer(
                offset=0
                if spec._value == earliest
                else self._brokers.end(at.topic, at.partition, committed_only=only)
            )
            for at, spec in asked.items()
        }


class Consumer(_Client):
    """Reads committed records of the partitions that it is assigned."""

    def __init__(self, *parts: Any) -> None:
        super().__init__(*parts)
        self._at: dict[tuple[str, int], int] = {}
        self._ended: dict[tuple[str, int], int] = {}  # where it has said that there is no more
        self._paused: set[tuple[str, int]] = set()

    def incremental_assign(self, places: Sequence[TopicPartition]) -> None:
        self._at |= {(place.topic, place.partition): place.offset for place in places}

    def unassign(self) -> None:
        self._at.clear()
        self._ended.clear()
        self._paused.clear()

    def offsets_for_times(
        self, places: Sequence[TopicPartition], timeout: float
    ) -> list[TopicPartition]:
        """Return the ends of partitions: nobody asks for a time here."""
        self._world.call("ask for ends")
        self._reach(timeout)
        found = []
        for one in places:
            end = self._brokers.end(one.topic, one.partition, committed_only=True)
            self._brokers.taken[one.topic, one.partition] = end
            found.append(TopicPartition(one.topic, one.partition, end))
        return found

    def pause(self, places: Sequence[TopicPartition]) -> None:
        self._paused |= {(place.topic, place.partition) for place in places}

    def resume(self, places: Sequence[TopicPartition]) -> None:
        self._paused -= {(place.topic, place.partition) for place in places}

    def consume(self, most: int, timeout: float) -> list[Message]:
        self._world.call("consume")
        came: list[Message] = []

        def there() -> bool:
            came.extend(self._take(most))
            return bool(came)

        with contextlib.suppress(KafkaException):
            self._reach(timeout, there)
        return came

    def committed(self, places: Sequence[TopicPartition], timeout: float) -> list[TopicPartition]:
        self._world.call("ask for positions")
        (place,) = places
        which = self._options["group.id"], place.topic, place.partition
        self._reach(timeout, lambda: self._brokers.position(*which) is not None)
        position = self._brokers.position(*which)
        assert position is not None
        offset, text = position
        return [TopicPartition(place.topic, place.partition, offset, metadata=text)]

    def consumer_group_metadata(self) -> Any:
        return self._options["group.id"]

    def close(self) -> None:
        self._at.clear()

    def _take(self, most: int) -> list[Message]:
        for place in self._chance.sample(sorted(self._at), len(self._at)):
            if place in self._paused:
                continue
            came: list[Message] = []
            for _ in range(min(most, self._chance.randint(1, _AT_ONCE))):
                there = self._brokers.next(*place, self._at[place])
                if there is None:
                    break
                came.append(Message(place[1], *there))
                self._at[place] = there[0] + 1
            end = self._brokers.end(*place, committed_only=True)
            if not came and self._ended.get(place) != end:
                self._ended[place] = self._at[place] = max(end, self._at[place])
                came.append(Message(place[1], end, None))
            self._brokers.taken[place] = self._at[place]
            if came:
                return came
        return []


class Producer(_Client):
    """Writes, in transactions if it has an id for them."""

    def __init__(self, *parts: Any) -> None:
        super().__init__(*parts)
        self._id: str = self._options.get("transactional.id", "")
        self._epoch = -1
        self._shut_out = False
        self._count = 0  # of transactions
        self._waiting: deque[tuple[tuple[str, int], tuple[Any, ...]]] = deque()

    def __len__(self) -> int:
        return len(self._waiting)

    def init_transactions(self, timeout: float) -> None:
        self._world.call("begin a producer")
        self._reach(timeout)
        self._epoch = self._brokers.begin(self._id)

    def begin_transaction(self) -> None:
        self._refuse_shut_out()
        self._count += 1
        longest = self._options["transaction.timeout.ms"] / 1000
        self._world.at(longest, partial(self._give_up, self._count))

    def produce(
        self,
        topic: str,
        value: Any,
        key: Any,
        partition: int,
        _delivered: object,
        _partitioner: object,
        timestamp: int,
        headers: Sequence[tuple[str, bytes | None]] = (),
    ) -> None:
        if self._shut_out:
            raise KafkaException(KafkaError(KafkaError._FATAL, "shut out", True))
        if len(self._waiting) == _QUEUE:
            raise BufferError
        self._waiting.append(((topic, partition), (value, key, tuple(headers), timestamp)))
        if len(self._waiting) == 1:
            self._soon()

    def poll(self, seconds: float) -> None:
        """Wait: nobody asks what was delivered."""
        self._threads.wait(lambda: False, seconds)

    def purge(self) -> None:
        self._waiting.clear()

    def flush(self, timeout: float) -> int:
        self._world.call("flush")
        self._refuse_shut_out()
        self._threads.wait(lambda: not self._waiting, timeout)
        return len(self._waiting)

    def send_offsets_to_transaction(
        self, places: Sequence[TopicPartition], group: Any, timeout: float
    ) -> None:
        (place,) = places
        owner, which = (self._id, self._epoch), (group, place.topic, place.partition)
        position = Position(place.offset, place.metadata or "")
        add = partial(self._brokers.add_position, owner, which, position)

        def go_on() -> None:
            add()
            self._brokers.finish(owner, committed=True)

        self._request("send a position", timeout, add, go_on)

    def commit_transaction(self, timeout: float) -> None:
        self._finish(timeout, committed=True)

    def abort_transaction(self, timeout: float) -> None:
        self._waiting.clear()
        self._finish(timeout, committed=False)

    def _finish(self, timeout: float, *, committed: bool) -> None:
        owner = self._id, self._epoch
        finish = partial(self._brokers.finish, owner, committed=committed)
        self._request(f"finish {committed}", timeout, finish, finish)

    def _request(
        self, what: str, timeout: float, do: Callable[[], None], late: Callable[[], None]
    ) -> None:
        """Have the brokers do something.

        Args:
            what: names the step.
            timeout: in seconds.
            do: does it.
            late: what the process still does that is thought dead and is not.
        """
        self._refuse_shut_out()
        if self._world.step(what):
            fate = self._chance.choice(("lost", "there", "late", "late"))
            if fate == "late":
                self._world.at(self._chance.uniform(*_LATE), _unless_shut_out(late))
            elif fate == "there" and not self._brokers.away:
                _unless_shut_out(do)()
            raise Crash
        self._reach(timeout)
        if what == "send a position" and self._chance.random() < _TO_ABORT:
            raise KafkaException(KafkaError(KafkaError._STATE, "abort it", False, False, True))
        try:
            do()
        except ShutOut:
            self._shut_out = True
        self._refuse_shut_out()
        if self._chance.random() < _ANSWER_LOST:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT, "no answer", False, True))

    def _refuse_shut_out(self) -> None:
        if self._shut_out:
            raise KafkaException(KafkaError(KafkaError._FENCED, "shut out", True))

    def _give_up(self, count: int) -> None:
        """Have the brokers abort a transaction that is still open."""
        if self._count == count:
            self._brokers.give_up((self._id, self._epoch))

    def _soon(self) -> None:
        life = self._world.life
        self._world.at(self._chance.uniform(0, 0.005), lambda: self._send(life))

    def _send(self, life: int) -> None:
        """Have some of what waits reach the brokers, also late, from a process that is dead."""
        dead = self._world.dead or self._world.life != life
        if dead and (self._chance.random() < 0.5 or not self._id):
            self._waiting.clear()  # without an id, brokers could not shut out what comes late
        for _ in range(0 if self._brokers.away else self._chance.randint(1, _AT_ONCE)):
            if self._waiting and not self._shut_out:
                place, record = self._waiting.popleft()
                if not self._id:
                    self._brokers.append_committed(place, *record)
                    continue
                try:
                    self._brokers.append((self._id, self._epoch), place, *record)
                except ShutOut:
                    self._shut_out = True
                    self._waiting.clear()
        if self._waiting:
            self._soon()


def _unless_shut_out(do: Callable[[], None]) -> Callable[[], None]:
    def happen() -> None:
        with contextlib.suppress(ShutOut):
            do()

    return happen
