"""A live run of an application made for this run; only its edges are special.

Payloads and outputs are plain bytes. A payload decides what a component does with it: `UNREADABLE`
is refused by the decoder, `BAD` by the computation, `UNWRITABLE` by the encoder; at `QUIT` the
process exits.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import wallaroo
from wallaroo.engine import Case, Engine, Handle, ServeOptions, Summary
from wallaroo.topology import Application
from wallaroo.trace import Trace
from wallaroo_conformance.live.peers import Sender, SinkPeer, header, wait_until
from wallaroo_conformance.live.scenario import BrokenRuleError
from wallaroo_conformance.live.stretches import missing

UNREADABLE, BAD, UNWRITABLE, QUIT = b"unreadable", b"bad", b"unwritable", b"quit"

RECEIVE_BUFFER = 1 << 16
"""Bytes that the system is asked to keep for a sink that does not read."""

_HOST = "127.0.0.1"
_CLOSING = 2.0  # seconds that a server has for a stop when something broke


def _decoded(payload: bytes) -> Any:
    if type(payload) is not bytes or payload == UNREADABLE:  # decode-1
        raise ValueError("this payload cannot be read")
    return payload


@wallaroo.decoder(header_length=1, length_fmt="B")
def one(payload: bytes) -> Any:
    """Decode; a header is one byte."""
    return _decoded(payload)


@wallaroo.decoder(header_length=2, length_fmt=">H")
def two(payload: bytes) -> Any:
    """Decode; a header is two bytes."""
    return _decoded(payload)


@wallaroo.decoder(header_length=4, length_fmt=">i")
def signed(payload: bytes) -> Any:
    """Decode; a header may claim a negative length."""
    return _decoded(payload)


@wallaroo.decoder(header_length=4, length_fmt=">I")
def plain(payload: bytes) -> Any:
    """Decode; a header is four bytes."""
    return _decoded(payload)


@wallaroo.decoder(header_length=8, length_fmt=">Q")
def eight(payload: bytes) -> Any:
    """Decode; a header is eight bytes."""
    return _decoded(payload)


@wallaroo.encoder
def _line(message: Any) -> bytes:
    return bytes(message) + b"\n"


@wallaroo.encoder
def _loud_line(message: Any) -> bytes:
    if message == UNWRITABLE:
        raise ValueError("this message cannot be written")
    return bytes(message) + b"!\n"


@wallaroo.computation(name="check")
def _check(message: Any) -> Any:
    if message == BAD:
        raise ValueError("this message is bad")
    if message == QUIT:
        sys.exit("this message ends the run")
    return message


@dataclass(frozen=True)
class Pipe:
    """A pipeline of a run.

    Args:
        decoder: its source's.
        max_size: the largest payload that its source takes, in bytes.
        sinks: how many; the first one's encoder never fails.
        one_address: its sinks share an address.
        steps: computations behind the one that checks payloads.
    """

    decoder: Any = plain
    max_size: int = 1 << 20
    sinks: int = 1
    one_address: bool = False
    steps: tuple[Any, ...] = ()


class Run:
    """An application, served; a context manager.

    Args:
        engine: the engine that serves.
        reference: the engine that says what must come out.
        pipes: by name.
        options: how to serve.
        patience: seconds that any one thing may take.
    """

    def __init__(
        self,
        engine: Engine,
        reference: Engine,
        pipes: Mapping[str, Pipe],
        options: ServeOptions,
        patience: float,
    ) -> None:
        self.patience = patience
        self.log: list[tuple[str, bytes]] = []
        self._pipes = pipes
        self._reference = reference
        self._story: list[str] = [f"serve the sources {', '.join(pipes)}, {options.isolation}"]
        self._senders: list[Sender] = []
        self._known: tuple[list[tuple[str, bytes]], Trace] | None = None  # a log and its trace
        self.peers = {
            (name, number): SinkPeer(receive_buffer=RECEIVE_BUFFER)
            for name, pipe in pipes.items()
            for number in range(1 if pipe.one_address else pipe.sinks)
        }
        self._application = self._built()
        self.handle: Handle = engine.serve(self._application, options)

    def __enter__(self) -> Run:
        return self

    def __exit__(self, *error: object) -> None:
        for peer in self.peers.values():
            peer.read_on()
        for sender in self._senders:
            sender.close()
        if self.handle.wait(0) is None:  # a check failed: let the server close what it has open
            self.handle.stop()
            self.handle.wait(_CLOSING)
        self.handle.kill()
        for peer in self.peers.values():
            peer.close()

    # -- what is sent ------------------------------------------------------------------------

    def connect(self, source: str) -> Sender:
        """Return a new connection to a source."""
        self._senders.append(Sender(self.handle.addresses[source], self.patience))
        return self._senders[-1]

    def framed(self, source: str, payloads: Sequence[bytes]) -> bytes:
        """Return payloads behind the headers that the source's decoder reads."""
        decoder = self._pipes[source].decoder
        return b"".join([header(decoder, len(payload)) + payload for payload in payloads])

    def send(
        self,
        rule: str,
        source: str,
        payloads: Sequence[bytes],
        chunks: Sequence[int] = (),
        *,
        behind: bytes = b"",
        sender: Sender | None = None,
    ) -> Sender:
        """Send frames, in chunks, and what is behind them; the frames must be received.

        Args:
            rule: what is broken if they are not.
            source: whose they are.
            payloads: the frames'.
            chunks: sizes of the chunks, over and over; empty: all at once.
            behind: bytes that bring no frame.
            sender: the connection; `None`: a new one.
        """
        sizes = [len(payload) for payload in payloads[:8]]
        and_so_on = f" and {len(payloads) - 8} more" if len(payloads) > 8 else ""
        self.note(f"send {source} payloads of {sizes}{and_so_on} bytes, behind them {behind!r}")
        self.log += [(source, payload) for payload in payloads]
        sender = sender or self.connect(source)
        try:
            sender.send(self.framed(source, payloads) + behind, chunks)
        except OSError as error:
            self.broken(rule, f"the connection has ended while frames were sent: {error}")
        self.received(rule)
        return sender

    def refused(self, source: str, payloads: Sequence[bytes], data: bytes) -> None:
        """Send frames and, in the same write, a header that claims too much (frame-3)."""
        sender = self.send("frame-3", source, payloads, behind=data)
        if (end := sender.end()) != "reset":
            self.broken("frame-3", f"the connection is not reset: its end is {end}")
        self.received("frame-3", at_once=True)

    def finished(self, sender: Sender) -> None:
        """Half-close: the source closes its side when all that was sent is received (frame-4)."""
        sender.finish()
        if (end := sender.end()) != "in order":
            self.broken("frame-4", f"after a half-close the connection's end is {end}")
        self.received("frame-4", at_once=True)

    def received(self, rule: str, *, at_once: bool = False) -> None:
        """Wait until what was sent, and no more, has been received."""
        wanted = len(self.log)
        patience = 0 if at_once else self.patience
        wait_until(lambda: self.handle.progress().received >= wanted, patience)
        if (found := self.handle.progress().received) != wanted:
            self.broken(rule, f"{found} frames received, {wanted} were sent")

    # -- what comes out ------------------------------------------------------------------------

    def expected(self, taken: int | None = None) -> Trace:
        """Return the trace of the first `taken` frames sent (`None`: of all)."""
        log = self.log[:taken]
        if self._known is None or self._known[0] != log:  # it may be long, and is asked for often
            self._known = log, self._reference.run(Case(self._application, log))
        return self._known[1]

    def delivered(self, rule: str, taken: int | None = None, *, over: bool = False) -> None:
        """Wait until the sinks that are there have the outputs of the first `taken` frames sent.

        When the run is over, they must have nothing else.
        """
        for sink, outputs in self.expected(taken).outputs.items():
            peer = self.peers.get(sink)
            if peer is None or self._pipes[sink[0]].one_address or not peer.present:
                continue
            size = sum(map(len, outputs))

            def came(
                size: int = size, outputs: Sequence[bytes] = outputs, peer: SinkPeer = peer
            ) -> bool:
                # The size alone does not tell: an output that came in part counts in it, too.
                return peer.size >= size and not missing(outputs, peer.stretches)

            wait_until(came, self.patience)
            if over:
                wait_until(lambda peer=peer: not peer.connections, self.patience)  # type: ignore[misc]
            if problem := missing(outputs, peer.stretches):
                self.broken(rule, f"sink {sink}: {problem[:400]}")

    def on_connections_of_their_own(self, name: str) -> None:
        """Wait until each of a pipeline's sinks has brought its outputs to one address (sink-2)."""
        outputs = [b"".join(o) for sink, o in self.expected().outputs.items() if sink[0] == name]
        peer = self.peers[name, 0]
        wait_until(lambda: peer.size >= sum(map(len, outputs)), self.patience)
        if sorted(peer.stretches) != sorted(outputs):
            came = [f"{stretch[:60]!r}" for stretch in peer.stretches]
            self.broken("sink-2", f"{len(outputs)} sinks are at one address, and there came {came}")

    # -- how it ends -------------------------------------------------------------------------

    def stopped(self) -> Summary:
        """Stop, and return the summary of a run that has delivered all (stop-1)."""
        summary = self.ended("stop-1", 0, stop=True)
        self.counted_all(summary)
        return summary

    def counted_all(self, summary: Summary) -> None:
        """Compare what was received and delivered with what the summary says (stop-1)."""
        self.counted("stop-1", "received", summary.received, Counter(s for s, _ in self.log))
        outputs = {sink: len(outputs) for sink, outputs in self.expected().outputs.items()}
        self.counted("stop-1", "written", summary.written, outputs)

    def ended(self, rule: str, exit_code: int, *, stop: bool = False) -> Summary:
        """Wait until the run has ended, by itself or by a stop, and return its summary."""
        if stop:
            self.note("stop")
            self.handle.stop()
        summary = self.handle.wait(self.patience)
        if summary is None:
            self.broken(rule, f"the run has not ended within {self.patience:g} s")
        if summary.exit_code != exit_code:
            self.broken(
                rule, f"exit code {summary.exit_code}, not {exit_code}; problem: {summary.problem}"
            )
        return summary

    def counted(
        self, rule: str, what: str, found: Mapping[Any, int], wanted: Mapping[Any, int]
    ) -> None:
        """Compare counts of a summary; a count that is missing is 0."""
        is_, must = ({k: n for k, n in counts.items() if n} for counts in (found, wanted))
        if is_ != must:
            self.broken(rule, f"the summary's {what}: {is_}, and there were {must}")

    def note(self, step: str) -> None:
        """Note what is done; a failure shows it."""
        self._story.append(step)

    def broken(self, rule: str, text: str) -> NoReturn:
        """End the run: `rule` is broken.

        Raises:
            BrokenRuleError: always.
        """
        raise BrokenRuleError(rule, text, self._story)

    def _built(self) -> Application:
        builder = wallaroo.ApplicationBuilder("edges")
        for name, pipe in self._pipes.items():
            config = wallaroo.TCPSourceConfig(_HOST, 0, pipe.decoder, max_size=pipe.max_size)
            builder.new_pipeline(name, config).to(_check)
            for step in pipe.steps:
                builder.to(step)
            builder.to_sinks(
                [
                    wallaroo.TCPSinkConfig(
                        *self.peers[name, 0 if pipe.one_address else number].address,
                        _loud_line if number else _line,
                    )
                    for number in range(pipe.sinks)
                ]
            )
        return builder.build()
