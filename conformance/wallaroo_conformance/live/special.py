"""Live runs with applications of their own: headers and sizes, a slow sink, a run that stops.

Payloads and outputs are plain bytes here: all that is special is at the edges.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import wallaroo
from wallaroo.engine import Case, Engine, Handle, Isolation, ServeOptions, Summary
from wallaroo.topology import Application
from wallaroo_conformance.live.peers import Sender, SinkPeer, header, wait_until
from wallaroo_conformance.live.scenario import BrokenRuleError, missing

MAX_SIZE = 8
"""Bytes that the source ``signed`` takes at most."""

_HOST = "127.0.0.1"
_CLOSING = 2.0  # seconds that a server has for a stop when something broke

_LARGE = 1 << 16  # bytes of a payload
_LARGE_FRAMES = 192  # far more than the buffers of a connection hold
_UNREAD = 128  # large frames that are received before the slow sink begins to read
_RECEIVE_BUFFER = 1 << 16  # bytes, of the slow sink
_STANDSTILL = 0.3  # seconds after which an engine that received nothing more waits for its sink


@wallaroo.decoder(header_length=1, length_fmt="B")
def _one(payload: bytes) -> Any:
    return payload


@wallaroo.decoder(header_length=2, length_fmt=">H")
def _two(payload: bytes) -> Any:
    return payload


@wallaroo.decoder(header_length=4, length_fmt=">i")
def _signed(payload: bytes) -> Any:
    return payload


@wallaroo.decoder(header_length=4, length_fmt=">I")
def _plain(payload: bytes) -> Any:
    return payload


@wallaroo.encoder
def _line(message: Any) -> bytes:
    return bytes(message) + b"\n"


@wallaroo.computation(name="check")
def _check(message: Any) -> Any:
    if message == b"bad":
        raise ValueError("this message is bad")
    return message


class Run:
    """An application, served; a context manager.

    Args:
        engine: who serves.
        reference: who says what must come out.
        sources: by pipeline, its decoder and the largest payload it takes.
        options: how to serve.
        patience: seconds that any one thing may take.
        sinks: of each pipeline.
    """

    def __init__(
        self,
        engine: Engine,
        reference: Engine,
        sources: dict[str, tuple[Any, int]],
        options: ServeOptions,
        patience: float,
        sinks: int = 1,
    ) -> None:
        self.patience = patience
        self.log: list[tuple[str, bytes]] = []
        self._sources = sources
        self._reference = reference
        self._story: list[str] = [f"serve the sources {', '.join(sources)}"]
        self._senders: list[Sender] = []
        self.peers = {
            (name, number): SinkPeer(receive_buffer=_RECEIVE_BUFFER)
            for name in sources
            for number in range(sinks)
        }
        self._application = self._built(sources, sinks)
        self.handle: Handle = engine.serve(self._application, options)

    def __enter__(self) -> Run:
        return self

    def __exit__(self, *error: object) -> None:
        for peer in self.peers.values():
            peer.read_on()
        for sender in self._senders:
            sender.close()
        if self.handle.wait(0) is None:  # something broke: let it close what it has open
            self.handle.stop()
            self.handle.wait(_CLOSING)
        self.handle.kill()
        for peer in self.peers.values():
            peer.go_away()

    def connect(self, source: str) -> Sender:
        """Return a new connection to a source."""
        self._senders.append(Sender(self.handle.addresses[source], self.patience))
        return self._senders[-1]

    def send(self, rule: str, source: str, payloads: Sequence[bytes], cuts: Sequence[int]) -> None:
        """Send frames on a new connection, cut into pieces; they must be received."""
        self.tell(f"send {source} payloads of {[len(payload) for payload in payloads]} bytes")
        self.log += [(source, payload) for payload in payloads]
        self.connect(source).send(self.framed(source, payloads), cuts)
        self.received(rule)

    def refused(self, source: str, data: bytes) -> None:
        """Send what begins with a header that cannot be met: the connection is closed (frame-3)."""
        self.tell(f"send {source} {data!r} on a connection of its own")
        sender = self.connect(source)
        sender.send(data)
        if (end := sender.end()) != "reset":
            self.broken("frame-3", f"the connection is not reset: its end is {end}")

    def framed(self, source: str, payloads: Sequence[bytes]) -> bytes:
        """Return payloads behind the headers that the source's decoder reads."""
        decoder, _ = self._sources[source]
        return b"".join([header(decoder, len(payload)) + payload for payload in payloads])

    def received(self, rule: str) -> None:
        """Wait until all that was sent has been received."""
        wanted = len(self.log)
        if not wait_until(lambda: self.handle.progress().received >= wanted, self.patience):
            found = self.handle.progress().received
            self.broken(rule, f"{found} frames received, {wanted} were sent")

    def delivered(self, rule: str, taken: int | None = None, *, over: bool = False) -> None:
        """Wait until the sinks have what comes of the first `taken` frames sent (`None`: all).

        When the run is over, they must have nothing else.
        """
        case = Case(self._application, self.log[:taken])
        for sink, outputs in self._reference.run(case).outputs.items():
            size, peer = sum(map(len, outputs)), self.peers[sink]
            wait_until(lambda size=size, peer=peer: peer.size >= size, self.patience)  # type: ignore[misc]
            if over:
                wait_until(lambda peer=peer: not peer.connections, self.patience)  # type: ignore[misc]
            problem = missing(outputs, peer.stretches)
            if problem:
                self.broken(rule, f"sink {sink}: {problem[:400]}")

    def stopped(self) -> Summary:
        """Stop, and return the summary (stop-1)."""
        self.tell("stop")
        self.handle.stop()
        summary = self.handle.wait(self.patience)
        if summary is None:
            self.broken("stop-1", f"it has not stopped within {self.patience:g} s")
        if summary.exit_code:
            self.broken("stop-1", f"exit code {summary.exit_code}: {summary.problem}")
        return summary

    def tell(self, step: str) -> None:
        """Note what is done, for those who read of a failure."""
        self._story.append(step)

    def broken(self, rule: str, text: str) -> NoReturn:
        """End the run: `rule` is broken.

        Raises:
            BrokenRuleError: always.
        """
        raise BrokenRuleError(rule, text, self._story)

    def _built(self, sources: dict[str, tuple[Any, int]], sinks: int) -> Application:
        builder = wallaroo.ApplicationBuilder("edges")
        for name, (decoder, max_size) in sources.items():
            config = wallaroo.TCPSourceConfig(_HOST, 0, decoder, max_size=max_size)
            builder.new_pipeline(name, config).to(_check).to_sinks(
                [
                    wallaroo.TCPSinkConfig(*self.peers[name, number].address, _line)
                    for number in range(sinks)
                ]
            )
        return builder.build()


