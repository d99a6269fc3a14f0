"""The machine on which the simulation runs an engine: its descriptors, faults and crashes."""

from __future__ import annotations

import contextlib
import errno
import os
import random
import threading
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from simulation.disk import Disk, File, Node
from simulation.network import Network
from simulation.plans import Life
from simulation.world import FIRST_DESCRIPTOR, Crash, World

if TYPE_CHECKING:
    from simulation.threads import Threads

ROOT = "/sim"
TRIED_AGAIN = (("remove", "log"),)
"""Calls that may fail without an end of the run."""


class _Here(threading.local):
    """What answers in this thread; other threads of the process reach the real system."""

    machine: Machine | None = None


here = _Here()


class Machine:
    """The machine that runs: its world, disk, network, and the descriptors of its process.

    Attributes:
        threads: of the engine, besides the event loop's; `None`: they are not simulated.
        troubled: a call has failed in this life, or the disk had no room for something.
        failed: a call has failed for another reason, and not one that is tried again.
        lost: the disk holds what no engine can make sense of.
    """

    def __init__(self, world: World) -> None:
        self.world = world
        self.disk = Disk()
        self.threads: Threads | None = None
        self.network = Network(world)
        self.files: dict[int, Opened] = {}
        self.locks: dict[int, int] = {}  # descriptor of the holder, by the file's id
        self.troubled = self.failed = False
        self.lost = False
        self.chance = world.chance("machine")
        self._faults: set[tuple[str, str, int]] = set()
        self._counts: dict[tuple[str, str], int] = {}

    def begin(self, life: Life) -> None:
        """Begin a life."""
        self._faults, self._counts = set(life.faults), {}
        self.troubled = self.failed = False
        self.network.accept_fails = life.accept_fails
        self.chance = self.world.chance("machine", self.world.life + 1)
        random.seed(self.chance.random())
        self.world.begin(life.crash_at, life.crash_in)
        if life.full is not None:
            after, room, seconds = life.full
            self.world.at(after, lambda: self._fill(room))
            self.world.at(after + seconds, partial(self._empty, breaks=life.breaks_when_full))

    def _fill(self, room: int) -> None:
        self.disk.room = self.disk.used() + room

    def _empty(self, *, breaks: bool) -> None:
        self.disk.room = None
        if breaks:
            write = "write", "log"
            self._faults.add((*write, self._counts.get(write, 0) + 1))

    def end(self) -> Crash:
        """End the life, as a process that gives up does; raise what is returned."""
        self.world.dead = True
        return Crash()

    @contextlib.contextmanager
    def looked_at(self) -> Iterator[None]:
        """Let somebody do something with the disk after a life, which nothing breaks."""
        self._faults, self.world.crash_at, self.disk.room = set(), None, None
        self.world.dead = False
        try:
            yield
        finally:
            self.world.dead = True

    def crash(self, *, power: bool) -> None:
        """End the process, wherever it is; without power the disk loses what was not synced."""
        self.world.dead = True
        self.files.clear()
        self.locks.clear()
        self.network.crash(power=power)
        if power:
            self.disk.lose_power(self.world.chance("power", self.world.life))

    def fails(self, what: str, path: str) -> bool:
        """Whether this call of its kind is one that fails."""
        area = _area(path)
        number = self._counts[what, area] = self._counts.get((what, area), 0) + 1
        fails = (what, area, number) in self._faults
        self.failed = self.failed or (fails and (what, area) not in TRIED_AGAIN)
        self.troubled = self.troubled or fails
        return fails

    def must(self, what: str, path: str) -> None:
        """Fail as the plan says.

        Raises:
            OSError: it does.
        """
        if self.fails(what, path):
            raise OSError(errno.EIO, os.strerror(errno.EIO), path)

    def no_room(self, path: str) -> OSError:
        """Return the error of a full disk."""
        self.troubled = True
        return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)

    def file(self, fd: int) -> Opened:
        """Return what a descriptor stands for.

        Raises:
            Crash: the process is dead.
            OSError: nothing.
        """
        if fd not in self.files:
            if self.world.dead:
                raise Crash
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        return self.files[fd]


def _area(path: str) -> str:
    """Return which kind of file a path is: calls are counted by it, to let one of them fail."""
    if path.endswith(".log"):
        return "log"
    return "letters" if ".jsonl" in path else "other"


class Opened:
    """An open file or folder; descriptors made by `dup` share it."""

    def __init__(self, node: Node, path: str, flags: int) -> None:
        self.node = node
        self.path = path
        self.appends = bool(flags & os.O_APPEND)
        self.at = 0

    @property
    def file(self) -> File:
        """The file."""
        if not isinstance(self.node, File):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), self.path)
        return self.node


@contextlib.contextmanager
def running(machine: Machine) -> Iterator[None]:
    """Let a machine answer."""
    here.machine = machine
    state = random.getstate()
    try:
        yield
    finally:
        here.machine = None
        random.setstate(state)


def simulated(path: Any) -> str | None:
    """Return a path as text if it lies on the simulated disk."""
    if here.machine is None or isinstance(path, int):
        return None
    text = os.fspath(path)
    if not isinstance(text, str):
        return None
    return text if text in (ROOT, "/") or text.startswith(ROOT + "/") else None


def machine_of(fd: Any) -> Machine | None:
    """Return the machine if a descriptor is one of its."""
    return here.machine if isinstance(fd, int) and fd >= FIRST_DESCRIPTOR else None
