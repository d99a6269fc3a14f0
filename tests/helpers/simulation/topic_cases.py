"""Serves applications of generated cases from topics to topics, read for ever or to their ends.

What is read is compared with what brokers have, and all that comes of it with a bounded run: of
what was recorded, or of the topics again, as the log says which offsets were read (kafka-1).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Any
from unittest import mock

from wallaroo_conformance.cases.case import ConformanceCase
from wallaroo_conformance.cases.records import topic_of, topic_record
from wallaroo_conformance.definition.judging import murmur2

from simulation import plans, topics
from simulation.cases import CaseRun, changed, with_topics
from simulation.plans import Life
from simulation.topics import KafkaPlan, Place, Sent, Topics
from simulation.world import Broken
from wallaroo.engine import Summary
from wallaroo.kafka import KafkaSinkConfig, KafkaSourceConfig
from wallaroo.kafka_records import KafkaRecord
from wallaroo.overriding import override
from wallaroo.records import Assigned, Consumed, End, Record, Unused
from wallaroo.times import MILLISECOND
from wallaroo.topology import Application, SinkId
from wallaroo.trace import DeadLetter
from wallaroo.transport.kafka import reader
from wallaroo.transport.log_format import LoggedRun, RecordKind

_IN_TURN = 3  # offsets of a partition before the next one has its turn
_INTERVALS = (0.001, 0.1)  # seconds that a transaction stays open, usually
_BEFORE = (0, 0, 1, 4, 9)  # records that are in a partition before the first life
_MOST_PARTITIONS = 3
_STILL = 4  # looks at a read to the end in which nothing moves, until it has one, or never will
_TIMESTAMP_END = 1 << 63  # milliseconds that no record's timestamp has


def drawn(seed: int) -> KafkaPlan:
    """Return the plan of a seed: topics, and sockets beside them."""
    plan = topics.drawn(seed)
    other = plans.drawn(seed, durable=True, sources=2, sinks=2)
    sendings = tuple([one for one in other.sendings if one.life <= len(plan.lives)])
    return replace(plan, sendings=sendings, troubles=other.troubles)


class TopicCaseRun(CaseRun):
    """A run of a plan, with an application of a case that reads topics."""

    def __init__(self, plan: KafkaPlan) -> None:
        super().__init__(plan)
        chance = self.world.chance("topics")
        sources, sinks = self.application.sources, self.application.sinks
        self._reads = {
            name: source.config
            for name, source in sources.items()
            if isinstance(source.config, KafkaSourceConfig)
        }
        self._sinks = {
            sink: node.config
            for sink, node in sinks.items()
            if isinstance(node.config, KafkaSinkConfig)
        }
        written = {one.topic: one.partitions or _MOST_PARTITIONS for one in self._sinks.values()}
        read = {topic_of(one.id): max(2, one.topic) for one in self.case.sources if one.topic}
        self._topics = Topics(
            self.machine, self.threads, plan, {**written, **read}, [*read], self._sent
        )
        self._brokers = self._topics.brokers
        self._taken: dict[Place, int] = {}
        self._still = 0  # looks at it since something moved
        self._before: dict[Place, int] = {}  # how many records are there before the first life
        for config in self._reads.values():
            self._begin_topic(config, chance)
        self.fixed["transaction"] = chance.choice(_INTERVALS)

    def _begin_topic(self, config: KafkaSourceConfig[Any], chance: Random) -> None:
        """Put records into a topic before the first life, of which not all may be read."""
        start: list[tuple[int, int]] = []
        for place in self._places(config):
            records = self._drawn(chance, place, chance.choice(_BEFORE))
            for record in records:
                self._brokers.append_committed(place, *record)
            self._before[place] = len(records)
            start.append((place[1], chance.randint(0, len(records))))
        begins = chance.choice(("earliest", "latest", tuple(start)))
        object.__setattr__(config, "start", begins)  # it is frozen

    @override
    def cases(self, chance: Random) -> Sequence[ConformanceCase]:
        return with_topics()

    @override
    def changed(self, config: Any) -> dict[str, Any]:
        if isinstance(config, KafkaSinkConfig):
            again = self.world.chance("delivery", config.topic).random() < 1 / 3
            return {"delivery": "at-least-once" if again else "exactly-once"}
        if not isinstance(config, KafkaSourceConfig):
            return super().changed(config)
        bounded = self.world.chance("bounded", self.plan.seed).random() < 1 / 3
        some = self.world.chance("some", config.topic).choice((None, None, None, (0,), (1,)))
        return {"until": "end" if bounded else None, "partitions": some}

    @override
    def judged(self) -> Application:
        """Return the application; a bounded run asks nobody how many partitions there are."""

        def known(config: Any) -> dict[str, Any]:
            asks = isinstance(config, KafkaSinkConfig) and config.partitions is None
            return {"partitions": _MOST_PARTITIONS} if asks else {}

        return changed(self.application, known)

    @contextlib.contextmanager
    @override
    def around(self) -> Iterator[None]:
        with contextlib.ExitStack() as stack:
            stack.enter_context(super().around())
            stack.enter_context(self._topics.reached())
            stack.enter_context(mock.patch.object(reader, "_IN_TURN", _IN_TURN))
            yield

    @override
    def live(self, life: Life) -> Summary | None:
        self._topics.begin()
        return super().live(life)

    @override
    def waiting(self) -> Sequence[object]:
        """Return what is not at its end; of reads to their ends whatever moves."""
        before, self._taken = self._taken, dict(self._brokers.taken)
        self._still = self._still + 1 if self._taken == before else 0
        left: list[object] = [*super().waiting()]
        left += ["what is being sent"] * (self._topics.sending > 0)
        for config in self._reads.values():
            for place in self._places(config):
                if config.until == "end":
                    left += [place] * (self._brokers.away or self._still < _STILL)
                elif self._taken.get(place, 0) < self._brokers.end(*place, committed_only=True):
                    left.append(place)
        return left

    def _places(self, config: KafkaSourceConfig[Any]) -> list[Place]:
        topic, chosen = config.topic, config.partitions
        return [(topic, number) for number in chosen or range(self._brokers.topics[topic])]

    def _sent(self, number: int, sent: Sent, place: Place) -> list[tuple[Any, ...]]:
        """Return what a sender puts into a partition."""
        return self._drawn(self.world.chance("payloads", number), place, len(sent.frames))

    def _drawn(self, chance: Random, place: Place, count: int) -> list[tuple[Any, ...]]:
        """Return so many records of the case's: of each value, key, headers and timestamp."""
        there = [one for one in self.case.inputs if one.what in ("frame", "tombstone")]
        made: list[tuple[Any, ...]] = []
        for entry in chance.choices(there, k=count) if there else ():
            one = topic_record(entry, *place)
            time = one.timestamp if (one.timestamp or 0) < _TIMESTAMP_END else None
            value = one.value and self.ending(chance, one.value)
            made.append((value, one.key, one.headers, time))
        return made

    # -- what there must be ------------------------------------------------------------------------

    @override
    def check_outputs(self, wanted: Mapping[SinkId, Sequence[Any]]) -> None:
        super().check_outputs(wanted)
        for sink, config in self._sinks.items():
            made: dict[int, list[tuple[Any, ...]]] = {}
            partitions = config.partitions or _MOST_PARTITIONS
            for value, key, chosen, headers, timestamp, number in wanted[sink]:
                hashed = number if key is None else murmur2(key) & 0x7FFFFFFF
                partition = hashed % partitions if chosen is None else chosen
                made.setdefault(partition, []).append((value, key, headers, timestamp))
            for partition in {*made, *range(partitions)}:
                found = self._brokers.records(config.topic, partition)
                if config.delivery == "at-least-once":
                    found = _without_repeats(found, made.get(partition, []))
                if found != made.get(partition, []):
                    raise Broken(
                        f"kafka-15: partition {partition} of {config.topic} has {found}, "
                        f"not {made.get(partition, [])}"
                    )

    @override
    def check_sources(self, log: Sequence[Record]) -> None:
        super().check_sources(log)
        for name, config in self._reads.items():
            own = [one for one in log if getattr(one, "source", "") == name]
            read = [one.record for one in own if isinstance(one, Consumed)]
            begins = self._begins(config, own)
            there = {
                place: [
                    record
                    for record in self._there(*place)
                    if record.offset >= begins.get(place[1], 0)
                ]
                for place in self._places(config)
            }
            ends = [one.partition for one in own if isinstance(one, End)]
            if len({*ends}) < len(ends):
                raise Broken(f"kafka-10: {name} and its partitions ended as {ends}")
            if config.until == "end":
                wanted = self._in_turn(there, begins, own)
                # Where all partitions have ended, a power failure may take the source's own end.
                known = [len(one.partitions) for one in own if isinstance(one, Assigned)]
                if ends[-1:] != [None] and len(ends) < max(known, default=1):
                    raise Broken(f"kafka-10: {name} was not read to its end")
                if self.application.time_stands_still and len({one.at for one in log}) > 1:
                    raise Broken("kafka-10: what was read to its end came at more than one time")
            else:
                wanted = [record for records in there.values() for record in records]
                read.sort(key=lambda one: one.partition)  # of which each has its own order
            if read != wanted:
                raise Broken(f"kafka-1: {name} has read {read}, not {wanted}")

    def _begins(self, config: KafkaSourceConfig[Any], log: Sequence[Record]) -> Mapping[int, int]:
        """Return where the read of each partition must begin, if not at its first offset (kafka-4).

        What "latest" means the log says, as nobody else knows when the engine has asked.
        """
        if config.start != "latest":
            return {} if isinstance(config.start, str) else dict(config.start)
        first, *_ = [one for one in log if isinstance(one, Assigned)]
        begins = {number: offset for number, offset, _ in first.partitions}
        for (topic, number), count in self._before.items():
            if topic == config.topic and begins[number] < count:
                raise Broken(f"kafka-4: {topic} was read from {begins[number]} on, not {count}")
        return begins

    def _in_turn(
        self,
        there: Mapping[Place, Sequence[KafkaRecord]],
        begins: Mapping[int, int],
        log: Sequence[Record],
    ) -> list[KafkaRecord]:
        """Return what is read to the ends that a log says, in its order (kafka-10)."""
        ends = {
            number: end or 0
            for assigned in log
            if isinstance(assigned, Assigned)
            for number, _, end in assigned.partitions
        }
        read = [
            ((record.offset - begins.get(number, 0)) // _IN_TURN, number, record)
            for (_, number), records in there.items()
            for record in records
            if record.offset < ends.get(number, 0)
        ]
        return [one for *_, one in sorted(read, key=lambda one: (*one[:2], one[2].offset))]

    def _there(self, topic: str, partition: int) -> list[KafkaRecord]:
        """Return the committed records of a partition that is read."""
        found, at = [], 0
        while (there := self._brokers.next(topic, partition, at)) is not None:
            offset, (value, key, headers, milliseconds) = there
            timestamp = None if milliseconds is None else milliseconds * MILLISECOND
            place = topic, partition, offset
            found.append(KafkaRecord(value, key, headers, timestamp, *place))
            at = offset + 1
        return found

    @override
    def letters_of(self, letters: Sequence[DeadLetter], log: Sequence[Record]) -> list[DeadLetter]:
        return [
            replace(letter, record=(read.topic, read.partition, read.offset))
            if isinstance(record := log[letter.lineage[0]], Consumed) and (read := record.record)
            else letter
            for letter in letters
        ]

    @override
    def records_of(self, run: LoggedRun) -> list[Record]:
        if run.kind is not RecordKind.OFFSETS:
            return super().records_of(run)
        partition, first = run.place
        topic = self._reads[run.source].topic
        there = {one.offset: one for one in self._there(topic, partition)}
        return [
            Consumed(run.source, there[at], run.at)
            if at in there
            else Unused(run.source, 1, run.at)
            for at in range(first, first + len(run.payloads))
        ]


def _without_repeats(found: Sequence[Any], made: Sequence[Any]) -> Sequence[Any]:
    """Return how much of `made` was found in its order; at any place, earlier ones may come again.

    If something else was found, return all that was.
    """
    reached = 0
    for one in found:
        places = [place for place, other in enumerate(made[: reached + 1]) if other == one]
        if not places:
            return found
        reached = places[-1] + 1
    return made[:reached]
