"""Runs an input log by itself: what it said was durable is there after every crash."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random
from typing import Literal, TypeAlias
from unittest import mock

from log_records import records_in

from simulation.machine import Machine, running
from simulation.plans import Life, drawn_life
from simulation.world import Broken, Crash, World
from wallaroo.records import Frame, Record, Tick, with_times_that_never_decrease
from wallaroo.transport import log_file
from wallaroo.transport.input_log import InputLog, InputLogError, InputLogFullError

PATH = "/sim/checkpoint/input"
SEGMENT = 300  # bytes
MOST = 3000
_MANY = 7

Action: TypeAlias = Literal["append", "records", "sync", "drop", "read", "reopen"]


@dataclass(frozen=True)
class LogLife:
    """A process that has a log open: how it ends, and what it does, with a number for each."""

    life: Life
    actions: tuple[tuple[Action, int], ...]


@dataclass(frozen=True)
class LogPlan:
    """A run."""

    seed: int
    lives: tuple[LogLife, ...]


def drawn(seed: int) -> LogPlan:
    """Return the plan of a seed."""
    chance = Random(repr((seed, "plan")))
    return LogPlan(seed, tuple([_life(chance) for _ in range(chance.randint(3, 12))]))


def _life(chance: Random) -> LogLife:
    kinds: list[Action] = ["append"] * 4 + ["records", "sync", "sync", "drop", "read", "reopen"]
    actions = [(chance.choice(kinds), chance.randint(0, 9)) for _ in range(chance.randint(1, 25))]
    return LogLife(drawn_life(chance, longest=7), tuple(actions))


class LogRun:
    """A run of a plan.

    Attributes:
        held: the records that were written, from the very first; some of the last may be lost.
        durable: sequence of the first record that may be.
        dropped: sequence before which they need not be kept.
    """

    def __init__(self, plan: LogPlan) -> None:
        self.plan = plan
        self.world = World(plan.seed)
        self.machine = Machine(self.world)
        self.held: list[Record] = []
        self.durable = self.dropped = 0
        self._log: InputLog
        self._reserve = False  # there was room for it when it was last looked after
        self._starved = False  # the last append was refused because the disk is full
        self._refused = False  # an append was, since the last sync

    def run(self) -> int:
        """Run it, and return how many crashes there were."""
        crashes = 0
        index = mock.patch.object(log_file, "_INDEX_EVERY", SEGMENT // 4)
        with running(self.machine), index:
            for one in self.plan.lives:
                gaps = self.machine.disk.gaps
                self.machine.begin(one.life)
                try:
                    if not self._open(gaps):
                        return crashes
                    for action, number in [("read", 0), *one.actions]:
                        self.world.settle(0.01)
                        self._act(action, number)
                except Crash:
                    crashes += 1
                self.machine.crash(power=one.life.power)
        return crashes

    def _open(self, gaps: int) -> bool:
        """Open the log and check what is in it; return whether it could be opened."""
        try:
            self._log = log = self._opened()
        except InputLogError as error:
            if self.machine.troubled:
                raise self.machine.end() from error
            if gaps < self.machine.disk.gaps or (
                self.machine.disk.gaps and "damaged" in str(error)
            ):
                return False  # a later write outlived an earlier one: a person has to decide
            raise Broken(f"recover-1: the log cannot be opened: {error}") from error
        if self._refused and log.next_sequence >= self.durable:
            # A power failure can bring back what was refused and not synced: nobody knows of it.
            self.held[self.durable :] = records_in(log, self.durable, log.next_sequence)
            self._refused = False
        if not self.durable <= log.next_sequence <= len(self.held):
            raise Broken(
                f"recover-1: the log goes to {log.next_sequence} after a crash; records before "
                f"{self.durable} are durable, {len(self.held)} were written"
            )
        del self.held[log.next_sequence :]
        self.durable = log.next_sequence
        self._reserve = self.machine.disk.room is None
        self._starved = False
        return True

    def _opened(self) -> InputLog:
        return InputLog.open(PATH, MOST, file_bytes=SEGMENT)

    def _act(self, action: Action, number: int) -> None:
        """Do one thing; what fails must have a cause."""
        try:
            match action:
                case "append":
                    self._append(number)
                case "records":
                    self._write([self._tick(number), *self._frames(number)])
                case "sync":
                    self._sync()
                case "drop":
                    self._drop(self.durable - number * (number - 1))
                case "read":
                    self._read()
                case "reopen":
                    self._log.close()
                    if self._open(self.machine.disk.gaps):
                        self._read()
        except InputLogError as error:
            if not self.machine.troubled:
                raise Broken(f"the log fails without a cause: {error}") from error

    def _frames(self, number: int) -> list[Record]:
        chance = self.world.chance("payload", len(self.held), number)
        many = number == _MANY  # small ones: numbers grow faster than files
        count, sizes = (10 * number, (0, 0, 1)) if many else (number % 4 + 1, (0, 1, 9, 70))
        return [
            Frame(chance.choice("ab"), chance.randbytes(chance.choice(sizes)), self._at(number))
            for _ in range(count)
        ]

    def _at(self, number: int) -> int:
        return self.world.time_ns() + (number - 4) * 5_000_000

    def _tick(self, number: int) -> Record:
        return Tick(self._at(number))

    def _append(self, number: int) -> None:
        frames = [frame for frame in self._frames(number) if isinstance(frame, Frame)]
        frames = [replace(frame, source=frames[0].source) for frame in frames]
        self._written([*frames])
        payloads = [frame.payload for frame in frames]
        self._write_or_not(lambda: self._log.append(frames[0].source, payloads, frames[0].at))

    def _write(self, records: list[Record]) -> None:
        self._written(records)
        self._write_or_not(lambda: self._log.append_records(records))

    def _written(self, records: list[Record]) -> None:
        """Note what is being written: after a crash it may be there or not."""
        self._before = len(self.held)
        self.held = with_times_that_never_decrease([*self.held, *records])

    def _write_or_not(self, write: Callable[[], int]) -> None:
        try:
            following = write()
        except InputLogError as error:
            del self.held[self._before :]
            self._starved = isinstance(error, InputLogFullError)
            self._refused = True
            raise
        self._starved = False
        if following != len(self.held):
            raise Broken(f"the log counts to {following}, not to {len(self.held)}")

    def _sync(self) -> None:
        reached = self._log.sync()
        if reached != len(self.held):
            raise Broken(f"a sync reached {reached}, not {len(self.held)}")
        if reached > self.durable:  # else nothing was synced
            self.durable, self._refused = reached, False

    def _drop(self, sequence: int) -> None:
        self.dropped = max(self.dropped, sequence)
        full, size = self.machine.disk.room is not None, self._log.size
        self._log.drop_before(max(0, sequence))
        waits = full and self._starved and self._reserve and sequence == self._log.next_sequence
        if waits and size > 200 and self._log.size == size:
            raise Broken("a full disk: all is dropped, and nothing was deleted")
        self._reserve = self._reserve or not full

    def _read(self) -> None:
        """Check everything that the log holds."""
        first, last = self._log.first_sequence, self._log.next_sequence
        if first > self.dropped:
            raise Broken(
                f"the log begins with {first}; only records before {self.dropped} are free"
            )
        found = records_in(self._log, first, last)
        if found != self.held[first:last]:
            wrong = [at for at, one in enumerate(found, first) if one != self.held[at]]
            raise Broken(f"recover-1: the log's records {wrong} are not those that were written")
        self._read_part(first, last)
        if self._log.latest_at != (self.held[-1].at if self.held else 0):
            raise Broken("time-1: the log has forgotten its latest arrival time")

    def _read_part(self, first: int, last: int) -> None:
        """Check that a part of the log is what its limits say."""
        chance = self.world.chance("part", first, last)
        start = chance.randint(first, last)
        most = chance.randint(1, MOST // 10)
        end = self._log.end_within(start, max_bytes=most, max_records=chance.choice((1, 3, 100)))
        if records_in(self._log, start, end) != self.held[start:end]:
            raise Broken(f"the log's records {start} to {end} are not those that were written")
        if end < min(self.durable, start + 1):
            raise Broken(f"a part of the log that begins with {start} ends with {end}")
