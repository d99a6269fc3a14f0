"""Threads of the engine that wait for each other, as greenlets: simulated time decides who runs.

`stand_ins` has what the modules `threading` and `queue` give. One thread runs at a time, and goes
on until it waits.
"""

from __future__ import annotations

import contextlib
import math
import queue
from collections import deque
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import greenlet

from simulation.machine import Machine
from simulation.world import Crash

_PAUSES = (0.0002, 0.001, 0.005)  # seconds until one that waits looks again
_SYNCS = (0.0, 0.001, 0.01)  # seconds that the disk takes for a sync


class Threads:
    """The threads of the process that runs on a machine, besides the event loop's.

    Attributes:
        stand_ins: in place of the modules `threading` and `queue`.
    """

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._running: list[greenlet.greenlet] = []
        self.stand_ins = SimpleNamespace(
            Thread=partial(_Thread, self),
            Condition=partial(_Condition, self),
            Lock=partial(_Lock, self),
            Event=partial(_Event, self),
            Semaphore=partial(_Semaphore, self),
            SimpleQueue=partial(_Queue, self),
            Empty=queue.Empty,
        )

    def wait(self, ready: Callable[[], bool], seconds: float | None = None) -> bool:
        """Have the thread that calls wait, for so long at most; return whether it is ready."""
        world = self._machine.world
        end = world.now + (math.inf if seconds is None else seconds)
        while not ready():
            if world.dead:
                raise Crash
            if (left := end - world.now) <= 0:
                return False
            pause = min(left, self._machine.chance.choice(_PAUSES))
            me = greenlet.getcurrent()
            if me.parent is None:
                world.settle(pause)
            else:
                world.at(pause, partial(self._go_on, me))
                me.parent.switch()
        if world.dead:
            raise Crash
        return True

    def sleep(self, wakers: list[Callable[[], None]]) -> None:
        """Have the thread that calls wait until somebody calls what it adds to `wakers`."""
        me, world = greenlet.getcurrent(), self._machine.world
        assert me.parent is not None, "the event loop's thread would wait for itself"
        pause = self._machine.chance.choice(_PAUSES)
        wakers.append(lambda: world.at(pause, partial(self._go_on, me)))
        me.parent.switch()
        if world.dead:
            raise Crash

    @property
    def other(self) -> bool:
        """Whether the thread that runs is another than the event loop's."""
        return greenlet.getcurrent().parent is not None

    def sync(self) -> None:
        """Let a sync take its time, in which the event loop goes on, if another thread has it."""
        if self.other:
            self.wait(lambda: False, self._machine.chance.choice(_SYNCS))

    def start(self, run: Callable[[], object]) -> greenlet.greenlet:
        """Start a thread."""

        def all_of_it() -> None:
            with contextlib.suppress(Crash):
                run()

        thread = greenlet.greenlet(all_of_it, greenlet.getcurrent())
        self._running.append(thread)
        self._machine.world.at(0.0, partial(self._go_on, thread))
        return thread

    def end(self) -> None:
        """End them with their process, wherever they are."""
        for thread in self._running:
            if thread:
                thread.throw(Crash)
        self._running.clear()

    def _go_on(self, thread: greenlet.greenlet) -> None:
        if thread in self._running and not thread.dead:
            thread.switch()


class _Thread:
    def __init__(
        self, threads: Threads, target: Callable[..., object], args: Any = (), **_named: object
    ) -> None:
        self._threads = threads
        self._run = partial(target, *args)
        self._started: greenlet.greenlet | None = None

    def start(self) -> None:
        self._started = self._threads.start(self._run)

    def is_alive(self) -> bool:
        return self._started is not None and not self._started.dead

    def join(self) -> None:
        self._threads.wait(lambda: not self.is_alive())


class _Condition:
    """Nobody goes on while another runs, so there is nothing to lock or to notify."""

    def __init__(self, threads: Threads) -> None:
        self._threads = threads

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        pass

    def wait_for(self, ready: Callable[[], bool], timeout: float | None = None) -> bool:
        return self._threads.wait(ready, timeout)

    def notify_all(self) -> None:
        pass


class _Lock:
    def __init__(self, threads: Threads) -> None:
        self._threads = threads
        self._held = False

    def __enter__(self) -> None:
        self._threads.wait(lambda: not self._held)
        self._held = True

    def __exit__(self, *_: object) -> None:
        self._held = False


class _Event:
    def __init__(self, threads: Threads) -> None:
        self._threads = threads
        self._is_set = False

    def is_set(self) -> bool:
        return self._is_set

    def set(self) -> None:
        self._is_set = True

    def clear(self) -> None:
        self._is_set = False

    def wait(self, timeout: float | None = None) -> bool:
        return self._threads.wait(self.is_set, timeout)


class _Semaphore:
    def __init__(self, threads: Threads, value: int) -> None:
        self._threads = threads
        self._free = value

    def acquire(self, _blocking: bool = True, timeout: float | None = None) -> bool:
        if taken := self._threads.wait(lambda: self._free > 0, timeout):
            self._free -= 1
        return taken

    def release(self) -> None:
        self._free += 1


class _Queue:
    def __init__(self, threads: Threads) -> None:
        self._threads = threads
        self._items: deque[Any] = deque()
        self._wakers: list[Callable[[], None]] = []

    def empty(self) -> bool:
        return not self._items

    def put(self, item: Any) -> None:
        self._items.append(item)
        if self._wakers:
            self._wakers.pop()()

    def get_nowait(self) -> Any:
        return self.get(timeout=0)

    def get(self, timeout: float | None = None) -> Any:
        while timeout is None and not self._items:
            self._threads.sleep(self._wakers)
        if not self._threads.wait(lambda: bool(self._items), timeout):
            raise queue.Empty
        return self._items.popleft()
