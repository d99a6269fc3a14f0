"""The topics of a run: what others send to them, and what their brokers suffer."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from random import Random
from typing import Any, Literal, TypeAlias
from unittest import mock

from simulation import plans
from simulation.brokers import Brokers
from simulation.kafka_client import client
from simulation.machine import Machine
from simulation.plans import Kind, Life, Plan
from simulation.threads import Threads
from wallaroo.transport.kafka import cluster, sink, source

_TOPICS = 3  # that an application reads at most; others stand for the first ones again
_PARTITIONS = 2  # of a topic that are written to; the number behind them stands for an added one
_LONGEST = 0.5  # seconds that a transaction may be open: brokers are away for longer
_IN_A_REQUEST = 0.4  # of the lives
_FULL = 0.1
_LOOK = 0.05  # seconds between looks for new partitions
_AGAIN = 0.05  # seconds until a sender tries again to reach brokers that are away

Place: TypeAlias = tuple[str, int]
"""A topic and one of its partitions."""


@dataclass(frozen=True)
class Sent:
    """Records of one sender, in a partition.

    Args:
        life: the process in whose life they are sent.
        after: seconds after that began.
        topic: its number.
        partition: its number.
        frames: stand for the records, of which the application has its own.
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


def drawn(seed: int) -> KafkaPlan:
    """Return the plan of a seed."""
    chance = Random(repr((seed, "plan")))
    lives = [_life(chance) for _ in range(chance.randint(3, 9))]
    grows = (
        (chance.randint(1, len(lives)), chance.uniform(0, 0.1)) if chance.random() < 0.5 else None
    )
    numbers = range(len(lives) + 1)
    sent = [_sent(chance, life, grows) for life in numbers for _ in range(chance.randint(0, 3))]
    if grows is not None:  # what is there before anybody has seen the new partitions
        some = tuple(["word"] * chance.randint(0, 3))
        sent += [Sent(grows[0], 0.0, topic, _PARTITIONS, some) for topic in range(_TOPICS)]
    away = [
        Away(life, chance.uniform(0, 0.2), chance.uniform(0, 1.0))
        for life in numbers
        if chance.random() < 0.1
    ]
    return KafkaPlan(seed, tuple(lives), (), (), tuple(sent), tuple(away), grows)


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
    partitions = _PARTITIONS + (grows is not None and life >= grows[0])
    kinds: tuple[Kind, ...] = ("word",) * 10 + ("slow", "undecodable", "raising")
    return Sent(
        life,
        chance.choice((0.0, 0.01, 0.05)),
        chance.randrange(_TOPICS),
        chance.randrange(partitions),
        tuple([chance.choice(kinds) for _ in range(chance.choice((1, 2, 3, 5, 8)))]),
        chance.choice(("none", "commit", "abort")),
        chance.choice((0.0, 0.0, 0.01, 0.5)),
    )


class Topics:
    """Topics, their brokers and their senders. They live on when the engine's process dies.

    Args:
        machine: where the engine runs.
        threads: of the engine.
        plan: what is sent, and when brokers are away.
        partitions: how many partitions each topic has.
        read: the topics that are read.
        records: returns the records of a sender: of each value, key, headers and timestamp.

    Attributes:
        brokers: what there is.
        sending: how many senders are at work, or will be in this life.
    """

    def __init__(
        self,
        machine: Machine,
        threads: Threads,
        plan: KafkaPlan,
        partitions: Mapping[str, int],
        read: Sequence[str],
        records: Callable[[int, Sent, Place], Sequence[tuple[Any, ...]]],
    ) -> None:
        self.brokers = Brokers(dict(partitions))
        self.sending = 0
        self._grown = False
        self._for_new: list[tuple[int, Sent]] = []
        self._world = machine.world
        self._machine = machine
        self._threads = threads
        self._plan = plan
        self._read = read
        self._records = records

    @contextlib.contextmanager
    def reached(self) -> Iterator[None]:
        """Let the engine reach the brokers, with threads of its sources and sinks."""
        modules = client(self._machine, self.brokers, self._threads)
        with contextlib.ExitStack() as stack:
            stack.enter_context(mock.patch.dict(sys.modules, modules))
            stack.enter_context(mock.patch.object(cluster, "_TRANSACTION", _LONGEST))
            stack.enter_context(mock.patch.object(source, "_NEW_PARTITIONS", _LOOK))
            for module, name in ((source, "threading"), (sink, "threading"), (sink, "queue")):
                stands_in = self._threads.stand_ins
                stack.enter_context(mock.patch.object(module, name, stands_in))
            yield

    def begin(self) -> None:
        """Begin a life: others send in it, and brokers may be away."""
        life, plan, at = self._world.life + 1, self._plan, self._world.at
        if plan.grows is not None and plan.grows[0] == life:
            at(plan.grows[1], self._grow)
        for number, sent in enumerate(plan.sent):
            if sent.life == life:
                self.sending += 1
                at(sent.after, partial(self._send, number, sent))
        for away in plan.away:
            if away.life == life:
                at(away.after, partial(self._be_away, True))
                at(away.after + away.seconds, partial(self._be_away, False))

    def _grow(self) -> None:
        """Add partitions; for some there are records already, which come before anybody looks."""
        for name in self._read:
            self.brokers.grow(name)
        self._grown, waiting, self._for_new = True, self._for_new, []
        for number, sent in waiting:
            self._send(number, sent)

    def _be_away(self, away: bool) -> None:
        self.brokers.away = away

    def _send(self, number: int, sent: Sent) -> None:
        """Put a sender's records into their partition, and end their transaction later."""
        topic = self._read[sent.topic % len(self._read)]
        added = sent.partition == _PARTITIONS
        if added and not self._grown:
            self._for_new.append((number, sent))
            return
        if self.brokers.away:
            self._world.at(_AGAIN, partial(self._send, number, sent))
            return
        place = topic, self.brokers.topics[topic] - 1 if added else sent.partition
        owner = (name := f"sender {number}"), self.brokers.begin(name)
        for record in self._records(number, sent, place):
            if sent.ends == "none":
                self.brokers.append_committed(place, *record)
            else:
                self.brokers.append(owner, place, *record)
        finish = partial(self._finish, owner, sent.ends == "commit")
        self._world.at(sent.open_for, finish)

    def _finish(self, owner: tuple[str, int], committed: bool) -> None:
        self.brokers.finish(owner, committed=committed)
        self.sending -= 1
