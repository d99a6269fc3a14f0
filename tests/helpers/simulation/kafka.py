"""Runs a plan from topics to topics: readers of committed records get each output once."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import wallaroo
from simulation import application, topics
from simulation.checkpoints import CheckpointRun
from simulation.checks import check_all, failed
from simulation.plans import Life
from simulation.topics import PARTITIONS, KafkaPlan, Place, Sent, Topics
from simulation.world import Broken
from wallaroo.engine import Summary

SOURCES = ("first", "windows")
SINKS = ("first-0", "first-1", "windows-0")
_RECORDED = 1 / 3  # of the plans: the log has whole records, not only where they stand
_RECORDING = Path("/sim/recording")
_INTERVALS = (0.001, 0.1)  # seconds that a transaction stays open, usually

drawn = partial(topics.drawn, topics=len(SOURCES))


@wallaroo.encoder
def encode(message: str) -> tuple[str, str]:
    """Return a line and its key."""
    words = message.split()
    return message, words[1] if len(words) > 1 and words[1] in "abcdefgh" else words[2]


def build(start: str) -> wallaroo.Application:
    """Return the application: that of the other simulations, from topics to topics."""

    def topic(name: str) -> wallaroo.KafkaSourceConfig[str]:
        return wallaroo.KafkaSourceConfig(name, "brokers:9092", application.decode, start=start)

    first, second, third = [
        wallaroo.KafkaSinkConfig(name, "brokers:9092", encode) for name in SINKS
    ]
    builder = wallaroo.ApplicationBuilder("simulated")
    builder.new_pipeline("first", topic("first"))
    builder.to_state_partition(application.count, application.Count, "counts", application.key_of)
    builder.to_stateful(application.number, application.Number, "numbers")
    builder.to_sinks([first, second])
    builder.new_pipeline("windows", topic("windows"))
    ranges, *_ = application.WINDOWS  # they fire in order of time, which `check` looks at
    builder.to_window(ranges.over(application.Together), application.key_of, "together")
    return builder.to_sink(third).build()


class Partition:
    """What senders have put into a partition, and have committed or will.

    Attributes:
        payloads: of all its records.
    """

    def __init__(self) -> None:
        self.payloads: list[bytes] = []

    @property
    def told(self) -> int:
        """How many of them must not be lost."""
        return len(self.payloads)


_EARLIEST, _LATEST = build("earliest"), build("latest")


class KafkaRun(CheckpointRun):
    """A run of a plan."""

    def __init__(self, plan: KafkaPlan) -> None:
        self.applications = (_LATEST if plan.latest else _EARLIEST,)
        super().__init__(plan)
        partitions = dict.fromkeys([*SOURCES, *SINKS], PARTITIONS)
        parts = self.machine, self.threads, plan, partitions, SOURCES, self._records
        self._topics = Topics(*parts)
        self._partitions = {
            (topic, number): Partition() for topic in SOURCES for number in range(PARTITIONS + 1)
        }
        for place in self._partitions if plan.latest else ():
            if place[1] < PARTITIONS:
                self._topics.brokers.append_committed(place, b"old undecodable", None, (), None)
        self.fixed["transaction"] = self.world.chance("transaction").choice(_INTERVALS)
        if self.world.chance("record").random() < _RECORDED:
            self.fixed["record"] = _RECORDING

    @contextlib.contextmanager
    def around(self) -> Iterator[None]:
        """Let brokers, their client, and the threads of sources and sinks be simulated."""
        with super().around(), self._topics.reached():
            yield

    def live(self, life: Life) -> Summary | None:
        """Run a process, while others send and brokers may be away."""
        self._topics.begin()
        return super().live(life)

    def waiting(self) -> Sequence[object]:
        """Return what is being sent, and committed records whose effect has not come out."""
        if self._topics.sending:
            return ["what is being sent"]
        there = {*failed(self.letters())}
        for line in self._lines("first-0"):
            there.add(line.split()[1])
        for line in self._lines("windows-0"):
            there.update(line.split()[2:])
        sent = [
            payload.decode().split()[0]
            for one in self._partitions.values()
            for payload in one.payloads
        ]
        return [one for one in sent if one not in there]

    def check_end(self) -> None:
        """Check what readers of committed records get in the end."""
        if "old" in failed(self.letters()):
            raise Broken("kafka-4: what was there before was read")
        for number in range(PARTITIONS):
            first, second, windows = [self._lines(name, number) for name in SINKS]
            if first != second:
                raise Broken("kafka-15: the two sinks of one pipeline did not get the same")
            for lines in (first, windows):
                order = [int(line.split()[0]) for line in lines]
                if order != sorted(order):
                    raise Broken(f"kafka-14: a partition has its outputs in the order {order}")
        check_all(
            self._lines("first-0"),
            self._lines("windows-0"),
            application.windows_of_each(self.application),
            self.letters(),
            [*self._partitions.values()],
        )

    def _lines(self, topic: str, *numbers: int) -> list[str]:
        """Return the committed values of partitions of a topic; of all, if none is given."""
        return [
            value.decode()
            for number in numbers or range(PARTITIONS)
            for value, *_ in self._topics.brokers.records(topic, number)
        ]

    def _records(self, number: int, sent: Sent, place: Place) -> list[tuple[Any, ...]]:
        """Return what a sender puts into its partition."""
        chance = self.world.chance("payloads", number)
        there, records = self._partitions[place].payloads, []
        for kind in sent.frames:
            index = len(there) if sent.ends != "abort" else "aborted"
            connection = sent.topic * (PARTITIONS + 1) + sent.partition
            text = f"{connection}.{index} {chance.choice('abcdefgh')} {place[0]} {kind}"
            if sent.ends != "abort":
                there.append(text.encode())
            records.append((text.encode(), None, (), None))
        return records
