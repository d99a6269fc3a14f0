"""Pipes: lines from a stream in place of a source, outputs to a stream in place of sinks.

Both block, so each has a thread of its own; both keep a bounded number of bytes.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import IO

from wallaroo.errors import FrameError
from wallaroo.frames import payload_of_line
from wallaroo.overriding import override
from wallaroo.transport.interfaces import OutputSink, Receiver, Source
from wallaroo.transport.threads import LoopThread

_READ = 256 * 1024  # bytes at a time
_LIMIT = 4 << 20  # bytes kept for a slow reader of the output


class LineParser:
    """Divides a byte stream into lines; a line's newline is not part of its payload.

    Args:
        max_size: the longest line taken, in bytes.

    Attributes:
        held: bytes of a line whose newline has not come.
    """

    def __init__(self, max_size: int) -> None:
        self._max_size = max_size
        self._rest: list[bytes] = []  # in pieces: a long line is put together once
        self.held = 0

    def feed(self, data: bytes) -> list[bytes]:
        """Return the lines that `data` completes.

        Raises:
            TooLongError: a line is longer than `max_size`; its `lines` are the lines before it.
        """
        *lines, rest = data.split(b"\n")
        if lines:
            lines[0] = b"".join([*self._rest, lines[0]])
            self._rest, self.held = [], 0
        if rest:
            self._rest.append(rest)
            self.held += len(rest)
        for index, line in enumerate(lines):
            if len(line) > self._max_size:
                raise TooLongError(self._max_size, lines[:index])
        if self.held > self._max_size:
            raise TooLongError(self._max_size, lines)
        return lines

    def end(self) -> list[bytes]:
        """Return the text after the last newline as a line, if there is any."""
        rest, self._rest, self.held = b"".join(self._rest), [], 0
        return [rest] if rest else []


class TooLongError(FrameError):
    """A line is longer than its source accepts."""

    def __init__(self, max_size: int, lines: list[bytes]) -> None:
        super().__init__(f"a line is longer than {max_size} bytes (max_size)")
        self.lines = lines


class LineReader(Source):
    """Reads lines in a thread; their ends are as `wallaroo.frames.payload_of_line` has it.

    What a blocked read gives after `stop` or `close` counts as not received.

    Args:
        stream: the stream to read.
        source: name of the source that it stands in for.
        max_size: the longest accepted line, in bytes.
        receiver: gets payloads, and is notified of the end.
        loop: the thread in which it receives.
    """

    def __init__(
        self, stream: IO[bytes], source: str, max_size: int, receiver: Receiver, loop: LoopThread
    ) -> None:
        self._read = getattr(stream, "read1", stream.read)
        self._source = source
        self._parser = LineParser(max_size)
        self._receiver = receiver
        self._loop = loop
        self._received = {source: 0}
        self._stopped = False
        self._may_read = threading.Event()
        self._may_read.set()
        self._thread = threading.Thread(target=self._run, name="wallaroo-stdin", daemon=True)

    @property
    @override
    def received(self) -> Mapping[str, int]:
        return self._received

    @override
    def start(self) -> None:
        self._thread.start()

    @override
    def pause(self) -> None:
        self._may_read.clear()

    @override
    def resume(self) -> None:
        self._may_read.set()

    @override
    async def stop(self) -> None:
        self._stopped = True

    @override
    def close(self) -> None:
        self._stopped = True
        self._may_read.set()

    def _run(self) -> None:
        problem: str | None = None
        try:
            while not self._stopped and (data := self._read(_READ)):
                self._deliver(self._parser.feed(data))
            if not self._stopped:
                self._deliver(self._parser.end())
        except TooLongError as error:
            self._deliver(error.lines)
            problem = f"stdin: {error}"
        except (OSError, ValueError) as error:  # ValueError: the stream has been closed
            problem = f"stdin: it cannot be read: {getattr(error, 'strerror', None) or error}"
        self._loop.post(self._receiver.input_ended, problem)

    def _deliver(self, lines: list[bytes]) -> None:
        if not lines:
            return
        # Once the loop has ended, no code takes lines or waits for this thread.
        with contextlib.suppress(RuntimeError, concurrent.futures.CancelledError):
            self._loop.call(self._receive, [payload_of_line(line) for line in lines])
            self._may_read.wait()

    def _receive(self, payloads: list[bytes]) -> None:
        """Give payloads to the engine; in the loop's thread."""
        if not self._stopped:
            self._received[self._source] += len(payloads)
            self._receiver.receive(self._source, payloads)


class StreamSink(OutputSink):
    """A sink that writes to a stream in a thread, one output per line.

    Call its methods in the thread of the loop it is started in.

    Args:
        stream: the stream to write to.
        turn: a lock held while writing, for sinks that share a stream.
        on_room: called when it was full and has room again.
        on_broken: called with an error's text once nothing more can be written.
    """

    def __init__(
        self,
        stream: IO[bytes],
        *,
        turn: threading.Lock | None = None,
        on_room: Callable[[], None] = lambda: None,
        on_broken: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.connects = 1  # the stream is there from the beginning
        self._stream = stream
        self._turn = turn or threading.Lock()
        self._on_room = on_room
        self._on_broken = on_broken
        self._loop: asyncio.AbstractEventLoop
        self._queue: deque[tuple[bytes, int] | None] = deque()
        self._queued = threading.Semaphore(0)
        self._bytes = 0
        self._broken = False
        self._thread = threading.Thread(target=self._run, name="wallaroo-stdout", daemon=True)

    @property
    @override
    def connected(self) -> bool:
        return not self._broken

    @override
    def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._thread.start()

    @override
    def write(self, outputs: Sequence[bytes]) -> None:
        # Each ends in a newline: its own, or one that is added.
        data = b"".join([o if o.endswith(b"\n") else o + b"\n" for o in outputs])
        self.pending += len(outputs)
        self.bytes_out += len(data)
        self._bytes += len(data)
        self.full = self._bytes >= _LIMIT
        self._queue.append((data, len(outputs)))
        self._queued.release()

    @override
    def look(self) -> None:
        return  # the thread reports what it has written

    @override
    async def drain(self) -> None:
        while self.pending and not self._broken:
            await asyncio.sleep(0.002)

    @override
    def close(self) -> None:
        self._queue.append(None)
        self._queued.release()

    def _run(self) -> None:
        while True:
            self._queued.acquire()
            entry = self._queue.popleft()
            if entry is None:
                return
            data, count = entry
            try:
                with self._turn:
                    view = memoryview(data)
                    while view:  # a raw stream may write only a part
                        view = view[self._stream.write(view) :]
                    self._stream.flush()
            except (OSError, ValueError) as error:
                reason = getattr(error, "strerror", None) or str(error)
                self._post(self._break, f"the outputs cannot be written: {reason}")
                return
            self._post(self._wrote, count, len(data))

    def _post(self, function: Callable[..., None], *args: object) -> None:
        try:
            self._loop.call_soon_threadsafe(function, *args)
        except RuntimeError:  # the loop is closed, so the report is not needed
            return

    def _wrote(self, count: int, size: int) -> None:
        self.written += count
        self.pending -= count
        self._bytes -= size
        if self.full and self._bytes <= _LIMIT // 2:
            self.full = False
            self._on_room()

    def _break(self, reason: str) -> None:
        self._broken = True
        self._on_broken(reason)
