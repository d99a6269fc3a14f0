"""The sender process: each stream on a connection and a native thread of its own, on schedule.

A stream's thread sleeps until its next message is due, then writes every message that is due, in
one call. When the target does not take it (the socket's buffer is full), it waits and writes on:
the schedule is never stretched, so back-pressure shows as lateness. It keeps three numbers for each
write: how many messages it completed, since when the socket was free, and when it was done. Another
process computes the lateness from them (`control/nodes`), so that this does not delay the next
write.
"""

from __future__ import annotations

import base64
import contextlib
import select
import socket
import threading
import time
from array import array
from bisect import bisect_right
from collections import deque

import numpy as np

from wallaroo_loadgen.common.schedule import NS, StreamSchedule
from wallaroo_loadgen.dataplane.child import REPORT_SECONDS, Child, connect, monotonic_start, serve
from wallaroo_loadgen.workloads.plan import Plan
from wallaroo_loadgen.workloads.protocol import Stream

_LARGEST_WRITE = 1 << 16  # bytes; in a longer one the messages at its end would seem late
_SHORTEST_SLEEP = 50_000  # ns; above some 10,000 messages a second they share wake-ups
_LOOK_FOR_END = NS // 10  # ns between looks whether the target has closed
_PATIENCE = 0.1  # seconds at most between looks whether to stop


class StreamSender:
    """One stream: its connection, its thread, and the record of its writes.

    Attributes:
        writes: (messages completed, time the socket was free, time done), in ns from the start.
        closed: how the target ended the connection, if that was before all was sent.
    """

    def __init__(self, number: int, stream: Stream, schedule: StreamSchedule) -> None:
        self.number = number
        self.sock: socket.socket | None = None
        self.writes: deque[tuple[int, int, int]] = deque()
        self.closed: str | None = None
        self.stopping = False
        self._stream = stream
        self._schedule = schedule
        # About 50 ms of messages: a block is made in a pause and must not take longer than one.
        per_second = schedule.total / max(schedule.measured_to / NS, 0.1)
        self._block_size = int(min(max(64, per_second / 20), 4096))

    def start(self, at: int) -> threading.Thread:
        """Begin to send, with the run's start at that monotonic time (ns)."""
        thread = threading.Thread(target=self._run, args=(at,), daemon=True)
        thread.start()
        return thread

    def _run(self, at: int) -> None:
        try:
            self._send_all(at)
        except OSError as error:
            self.closed = f"the target closed the connection ({error.strerror or error})"

    def _send_all(self, at: int) -> None:
        sock = self.sock
        assert sock is not None
        sock.setblocking(False)
        clock = time.monotonic_ns
        writable = select.poll()
        writable.register(sock, select.POLLOUT)
        following = self._block(0)
        first = 0
        free = 0  # the time since which the target has not held us up
        look = _LOOK_FOR_END
        while following is not None and not self.stopping:
            data, ends, due = following
            following = None
            view = memoryview(data)
            count = len(due)
            sent = position = 0  # messages and bytes of this block that are out
            while sent < count and not self.stopping:
                now = clock() - at
                if now < due[sent]:
                    if following is None:
                        following = self._block(first + count)
                        continue
                    if now > look:
                        look = now + _LOOK_FOR_END
                        if _ended(sock):
                            raise ConnectionResetError("end of stream")
                    pause = max(due[sent] - now, _SHORTEST_SLEEP) / NS
                    time.sleep(min(pause, _PATIENCE))
                    continue
                ready = bisect_right(due, now, sent)
                stop = min(ends[ready - 1], max(position + _LARGEST_WRITE, ends[sent]))
                try:
                    position += sock.send(view[position:stop])
                except BlockingIOError:
                    stop = position + 1
                done = clock() - at
                completed = bisect_right(ends, position, sent) - sent
                if completed:
                    self.writes.append((completed, free, done))
                    sent += completed
                if position < stop:
                    while not writable.poll(_PATIENCE * 1000) and not self.stopping:
                        pass
                    free = clock() - at
            first += count
            if following is None:
                following = self._block(first)

    def _block(self, first: int) -> tuple[bytes, list[int], list[int]] | None:
        """Return the next messages, where they end, and when they are due; None after the last."""
        count = min(self._block_size, self._schedule.total - first)
        if count <= 0:
            return None
        block = self._stream.block(first, count)
        numbers = np.arange(first, first + len(block.ends))
        return block.data, block.ends.tolist(), self._schedule.intended(numbers).tolist()

    def flush_writes(self) -> str:
        """Return the writes since the last call, as base64 of native 64-bit integers."""
        flat = array("q")
        for _ in range(len(self.writes)):
            flat.extend(self.writes.popleft())
        return base64.b64encode(flat.tobytes()).decode("ascii")

    def watch(self) -> None:
        """Notice a target that closes after all was sent, while outputs are still awaited."""
        if self.closed is None and self.sock is not None and _ended(self.sock):
            self.closed = "the target closed the connection (end of stream)"


def _ended(sock: socket.socket) -> bool:
    """Whether the other side has closed; bytes that it has written are read and dropped."""
    try:
        while data := sock.recv(1 << 16, socket.MSG_DONTWAIT):
            del data
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True


def body(child: Child, plan: Plan) -> None:
    """Follow the parent's commands: connect, start, stop, close."""
    config = plan.config
    streams = [
        StreamSender(number, plan.workload.streams[number], plan.streams[number])
        for number in plan.streams_of(int(child.setup["process"]))
    ]
    threads: list[threading.Thread] = []
    running = False
    started, used = time.monotonic(), 0.0
    while True:
        command = child.command(REPORT_SECONDS) or {"command": None}
        match command["command"]:
            case "connect":
                for stream in streams:
                    source = plan.workload.streams[stream.number].source
                    stream.sock = connect(config.to[source], config.wait)
                child.report("connected")
            case "start":
                at = monotonic_start(command["at"])
                threads = [stream.start(at) for stream in streams]
                running = True
                started, used = time.monotonic(), time.process_time()
            case "stop":
                for stream in streams:
                    stream.stopping = True
            case "close":
                break
        if threads or running:
            finished = not any(thread.is_alive() for thread in threads)
            if finished:
                for stream in streams:
                    stream.watch()
            busy = (time.process_time() - used) / max(time.monotonic() - started, 0.1)
            child.report(
                "writes",
                streams={str(stream.number): stream.flush_writes() for stream in streams},
                closed={str(stream.number): stream.closed for stream in streams if stream.closed},
                busy=busy,
            )
            if running and finished:
                running = False
                child.report("sent")
    for stream in streams:
        if stream.sock is not None:
            with contextlib.suppress(OSError):
                stream.sock.close()


if __name__ == "__main__":
    serve(body)