def sizes_and_a_slow_sink(
    engine: Engine, reference: Engine, isolation: Isolation, patience: float
) -> Counter[str]:
    """Send frames of special sizes, then megabytes to a sink that reads late; return the rules."""
    sources = {
        "one": (_one, 1 << 20),
        "two": (_two, 1 << 20),
        "signed": (_signed, MAX_SIZE),
        "bulk": (_plain, 1 << 20),
    }
    options = ServeOptions(isolation=isolation, stop_timeout=patience)
    with Run(engine, reference, sources, options, patience) as run:
        run.send("frame-1", "one", [b"", b"a", b"\xff" * 255], [1])
        run.send("frame-1", "two", [b"", b"b" * 256, b"c" * 65_535], [30_000])
        run.send("frame-3", "signed", [b"d" * MAX_SIZE], [])
        run.refused("signed", run.framed("signed", [b"e" * (MAX_SIZE + 1)]))
        run.refused("signed", (-1).to_bytes(4, "big", signed=True) + b"f")
        run.send("frame-3", "signed", [b"others go on"[:MAX_SIZE]], [])
        run.delivered("frame-1")
        _slow_sink(run)
        summary = run.stopped()
        run.delivered("order-2", over=True)  # nothing came of what was refused
        refused = summary.dropped_frames.get("signed", 0)
        if refused != 2:
            run.broken("frame-3", f"2 frames were refused, {refused} are counted")
    return Counter(["frame-1", "frame-2", "frame-3", "sink-3", "order-2", "stop-1"])


def _slow_sink(run: Run) -> None:
    """Send more than all buffers hold to a sink that begins to read when the engine must wait."""
    run.tell(f"send bulk {_LARGE_FRAMES} payloads of {_LARGE} bytes; its sink begins to read late")
    peer = run.peers["bulk", 0]
    peer.hold()
    payloads = [number.to_bytes(4, "big") * (_LARGE // 4) for number in range(_LARGE_FRAMES)]
    before = len(run.log)
    run.log += [("bulk", payload) for payload in payloads]
    sender = run.connect("bulk")
    data = run.framed("bulk", payloads)
    # It is held up when the engine's own buffers are full, which may be any time.
    thread = threading.Thread(target=sender.send, args=(data,), daemon=True)
    thread.start()
    _wait_for_a_standstill(lambda: run.handle.progress().received, before + _UNREAD, run.patience)
    peer.read_on()
    thread.join(run.patience)
    run.delivered("sink-3")


def _wait_for_a_standstill(count: Callable[[], int], enough: int, patience: float) -> None:
    """Wait until `count()` is `enough`, or does not grow any more."""
    seen = -1
    while (now := count()) < enough and now > seen:
        seen = now
        wait_until(lambda seen=seen: count() > seen, min(_STANDSTILL, patience))  # type: ignore[misc]


def on_error_stop(
    engine: Engine, reference: Engine, isolation: Isolation, patience: float
) -> Counter[str]:
    """Let a dead letter end a run (dead-4); return the rules."""
    options = ServeOptions(isolation=isolation, on_error="stop", stop_timeout=patience)
    sources = {"checked": (_plain, 1 << 20)}
    with Run(engine, reference, sources, options, patience, sinks=2) as run:
        run.tell("send good, good, bad, good, bad in one piece; --on-error stop")
        payloads = [b"first", b"second", b"bad", b"after", b"bad"]
        run.log += [("checked", payload) for payload in payloads]
        run.connect("checked").send(run.framed("checked", payloads))
        summary = run.handle.wait(patience)
        if summary is None:
            run.broken("dead-4", f"the run has not ended within {patience:g} s")
        run.delivered("dead-4", payloads.index(b"bad"), over=True)
        letters = sum(summary.dead_letters.values())
        if letters != 1:
            run.broken("dead-4", f"{letters} dead letters are counted, the first ends the run")
        if summary.exit_code != 1:
            run.broken("dead-4", f"exit code {summary.exit_code}, 1 is due")
    return Counter(["dead-4"])
