"""A live run, step by step, beside a model of what must come out.

Each step waits until the server has taken what was sent, so that the order in which frames of
several connections are received is the order in which the model has them.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import NoReturn

from wallaroo.engine import Engine, Handle, Isolation, ServeOptions
from wallaroo_conformance.cases.building import build
from wallaroo_conformance.cases.case import (
    PIPELINES,
    ConformanceCase,
    Input,
    PartitionSpec,
    PipelineSpec,
    StepSpec,
)
from wallaroo_conformance.cases.either import engine_case
from wallaroo_conformance.cases.operators import DECODERS
from wallaroo_conformance.live.checkpoint import STORED, Checkpoint
from wallaroo_conformance.live.peers import Address, Sender, SinkPeer, header, wait_until
from wallaroo_conformance.live.stretches import missing, recovery_rule

APPLICATIONS: tuple[ConformanceCase, ...] = (
    ConformanceCase(
        pipelines=(
            PipelineSpec("text", (StepSpec("count", route="by_text"),), ("line", "described")),
        ),
        partitions=(PartitionSpec("keyed"),),
    ),
    ConformanceCase(
        pipelines=(
            PipelineSpec("latin", (StepSpec("history"),), ("line",)),
            PipelineSpec("Record", (StepSpec("count"),), ("described",)),
        ),
        partitions=(PartitionSpec("single"),),
    ),
    ConformanceCase(
        pipelines=(
            PipelineSpec("raw", (StepSpec("characters"),), ("Framed",)),
            PipelineSpec("text", (StepSpec("refuse"), StepSpec("shout")), ("line",)),
        ),
    ),
)
"""Applications without findings, so that both modes keep the rules; only the edges are special."""

_CLOSING = 2.0  # seconds that a server has for a stop when something broke
_READING = 5.0  # seconds that reading what has been delivered may take

MAX_CLAIM = 1 << 30  # far over `max_size`, and it fits four bytes


def modes_of(engine: Engine) -> list[Isolation]:
    """Return the modes that an engine has, `trusting` last: `wallaroo run` mostly uses that."""
    return sorted(engine.capabilities().isolation)


class BrokenRuleError(Exception):
    """In a live run, something was not as a rule says.

    Args:
        rule: the rule's id.
        text: what happened.
        story: what had been done, step by step.
    """

    def __init__(self, rule: str, text: str, story: Sequence[str]) -> None:
        super().__init__(f"{rule}: {text}")
        self.rule = rule
        self.text = "\n".join([text, "what was done:", *[f"  {line}" for line in story]])


class Scenario:
    """An application, served by an engine; a context manager.

    Args:
        engine: the engine that serves.
        reference: the engine that says what must come out.
        application: which of `APPLICATIONS`.
        isolation: the mode.
        patience: seconds that any one thing may take.
        recovers: serve with a checkpoint, so that it can be killed and started again.
    """

    def __init__(
        self,
        engine: Engine,
        reference: Engine,
        application: int,
        isolation: Isolation,
        patience: float,
        *,
        recovers: bool,
    ) -> None:
        self.case = APPLICATIONS[application % len(APPLICATIONS)]
        self.touched: Counter[str] = Counter()
        self.story: list[str] = [
            f"serve application {application % len(APPLICATIONS)}, {isolation}"
            + ", with a checkpoint" * recovers
        ]
        self.recovers = recovers
        self._reference = reference
        self._patience = patience
        self._frames: list[Input] = []
        self._connections = 0  # made so far
        self._dropped = 0
        self._refusals = 0  # of headers, since the last start
        self._restarted = False
        self._before_kill = 0  # frames received before the last kill
        self._stopped = False
        self.senders: list[tuple[int, Sender]] = []
        self.sinks: dict[tuple[str, int], SinkPeer] = {
            (PIPELINES[index], number): SinkPeer()
            for index, pipeline in enumerate(self.case.pipelines)
            for number in range(len(pipeline.sinks))
        }
        self._checkpoint = Checkpoint() if recovers else None
        options = ServeOptions(
            isolation=isolation,
            stop_timeout=patience,
            options=self._checkpoint.options if self._checkpoint else {},
        )
        addresses: dict[tuple[str, int], Address] = {
            sink: peer.address for sink, peer in self.sinks.items()
        }
        self._handle: Handle = engine.serve(build(self.case, addresses), options)

    def __enter__(self) -> Scenario:
        return self

    def __exit__(self, *error: object) -> None:
        for _, sender in self.senders:
            sender.close()
        if not self._stopped:  # a check failed: let the server close what it has open, if it can
            self._handle.stop()
            self._handle.wait(_CLOSING)
        self._handle.kill()
        if self._checkpoint is not None:
            self._checkpoint.remove()
        for peer in self.sinks.values():
            peer.close()

    # -- steps -------------------------------------------------------------------------------

    def connect(self, pipeline: int) -> int:
        """Connect to a source and return the connection's number."""
        pipeline %= len(self.case.pipelines)
        sender = Sender(self._handle.addresses[PIPELINES[pipeline]], self._patience)
        self.senders.append((pipeline, sender))
        self._connections += 1
        self._tell(f"connection {len(self.senders) - 1} to {PIPELINES[pipeline]}")
        return len(self.senders) - 1

    def send(self, connection: int, payloads: Sequence[bytes], chunks: Sequence[int] = ()) -> None:
        """Send frames on a connection, in chunks, and wait until they are received."""
        pipeline, sender = self.senders[connection]
        data = b"".join([self._frame(pipeline, payload) for payload in payloads])
        self._tell(f"connection {connection} sends {list(payloads)!r} in chunks of {list(chunks)}")
        self._frames += [Input(pipeline, payload, connection) for payload in payloads]
        self._hand_over(sender, data, chunks)
        others = any(one.held for _, one in self.senders)
        if b"" in payloads and not chunks and not others:
            rule = "frame-2"
        else:
            rule = "frame-1" if chunks or self._connections == 1 else "frame-5"
        self._received(rule)
        if b"" in payloads:
            self.touched["frame-2"] += 1

    def begin(self, connection: int, payload: bytes, kept_back: int) -> None:
        """Send a frame without its last bytes."""
        pipeline, sender = self.senders[connection]
        data = self._frame(pipeline, payload)
        kept_back = 1 + kept_back % (len(data) - 1)
        self._hand_over(sender, data[:-kept_back])
        sender.held = data[-kept_back:]
        self._tell(f"connection {connection} sends {payload!r} but for {kept_back} bytes")

    def complete(self, connection: int, payload: bytes) -> None:
        """Send the last bytes of a frame that was begun."""
        pipeline, sender = self.senders[connection]
        self._tell(f"connection {connection} sends the rest of {payload!r}")
        self._frames.append(Input(pipeline, payload, connection))
        rest, sender.held = sender.held, b""
        self._hand_over(sender, rest)
        self._received("frame-1" if self._connections == 1 else "frame-5")

    def finish(self, connection: int) -> None:
        """Half-close a connection; inside a frame, that frame is dropped (frame-4)."""
        _, sender = self.senders.pop(connection)
        self._tell(f"connection {connection} half-closes{', inside a frame' * bool(sender.held)}")
        self._dropped += bool(sender.held)
        sender.finish()
        end = sender.end()
        sender.close()
        if end == "none":
            self._broken("frame-4", "the source does not close its side after a half-close")
        if end == "reset":
            self._broken("frame-4", "a connection is reset though all on it was received")
        if not self._restarted and self._handle.progress().received > len(self._frames):
            self._broken("frame-4", "an incomplete frame counts as received")
        self.touched["frame-4"] += 1

    def claim_too_much(self, connection: int) -> bool:
        """Send a header that claims too much: this connection is closed, at once (frame-3)."""
        pipeline, sender = self.senders[connection]
        try:
            claim = header(DECODERS[self.case.pipelines[pipeline].decoder], MAX_CLAIM)
        except OverflowError:  # its headers cannot claim that much
            return False
        self.senders.pop(connection)
        self._tell(f"connection {connection} sends a header that claims {MAX_CLAIM} bytes")
        self._dropped += 1
        self._hand_over(sender, claim)
        end = sender.end()
        sender.close()
        if end == "none":
            self._broken("frame-3", "the connection is not closed")
        self._refusals += 1
        self.touched["frame-3"] += 1
        self._not_in_order(end, "the connection of a refused header")
        return True

    def sink_goes(self, sink: int) -> None:
        """Let a sink go away, once it has read what there is."""
        name = list(self.sinks)[sink % len(self.sinks)]
        self.settle("sink-3")
        self.sinks[name].go_away()
        self._tell(f"sink {name} goes away")

    def sink_returns(self, sink: int) -> None:
        """Let a sink come back."""
        name = list(self.sinks)[sink % len(self.sinks)]
        self.sinks[name].come_back()
        self._tell(f"sink {name} is back")
        self.touched["sink-3"] += 1
        self.settle("sink-3")
        if self._restarted or not all(peer.present for peer in self.sinks.values()):
            return
        if not wait_until(lambda: not self._handle.progress().pending, self._patience):
            pending = self._handle.progress().pending
            self._broken("sink-3", f"all outputs have come, and {pending} are still pending")

    def let_it_store(self) -> None:
        """Wait until the server has probably stored its state."""
        time.sleep(STORED)
        self._tell(f"{STORED:g} s pass")

    def kill_and_restart(self) -> None:
        """Kill the server while it works, and start it again from the same checkpoint."""
        self._tell("kill and restart")
        self._kill()
        self._handle = self._handle.restart()
        self._refusals, self._restarted = 0, True
        self._before_kill = len(self._frames)
        self.touched["recover-1"] += 1
        self.touched["recover-2"] += 1

    def kill(self) -> None:
        """Kill the server for good."""
        self._tell("kill")
        self._kill()
        self._stopped = True

    def _kill(self) -> None:
        """Kill the server: no sender may see its connection closed in order (frame-4)."""
        self._handle.kill()
        ends = [sender.end() for _, sender in self.senders]
        for _, sender in self.senders:
            sender.close()
        self.senders.clear()
        for end in ends:
            self._not_in_order(end, "a connection that was open when the server was killed")

    def _not_in_order(self, end: str, which: str) -> None:
        self.touched["frame-4"] += 1
        if end == "in order":
            self._broken("frame-4", f"{which} is closed as if all was taken, not reset")

    def stop(self) -> None:
        """Stop, and compare all that came out with what the reference says."""
        for peer in self.sinks.values():
            peer.come_back()
        for connection in reversed(range(len(self.senders))):
            self.finish(connection)
        self._tell("stop")
        self._handle.stop()
        summary = self._handle.wait(self._patience)
        self._stopped = summary is not None
        if summary is None:
            self._broken("stop-1", f"it has not stopped within {self._patience:g} s")
        if summary.exit_code:
            self._broken("stop-1", f"exit code {summary.exit_code}: {summary.problem}")
        if not self._restarted:
            self._agree("stop-1", "frames received", len(self._frames), summary.received)
            dropped = sum(summary.dropped_frames.values())
            unfinished = self._dropped - self._refusals
            # If the numbers are equal, they do not tell which outputs are missing.
            rule = "frame-3" if dropped == unfinished != self._refusals else "frame-4"
            self._agree(rule, "frames dropped", self._dropped, summary.dropped_frames)
        # The engine counts bytes that the kernel has taken; our reader may not have read them yet.
        expected = self._expected()
        wait_until(
            lambda: (
                not any(
                    missing(expected[sink], peer.stretches) for sink, peer in self.sinks.items()
                )
            ),
            _READING,
        )
        self._compare_outputs("sink-3" if self.touched["sink-3"] else "order-2")
        self.touched["stop-1"] += 1
        self.touched["order-2"] += 1

    # -- what must hold ----------------------------------------------------------------------

    def _frame(self, pipeline: int, payload: bytes) -> bytes:
        return header(DECODERS[self.case.pipelines[pipeline].decoder], len(payload)) + payload

    def _hand_over(self, sender: Sender, data: bytes, chunks: Sequence[int] = ()) -> None:
        """Send on a connection, which must be open."""
        try:
            sender.send(data, chunks)
        except OSError as error:
            rule = "frame-3" if self._refusals else "frame-5"
            self._broken(rule, f"a connection ended that was to go on: {error}")

    def _received(self, rule: str) -> None:
        """Wait until every frame sent has been received; after a restart they are not counted."""
        wanted = len(self._frames)
        if self._restarted:
            self.settle(rule)
        elif not wait_until(lambda: self._handle.progress().received >= wanted, self._patience):
            received = self._handle.progress().received
            if self._refusals and not all(sender.is_open() for _, sender in self.senders):
                rule = "frame-3"  # only the refused connection may be closed
            self._broken(rule, f"{received} frames received, {wanted} were sent")
        self.touched[rule] += 1

    def settle(self, rule: str) -> None:
        """Wait until every sink that is there has what it must get."""
        expected = self._expected()
        for sink, peer in self.sinks.items():
            if peer.present and not wait_until(
                lambda sink=sink, peer=peer: not missing(expected[sink], peer.stretches),  # type: ignore[misc]
                self._patience,
            ):
                self._compare_outputs(rule)

    def _expected(self, frames: int | None = None) -> dict[tuple[str, int], tuple[bytes, ...]]:
        whole = replace(self.case, inputs=tuple(self._frames[:frames]))
        return dict(self._reference.run(engine_case(whole)).outputs)

    def _compare_outputs(self, rule: str) -> None:
        for sink, outputs in self._expected().items():
            stretches = self.sinks[sink].stretches
            problem = missing(outputs, stretches)
            if problem:
                if self._restarted:
                    before = self._expected(self._before_kill)[sink]
                    rule = recovery_rule(before, outputs[len(before) :], stretches)
                self._broken(rule, f"sink {sink}: {problem}")

    def _agree(self, rule: str, what: str, wanted: int, counted: object) -> None:
        found = sum(counted.values()) if isinstance(counted, dict) else None
        if found is not None and found != wanted:
            self._broken(rule, f"{what}: {found} counted, {wanted} there were")

    def _tell(self, step: str) -> None:
        self.story.append(step)

    def _broken(self, rule: str, text: str) -> NoReturn:
        raise BrokenRuleError(rule, text, self.story)
