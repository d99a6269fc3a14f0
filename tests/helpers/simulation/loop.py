"""asyncio's selector loop, which waits by letting simulated time pass; and the loop's thread."""

from __future__ import annotations

import asyncio
import math
import selectors
import socket
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

from simulation.machine import Machine
from simulation.world import Broken, Crash

_READ, _WRITE = selectors.EVENT_READ, selectors.EVENT_WRITE


class Selector(selectors.BaseSelector):
    """Knows which simulated sockets are ready; each wait is a step of the life."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._keys: dict[int, selectors.SelectorKey] = {}
        self.woken = False  # from outside the loop

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        """Watch a descriptor."""
        key = self._keys[fileobj] = selectors.SelectorKey(fileobj, fileobj, events, data)
        return key

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        """Watch it no more."""
        return self._keys.pop(fileobj)

    def modify(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        """Watch it for other events."""
        return self.register(fileobj, events, data)

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        """Return what is watched."""
        return self._keys

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Return what is ready, at `timeout` seconds from now at the latest."""
        world = self._machine.world
        world.call("select")
        until = math.inf if timeout is None else world.now + max(0.0, timeout)
        while world.let_happen(world.now):
            pass
        while not (ready := self._ready()) and not self.woken and world.let_happen(until):
            if world.dead:  # it died in another thread
                raise Crash
        if self.woken:
            self.woken = False
        elif not ready:
            if until == math.inf:
                raise Broken("the engine waits for something that will never happen")
            world.now = max(world.now, until)
        return ready

    def _ready(self) -> list[tuple[selectors.SelectorKey, int]]:
        ready = []
        sockets = self._machine.network.sockets
        for fd, key in self._keys.items():
            sock = sockets[fd]
            events = _READ if key.events & _READ and sock.readable else 0
            if key.events & _WRITE and sock.writable:
                events |= _WRITE
            if events:
                ready.append((key, events))
        if len(ready) > 1:
            self._machine.chance.shuffle(ready)
        return ready


class Loop(asyncio.SelectorEventLoop):
    """An event loop without a thread, a pipe or an executor."""

    def __init__(self, machine: Machine) -> None:
        self._waits = Selector(machine)
        super().__init__(self._waits)
        self._machine = machine
        self._connections: list[Any] = []
        self.errors: list[str] = []
        self.set_exception_handler(self._note)

    def end(self) -> None:
        """End the loop of a life that is over: nothing of it may act in the next."""
        self._machine.world.dead = True
        for task in asyncio.all_tasks(self):
            task._log_destroy_pending = False  # type: ignore[attr-defined]  # they were not to end
            try:
                task.get_coro().close()
            except BaseException as error:
                if not isinstance(error, Crash | Exception):
                    raise
        for transport in self._connections:
            transport._sock = None  # asyncio warns of those that were not closed
        if self.is_running():
            raise Broken("a loop was ended by itself")
        self.close()

    def _note(self, _: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if not isinstance(error, Crash) and not self._machine.world.dead:
            self.errors.append(f"{context['message']}: {error!r}")

    def _make_socket_transport(self, *arguments: Any, **more: Any) -> Any:
        transport = super()._make_socket_transport(*arguments, **more)
        self._connections.append(transport)
        return transport

    async def getaddrinfo(self, host: Any, port: Any, **more: Any) -> Any:
        """Return one address."""
        return socket.getaddrinfo(host, port)

    def _make_self_pipe(self) -> None:
        self._internal_fds = 0

    def _close_self_pipe(self) -> None:
        return None

    def _write_to_self(self) -> None:
        self._waits.woken = True


class Thread:
    """As `wallaroo.transport.threads.LoopThread`, without a thread."""

    def __init__(self, loop: Loop) -> None:
        self._loop = loop

    def start(self) -> None:
        """Do nothing: the loop runs when it is called."""

    def run(self, coroutine: Coroutine[Any, Any, Any], timeout: float | None = None) -> Any:
        """Run `coroutine` in the loop."""
        return self._loop.run_until_complete(coroutine)

    def call(self, function: Callable[..., Any], *arguments: Any, **more: Any) -> Any:
        """Call `function` in the loop."""

        async def call() -> Any:
            return function(*arguments, **more)

        return self._loop.run_until_complete(call())

    def post(self, function: Callable[..., Any], *arguments: Any) -> None:
        """Call `function` in the loop soon, unless it is closed."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(function, *arguments)

    def stop(self, timeout: float | None = None) -> bool:
        """Stop the loop."""
        self.post(self._loop.stop)
        return True
