"""A live run: an application that an engine serves, its peers, and what must come out.

Each step waits until the server has received what was sent. So the order in which frames of several
connections are received is the order of the log, and the reference says what must come of it.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

from wallaroo.engine import Case, Engine, Isolation, ServeOptions, Summary
from wallaroo.errors import UnsupportedTopology
from wallaroo.overriding import override
from wallaroo.topology import SinkId
from wallaroo.trace import Trace
from wallaroo_conformance.judge.oracle import reference_oracle
from wallaroo_conformance.live.applications import LiveApplication
from wallaroo_conformance.live.peers import Sender, SinkPeer, header, wait_until
from wallaroo_conformance.live.served import ServedRun, lacking

TOO_LARGE = 1 << 30
"""Bytes that a refused header claims: far over any `max_size`, and it fits four bytes."""

EARLIER_LETTER = {"error": "of an earlier run"}
"""What the file of dead letters has in it before the run."""

_RECOVERY = ("recover-1", "recover-2")
_CLOSING = 2.0  # seconds that a server has for a stop when something broke
_INTERVAL = 0.02  # seconds between checkpoints; short, so that a killed engine has stored something
_STORED = 10 * _INTERVAL  # seconds after which it has probably stored what came before
_SHOWN = 8  # payloads of a step that are shown, of a few bytes each


@dataclass(frozen=True)
class Scenario:
    """What is done in a live run.

    Args:
        application: what is served.
        script: the steps.
        rules: what it is about.
        recovers: it is served with a checkpoint, so that it can be killed and started again.
        letters: it is served with a file of dead letters, which is not empty.
        options: others of `ServeOptions`.
    """

    application: LiveApplication
    script: Callable[[LiveRun], None]
    rules: tuple[str, ...]
    recovers: bool = False
    letters: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)

    def refusal(self, engine: Engine) -> str:
        """Return why an engine cannot do it; empty: it can."""
        try:
            self.application.check(engine.check)
        except UnsupportedTopology as refused:
            return f"it refuses the application: {refused}"
        return lacking(engine, self.rules, recovers=self.recovers)


class LiveRun(ServedRun):
    """An application between senders and sinks; a context manager.

    Args:
        scenario: what is served, and how.
        engine: the engine that serves.
        isolation: the mode.
        patience: seconds that any one thing may take.
    """

    def __init__(
        self, scenario: Scenario, engine: Engine, isolation: Isolation, patience: float
    ) -> None:
        options = {"isolation": isolation, "stop_timeout": patience, **scenario.options}
        super().__init__(
            *(engine, ServeOptions(**options), patience),
            interval=_INTERVAL,
            recovers=scenario.recovers,
        )
        self.note(f"{isolation} mode")
        self.log: list[tuple[str, bytes]] = []
        self.senders: list[Sender] = []  # those that are connected
        self._live = scenario.application
        self._connections = 0  # made so far
        self._dropped: Counter[str] = Counter()  # unfinished frames, by source
        self._refused: Counter[str] = Counter()  # headers that claimed too much, by source
        self._restarted, self._killed = False, False
        self._reference_trace: tuple[list[tuple[str, bytes]], Trace] | None = None
        self.letters = Path(self._directory.name) / "dead"
        if scenario.letters:
            self.letters.write_text(json.dumps(EARLIER_LETTER) + "\n", encoding="utf-8")
            self._options = replace(self._options, dead_letters=self.letters)
        remembered = self._live.remembered
        self.peers = {
            sink: SinkPeer(remembers=sink in remembered, tells=remembered.get(sink, False))
            for sink in self._live.sinks
        }
        self.build(self._live)
        self.sources = list(self.application.sources)
        self.serve()

    def build(self, application: LiveApplication) -> None:
        """Make what is served from now on."""
        self.application = application.build({s: p.address for s, p in self.peers.items()})

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        for peer in self.peers.values():
            peer.read_on()
        for sender in self.senders:
            sender.close()
        # If a check failed, let the server close what it has open.
        if not self._killed and self.handle.wait(0) is None:
            self.handle.stop()
            self.handle.wait(_CLOSING)
        self.handle.kill()
        self._directory.cleanup()
        for peer in self.peers.values():
            peer.close()

    # -- what is sent ----------------------------------------------------------------------------

    def connect(self, source: str) -> Sender:
        """Return a new connection to a source."""
        self.note(f"connect to {source}")
        self._connections += 1
        self.senders.append(Sender(source, self.handle.addresses[source], self.patience))
        return self.senders[-1]

    def framed(self, source: str, payloads: Sequence[bytes]) -> bytes:
        """Return payloads behind the headers that the source's decoder reads."""
        return b"".join([self.claim(source, len(payload)) + payload for payload in payloads])

    def claim(self, source: str, length: int = TOO_LARGE) -> bytes:
        """Return a header of a source that claims so many bytes.

        Raises:
            OverflowError: its headers are too short for that.
        """
        return header(self.application.sources[source].config.decoder, length)

    def hand_over(
        self,
        sender: Sender,
        payloads: Sequence[bytes],
        pieces: Sequence[int] = (),
        end: bytes = b"",
    ) -> None:
        """Send frames, and behind them bytes that are no frame, without waiting."""
        shown = [payload[:_SHOWN] for payload in payloads[:_SHOWN]]
        self.note(
            f"{sender.source}: send {len(payloads)} frames, their payloads begin with {shown}"
            + f", in pieces of {list(pieces)} bytes" * bool(pieces)
            + f", behind them {end!r:.40}" * bool(end)
        )
        self.log += [(sender.source, payload) for payload in payloads]
        try:
            sender.send(self.framed(sender.source, payloads) + end, pieces)
        except OSError as error:
            rules = ("frame-3", "frame-5") if self._refused else ("frame-5",)
            self.broken(rules, f"a connection ended that was to go on: {error}")

    def send(
        self,
        sender: Sender | str,
        payloads: Sequence[bytes],
        pieces: Sequence[int] = (),
        *,
        end: bytes = b"",
        rules: tuple[str, ...] = (),
    ) -> Sender:
        """Send frames, and wait until they are received.

        Args:
            sender: the connection; a source's name: a new one to it.
            payloads: the frames'.
            pieces: their sizes if they are sent in pieces, over and over; empty: all at once.
            end: bytes that are sent with them and are no frame.
            rules: that speak of it if they are not received; empty: those about frames.
        """
        if isinstance(sender, str):
            sender = self.connect(sender)
        self.hand_over(sender, payloads, pieces, end)
        self.received(rules or self._frame_rules(payloads, pieces))
        return sender

    def begin(
        self, sender: Sender, payload: bytes, kept_back: int, before: Sequence[bytes] = ()
    ) -> None:
        """Send whole frames, and with them a frame without its last bytes."""
        data = self.framed(sender.source, [payload])
        kept_back = 1 + kept_back % (len(data) - 1)
        self.send(sender, before, end=data[:-kept_back])
        sender.begun, sender.kept_back = payload, data[-kept_back:]

    def complete(self, sender: Sender) -> None:
        """Send the last bytes of the frame that was begun."""
        self.note(f"{sender.source}: send the rest of {sender.begun!r:.40}")
        self.log.append((sender.source, sender.begun))
        rest, sender.kept_back = sender.kept_back, b""
        sender.send(rest)
        self.received(self._frame_rules((), rest))

    def finish(self, sender: Sender) -> None:
        """Half-close: the source closes its side when all is received; what is begun is dropped."""
        self.note(f"{sender.source}: half-close" + ", inside a frame" * bool(sender.kept_back))
        self.senders.remove(sender)
        self._dropped[sender.source] += bool(sender.kept_back)
        sender.finish()
        end = sender.end()
        sender.close()
        if end != "in order":
            self.broken(("frame-4",), f"after a half-close the connection's end is {end}")
        self.received(("frame-4",), at_once=True)

    def reset(self, sender: Sender) -> None:
        """Reset a connection, as if its sender had died."""
        self.note(f"{sender.source}: reset the connection")
        self.senders.remove(sender)
        self._dropped[sender.source] += bool(sender.kept_back)
        sender.reset()

    def refuse(self, sender: Sender, header: bytes, before: Sequence[bytes] = ()) -> None:
        """Send frames and with them a header that claims too much: the connection is reset."""
        self._refused[sender.source] += 1
        self.send(sender, before, end=header, rules=("frame-3",))
        self.senders.remove(sender)
        end = sender.end()
        sender.close()
        if end != "reset":
            self.broken(("frame-3", "frame-4"), f"the connection is not reset: its end is {end}")
        self.received(("frame-3",), at_once=True)

    def _frame_rules(
        self, payloads: Sequence[bytes], pieces: Sequence[int] | bytes
    ) -> tuple[str, ...]:
        """Return the rules that speak of frames that are not received."""
        alone = pieces or self._connections == 1
        rules: tuple[str, ...] = ("frame-1", "frame-5") if alone else ("frame-5", "frame-1")
        if b"" in payloads:
            rules = ("frame-2", *rules)
        return ("frame-3", *rules) if self._refused else rules

    def received(self, rules: tuple[str, ...], *, at_once: bool = False) -> None:
        """Wait until what was sent, and no more, has been received."""
        if self._restarted or self._live.generated:  # then progress does not count frames alone
            self.delivered(rules)
            return
        wanted = len(self.log)
        wait_until(
            lambda: self.handle.progress().received >= wanted, 0 if at_once else self.patience
        )
        if (received := self.handle.progress().received) != wanted:
            self.broken(rules, f"{received} frames received, {wanted} were sent")

    # -- sinks and kills -------------------------------------------------------------------------

    def sink_goes(self, sink: SinkId) -> None:
        """Let a sink go away, once it has read what there is."""
        self.delivered(("order-2", "frame-5", "sink-3"))
        self.peers[sink].go_away()
        self.note(f"the sink {sink} goes away")

    def sink_returns(self, sink: SinkId) -> None:
        """Let a sink come back; once all sinks have all outputs, none is pending."""
        self.peers[sink].come_back()
        self.note(f"the sink {sink} is back")
        self.delivered(("sink-3",))
        if self._restarted or not all(peer.present for peer in self.peers.values()):
            return
        if not wait_until(lambda: not self.handle.progress().pending, self.patience):
            pending = self.handle.progress().pending
            self.broken(("sink-3",), f"all outputs have come, and {pending} are still pending")

    def let_it_store(self) -> None:
        """Wait until the server has probably stored its state."""
        time.sleep(_STORED)
        self.note(f"{_STORED:g} s pass")

    @override
    def kill(self) -> None:
        super().kill()
        self._killed = True
        ends = [sender.end() for sender in self.senders]
        for sender in self.senders:
            sender.close()
        self.senders.clear()
        if "in order" in ends:  # no sender may see its connection closed so
            self.broken(("frame-4",), "a connection is closed as if all was received, not reset")

    @override
    def kill_and_restart(self) -> None:
        super().kill_and_restart()
        self._restarted, self._killed = True, False

    @override
    def serve_from(self, checkpoint: Path, engine: Engine | None = None, **own: Any) -> None:
        super().serve_from(checkpoint, engine, **own)
        self._killed = False

    # -- what comes out --------------------------------------------------------------------------

    def expected(self, frames: int | None = None) -> Trace:
        """Return the trace of the first `frames` frames sent (`None`: of all)."""
        log = self.log[:frames]
        if self._reference_trace is None or self._reference_trace[0] != log:  # it may be long
            trace = reference_oracle().reference.run(Case(self.application, log))
            self._reference_trace = log, trace
        return self._reference_trace[1]

    def delivered(
        self, rules: tuple[str, ...], frames: int | None = None, *, over: bool = False
    ) -> None:
        """Wait until the sinks that are there have the outputs of the first `frames` frames sent.

        Args:
            rules: that speak of it if they have not; after a restart those about recovery do.
            frames: how many; `None`: all.
            over: the run is over, so they must have nothing else.
        """
        for sink, outputs in self.expected(frames).outputs.items():
            if sink in self._live.generated or sink[0] in self._live.shared:
                continue
            if self.peers[sink].present:
                self._comes(rules, sink, outputs, over=over)

    def generated(self, rules: tuple[str, ...]) -> None:
        """Wait until all has come that no frame leads to."""
        for sink, outputs in self._live.generated.items():
            self._comes(rules, sink, outputs, over=False)

    def _comes(
        self, rules: tuple[str, ...], sink: SinkId, outputs: Sequence[bytes], *, over: bool
    ) -> None:
        peer, size = self.peers[sink], sum(map(len, outputs))
        # The size alone does not tell: an output that came in part counts in it, too.
        wait_until(lambda: peer.size >= size and not peer.missing(outputs), self.patience)
        if over:
            wait_until(lambda: not peer.connections, self.patience)
        if problem := peer.missing(outputs):
            if self._restarted:
                rules = (*rules, *_RECOVERY) if sink in self._live.remembered else _RECOVERY
            self.broken(rules, f"sink {sink}: {problem[:400]}")

    def on_connections_of_their_own(self, pipeline: str) -> None:
        """Wait until each of a pipeline's sinks has brought its outputs to one address (sink-2)."""
        outputs = [
            b"".join(o) for sink, o in self.expected().outputs.items() if sink[0] == pipeline
        ]
        peer = self.peers[pipeline, 0]
        wait_until(lambda: peer.size >= sum(map(len, outputs)), self.patience)
        if sorted(peer.brought) != sorted(outputs):
            came = [f"{data[:60]!r}" for data in peer.brought]
            self.broken(("sink-2",), f"{len(outputs)} sinks have one address; there came {came}")

    # -- how it ends -----------------------------------------------------------------------------

    def finished(self) -> None:
        """Half-close all connections, stop, and compare all outputs and counts (stop-1)."""
        for sink in self.peers:
            self.peers[sink].come_back()
        for sender in list(self.senders):
            self.finish(sender)
        summary = self.ended(("stop-1",), 0, stop=True)
        # The peers may not have read all that the engine has delivered.
        self.delivered(("sink-3", "order-2"), over=True)
        if not self._restarted:
            self.counted_all(summary)

    def counted_all(self, summary: Summary) -> None:
        """Compare what was received, dropped and delivered with what the summary says."""
        received = Counter(source for source, _ in self.log)
        self.counted(("stop-1",), "received", summary.received, received)
        refused = {source: self._refused[source] for source in self._refused}
        for rules, sources in (
            (("frame-3", "frame-4"), refused),
            (("frame-4",), self._dropped.keys() - refused),
        ):
            dropped = {source: summary.dropped_frames.get(source, 0) for source in sources}
            wanted = {source: (self._dropped + self._refused)[source] for source in sources}
            self.counted(rules, "dropped frames", dropped, wanted)
        outputs = {sink: len(outputs) for sink, outputs in self.expected().outputs.items()}
        self.counted(("stop-1",), "written", summary.written, outputs)

    def counted(
        self,
        rules: tuple[str, ...],
        what: str,
        counts: Mapping[Any, int],
        wanted: Mapping[Any, int],
    ) -> None:
        """Compare counts of a summary; a count that is missing is 0."""
        is_, must = ({k: n for k, n in some.items() if n} for some in (counts, wanted))
        if is_ != must:
            self.broken(rules, f"the summary's {what}: {is_}, and there were {must}")
