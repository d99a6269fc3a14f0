"""Runs a plan from topics to topics: readers of committed records get each output once."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from random import Random
from typing import Literal
from unittest import mock

import wallaroo
from simulation import application, plans
from simulation.brokers import Brokers
from simulation.checkpoints import CheckpointRun
from simulation.checks import check_all, failed
from simulation.kafka_client import client
from simulation.plans import Kind, Life, Plan
from simulation.world import Broken
from wallaroo.engine import Summary
from wallaroo.transport.kafka import cluster, sink, source

PARTITIONS = 2
SOURCES = ("first", "windows")
SINKS = ("first-0", "first-1", "windows-0")
_RECORDED = 1 / 3  # of the plans: the log has whole records, not only where they stand
_RECORDING = Path("/sim/recording")
_LONGEST = 0.5  # seconds that a transaction may be open: brokers are away for longer
_IN_A_REQUEST = 0.4  # of the lives
_FULL = 0.1
_INTERVALS = (0.001, 0.1)  # seconds that a transaction stays open, usually
_LOOK = 0.05  # seconds between looks for new partitions
_AGAIN = 0.05  # seconds until a sender tries again to reach brokers that are away


@dataclass(frozen=True)
class Sent:
    """Records of one sender, in a partition.

    Args:
        life: the process in whose life they are sent.
        after: seconds after that began.
        topic: its number.
        partition: its number.
        frames: the records.
        ends: how their transaction ends; ``"none"``: there is none.
        open_for: seconds until it does.
    """

    life: int
    after: float
    topic: int
    partition: int
    frames: tuple[Kind, ...]
    ends: Literal["none", "commit", "abort"] = "none"
    open_for: float = 0.0


@dataclass(frozen=True)
class Away:
    """Brokers that nobody reaches, so many seconds after a life began, for so long."""

    life: int
    after: float
    seconds: float


@dataclass(frozen=True)
class KafkaPlan(Plan):
    """A run."""

    sent: tuple[Sent, ...] = ()
    away: tuple[Away, ...] = ()
    grows: tuple[int, float] | None = None
    """The life, and seconds after its beginning, in which topics that are read get a partition."""
    latest: bool = False
    """What stands in the topics before the first life is not read (kafka-4)."""


def drawn(seed: int) -> KafkaPlan:
    """Return the plan of a seed."""
    chance = Random(repr((seed, "plan")))
    lives = [_life(chance) for _ in range(chance.randint(3, 9))]
    grows = (
        (chance.randint(1, len(lives)), chance.uniform(0, 0.1)) if chance.random() < 0.5 else None
    )
    if latest := chance.random() < 0.3:
        lives[0] = Life()  # it finds out where the topics end
    numbers = range(latest, len(lives) + 1)
    sent = [_sent(chance, life, grows) for life in numbers for _ in range(chance.randint(0, 3))]
    away = [
        Away(life, chance.uniform(0, 0.2), chance.uniform(0, 1.0))
        for life in numbers
        if chance.random() < 0.1
    ]
    return KafkaPlan(seed, tuple(lives), (), (), tuple(sent), tuple(away), grows, latest)


def _life(chance: Random) -> Life:
    """Return a life; some die in a request, and nobody knows how far it came."""
    life = plans.drawn_life(chance)
    if chance.random() < _FULL:
        full = chance.uniform(0, 0.05), 0, chance.uniform(0.05, 0.5)
        return replace(life, crash_at=None, full=full, breaks_when_full=True)
    if life.stop_after is None and chance.random() < _IN_A_REQUEST:
        asked = chance.choice(("send a position", "finish True"))
        power = chance.random() < 0.7
        return replace(life, crash_at=chance.randint(1, 4), crash_in=asked, power=power)
    return life


def _sent(chance: Random, life: int, grows: tuple[int, float] | None) -> Sent:
    partitions = PARTITIONS + (grows is not None and life >= grows[0])
    kinds: tuple[Kind, ...] = ("word",) * 10 + ("slow", "undecodable", "raising")
    return Sent(
        life,
        chance.choice((0.0, 0.01, 0.05)),
        chance.randrange(len(SOURCES)),
        chance.randrange(partitions),
        tuple([chance.choice(kinds) for _ in range(chance.choice((1, 2, 3, 5, 8)))]),
        chance.choice(("none", "commit", "abort")),
        chance.choice((0.0, 0.0, 0.01, 0.5)),
    )


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
        self._kafka = plan
        self._brokers = Brokers(dict.fromkeys([*SOURCES, *SINKS], PARTITIONS))
        self._partitions = {
            (topic, number): Partition() for topic in SOURCES for number in range(PARTITIONS + 1)
        }
        for place in self._partitions if plan.latest else ():
            if place[1] < PARTITIONS:
                self._brokers.append_committed(place, b"old undecodable", None, (), 0)
        self._sending = 0
        self.fixed["transaction"] = self.world.chance("transaction").choice(_INTERVALS)
        if self.world.chance("record").random() < _RECORDED:
            self.fixed["record"] = _RECORDING

    @contextlib.contextmanager
    def around(self) -> Iterator[None]:
        """Let brokers, their client, and the threads of sources and sinks be simulated."""
        modules = client(self.machine, self._brokers, self.threads)
        with super().around(), contextlib.ExitStack() as stack:
            stack.enter_context(mock.patch.dict(sys.modules, modules))
            stack.enter_context(mock.patch.object(cluster, "_TRANSACTION", _LONGEST))
            stack.enter_context(mock.patch.object(source, "_NEW_PARTITIONS", _LOOK))
            for module, name in ((source, "threading"), (sink, "threading"), (sink, "queue")):
                stands_in = self.threads.stand_ins
                stack.enter_context(mock.patch.object(module, name, stands_in))
            yield

    def live(self, life: Life) -> Summary | None:
        """Run a process, while others send and brokers may be away."""
        following = self.world.life + 1
        if self._kafka.grows is not None and self._kafka.grows[0] == following:
            self.world.at(self._kafka.grows[1], self._grow)
        for number, sent in enumerate(self._kafka.sent):
            if sent.life == following:
                self._sending += 1
                self.world.at(sent.after, partial(self._send, number, sent))
        for away in self._kafka.away:
            if away.life == following:
                self.world.at(away.after, partial(self._be_away, True))
                self.world.at(away.after + away.seconds, partial(self._be_away, False))
        return super().live(life)

    def waiting(self) -> Sequence[object]:
        """Return what is being sent, and committed records whose effect has not come out."""
        if self._sending:
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
            for value, *_ in self._brokers.records(topic, number)
        ]

    def _grow(self) -> None:
        for name in SOURCES:
            self._brokers.grow(name)

    def _be_away(self, away: bool) -> None:
        self._brokers.away = away

    def _send(self, number: int, sent: Sent) -> None:
        """Put a sender's records into their partition, and end their transaction later."""
        if self._brokers.away or sent.partition >= self._brokers.topics[SOURCES[sent.topic]]:
            self.world.at(_AGAIN, partial(self._send, number, sent))
            return
        chance = self.world.chance("payloads", number)
        place = SOURCES[sent.topic], sent.partition
        owner = (name := f"sender {number}"), self._brokers.begin(name)
        for kind in sent.frames:
            there = self._partitions[place].payloads
            index = len(there) if sent.ends != "abort" else "aborted"
            connection = sent.topic * (PARTITIONS + 1) + sent.partition
            text = f"{connection}.{index} {chance.choice('abcdefgh')} {place[0]} {kind}"
            if sent.ends != "abort":
                there.append(text.encode())
            if sent.ends == "none":
                self._brokers.append_committed(place, text.encode(), None, (), 0)
            else:
                self._brokers.append(owner, place, text.encode(), None, (), 0)
        self.world.at(sent.open_for, partial(self._finish, owner, sent.ends == "commit"))

    def _finish(self, owner: tuple[str, int], committed: bool) -> None:
        self._brokers.finish(owner, committed=committed)
        self._sending -= 1
