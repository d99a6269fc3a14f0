"""Steps of a live run in any order, chosen by Hypothesis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from wallaroo.engine import Isolation
from wallaroo_conformance.live.applications import BAD, PLAIN, LiveApplication
from wallaroo_conformance.live.peers import Sender
from wallaroo_conformance.live.run import LiveRun, Setting

_PAYLOADS = (b"a", b"b", b"", b"ab", BAD, b"a b c", b"\xc3\xa9", b"k" * 300)
_MOST_CONNECTIONS = 4

_connection = st.integers(0, _MOST_CONNECTIONS - 1)
_payload = st.sampled_from(_PAYLOADS)


class RandomSteps(RuleBasedStateMachine):
    """A live server and any sequence of steps; a subclass names the engine and its modes."""

    setting: Setting
    modes: Sequence[Isolation]

    def __init__(self) -> None:
        super().__init__()
        self.run: LiveRun | None = None

    @initialize(application=st.sampled_from(PLAIN), mode=st.integers(0, 1), recovers=st.booleans())
    def serve(self, application: LiveApplication, mode: int, recovers: bool) -> None:
        """Serve one of the applications, with a checkpoint or without."""
        setting = replace(self.setting, isolation=self.modes[mode % len(self.modes)])
        recovers = recovers and setting.engine.capabilities().recovery
        self.run = LiveRun(setting, application, recovers=recovers)

    @property
    def live(self) -> LiveRun:
        """The run."""
        assert self.run is not None
        return self.run

    def _sender(self, connection: int) -> Sender:
        return self.live.senders[connection % len(self.live.senders)]

    @precondition(lambda self: self.run and len(self.live.senders) < _MOST_CONNECTIONS)
    @rule(pipeline=st.integers(0, 1))
    def connect(self, pipeline: int) -> None:
        """Open a connection."""
        self.live.connect(self.live.sources[pipeline % len(self.live.sources)])

    @precondition(lambda self: self.run and self.live.senders)
    @rule(
        connection=_connection,
        payloads=st.lists(_payload, min_size=1, max_size=3),
        pieces=st.lists(st.integers(1, 7), max_size=2),
    )
    def send(self, connection: int, payloads: list[bytes], pieces: list[int]) -> None:
        """Send frames, behind the rest of one that was begun."""
        sender = self._sender(connection)
        if sender.kept_back:
            self.live.complete(sender)
        self.live.send(sender, payloads, pieces)

    @precondition(lambda self: self.run and self.live.senders)
    @rule(connection=_connection, payload=_payload, kept_back=st.integers(0, 9))
    def begin(self, connection: int, payload: bytes, kept_back: int) -> None:
        """Send the beginning of a frame."""
        sender = self._sender(connection)
        if not sender.kept_back:
            self.live.begin(sender, payload, kept_back)

    @precondition(lambda self: self.run and self.live.senders)
    @rule(connection=_connection)
    def finish(self, connection: int) -> None:
        """Half-close a connection."""
        self.live.finish(self._sender(connection))

    @precondition(lambda self: self.run and self.live.senders)
    @rule(connection=_connection)
    def refuse(self, connection: int) -> None:
        """Send a header that claims too much, unless it is too short or a frame has been begun."""
        sender = self._sender(connection)
        try:
            claim = self.live.claim(sender.source)
        except OverflowError:
            return
        if not sender.kept_back:
            self.live.refuse(sender, claim)

    @precondition(lambda self: self.run)
    @rule(number=st.integers(0, 1), back=st.booleans())
    def sink(self, number: int, back: bool) -> None:
        """Let a sink go away or come back."""
        sink = list(self.live.peers)[number]
        if back:
            self.live.sink_returns(sink)
        else:
            self.live.sink_goes(sink)

    @precondition(lambda self: self.run and self.live.recovers)
    @rule()
    def kill_and_restart(self) -> None:
        """Kill the server and start it again."""
        self.live.kill_and_restart()

    def teardown(self) -> None:
        """Stop, and compare all that came out."""
        if self.run is not None:
            with self.run:
                self.run.finished()
