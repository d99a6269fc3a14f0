"""Between the edges: frames into a machine, what comes out to the sinks, no more than they take.

Everything happens in the event loop's thread, one frame after the other. What was received and
cannot be processed yet, because a sink is full or the loop needs a turn, waits in a backlog; while
anything waits there, nothing more is read.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Sequence

from wallaroo.errors import WallarooError
from wallaroo.trace import Ended
from wallaroo.transport.edges import Edges
from wallaroo_reference.machine import Machine

_TURN = 0.02  # seconds the machine may run before the loop sees to its connections
_MOST_FRAMES = 1024  # fed at once: by what comes of these, outputs may exceed what sinks take

_log = logging.getLogger("wallaroo.reference")


class Feeder:
    """Feeds a machine.

    Args:
        machine: what to feed.
        edges: where its outputs and dead letters go; paused while no more should be read.
        failed: called once with what ended the run, if something does.
    """

    def __init__(self, machine: Machine, edges: Edges, *, failed: Callable[[str], None]) -> None:
        self._machine = machine
        self._edges = edges
        self._sinks = list(edges.sinks.values())
        # The machine's lists are drained in place, so they need not be looked up again.
        self._outlets = [(machine.outputs[id_], sink) for id_, sink in edges.sinks.items()]
        self._failed = failed
        self._backlog: deque[tuple[str, Sequence[bytes]]] = deque()
        self._taken = 0  # frames that were delivered to us
        self._closings: deque[tuple[int, Callable[[], None]]] = deque()
        self._frames = _MOST_FRAMES  # fed at once, as many as a turn allows
        self._paused = False
        self._scheduled = False
        self._over = False

    @property
    def unprocessed(self) -> int:
        """Frames received that wait."""
        return sum([len(payloads) for _, payloads in self._backlog])

    def deliver(self, source: str, payloads: Sequence[bytes]) -> None:
        """Take frames, and process them unless others are waiting."""
        if self._over:
            return
        self._taken += len(payloads)
        self._backlog.append((source, payloads))
        if not self._paused:
            self.go_on()

    def go_on(self) -> None:
        """Process what waits, for a turn and as far as sinks take it; call when one has room."""
        self._scheduled = False
        began = before = time.monotonic()
        while self._backlog and not self._full():
            frames = self._feed()
            now = time.monotonic()
            self._adapt(now - before, frames)
            before = now
            if self._backlog and now - began > _TURN:
                self._schedule()
                break
        if self._closings:
            self._close_some()
        wait = bool(self._backlog) or self._full()
        if wait and not self._paused:
            self._paused = True
            self._edges.pause()
        elif self._paused and not wait:
            self._paused = False
            self._edges.resume()

    def when_processed(self, close: Callable[[], None]) -> None:
        """Have `close` called once all that was delivered is processed; never if the run ends."""
        if self._over:
            return
        self._closings.append((self._taken, close))
        self._close_some()

    async def idle(self) -> None:
        """Wait until nothing waits."""
        while self._backlog:
            await asyncio.sleep(0.002)

    def abandon(self) -> None:
        """Process nothing more."""
        self._over = True
        self._backlog.clear()
        self._closings.clear()

    def _schedule(self) -> None:
        if not self._scheduled:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self.go_on)

    def _close_some(self) -> None:
        processed = self._taken - self.unprocessed
        while self._closings and self._closings[0][0] <= processed:
            self._closings.popleft()[1]()

    def _full(self) -> bool:
        for sink in self._sinks:  # noqa: SIM110 - any() takes four times as long, for each message
            if sink.full:
                return True
        return False

    def _feed(self) -> int:
        """Feed some of what waits first; return how many frames."""
        source, payloads = self._backlog.popleft()
        if len(payloads) > self._frames:
            self._backlog.appendleft((source, payloads[self._frames :]))
            payloads = payloads[: self._frames]
        try:
            self._machine.feed(source, payloads)
        except Exception as error:  # noqa: BLE001 - an engine's bug must not end in silence
            # User code cannot get here: the machine turns what it raises into dead letters.
            _log.exception("the engine itself failed; this is a bug in it")
            self._fail(f"the engine itself failed: {type(error).__name__}: {error}")
        for outputs, sink in self._outlets:
            if outputs:
                sink.write(outputs)
                outputs.clear()
        if self._machine.dead_letters:
            self._bury()
        if self._machine.ended is not None:
            self._fail(_described(self._machine.ended))
        return len(payloads)

    def _adapt(self, seconds: float, frames: int) -> None:
        """Feed fewer at once where user code is slow, so that the loop gets its turn."""
        if seconds > 2 * _TURN:
            self._frames = max(1, frames // 2)
        elif self._frames < _MOST_FRAMES and seconds < _TURN / 2 and frames == self._frames:
            self._frames *= 2

    def _bury(self) -> None:
        letters = self._machine.dead_letters[:]
        self._machine.dead_letters.clear()
        try:
            self._edges.dead_letters.add(letters)
        except WallarooError as error:
            self._fail(str(error))

    def _fail(self, problem: str) -> None:
        if not self._over:
            self.abandon()
            self._failed(problem)


def _described(ended: Ended) -> str:
    where = f"step {ended.step}" if ended.step is not None else "decoder or encoder"
    place = f"pipeline {ended.pipeline}, {where}, message {'.'.join(map(str, ended.lineage))}"
    if ended.kind == "exit":
        return f"{ended.error_type} ended the run: {place} (dead-3)"
    return f"the first dead letter ended the run, as --on-error stop says: {place} (dead-4)"
