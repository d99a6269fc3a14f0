"""The stateful part: steps of a live run in any order, chosen by Hypothesis."""

from __future__ import annotations

from collections import Counter

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from wallaroo.engine import Engine
from wallaroo_conformance.live.scenario import Scenario, modes_of

PAYLOADS = (b"a", b"b", b"", b"ab", b"x", b"a b c", b"\xc3\xa9", b"k" * 300)
_MOST_CONNECTIONS = 4


class LiveMachine(RuleBasedStateMachine):
    """A live server and any sequence of steps; a subclass names the engine."""

    engine: Engine
    reference: Engine
    patience: float
    recovery: bool
    touched: Counter[str]

    def __init__(self) -> None:
        super().__init__()
        self.scenario: Scenario | None = None
        self._begun: dict[int, bytes] = {}

    @initialize(application=st.integers(0, 2), mode=st.integers(0, 1), recovers=st.booleans())
    def serve(self, application: int, mode: int, recovers: bool) -> None:
        """Serve one of the applications, with a checkpoint or without."""
        modes = modes_of(self.engine)
        isolation = modes[mode % len(modes)]
        self.scenario = Scenario(
            self.engine,
            self.reference,
            application,
            isolation,
            self.patience,
            recovers=recovers and self.recovery,
        )

    @property
    def live(self) -> Scenario:
        """The run."""
        assert self.scenario is not None
        return self.scenario

    @precondition(lambda self: self.scenario and len(self.live.senders) < _MOST_CONNECTIONS)
    @rule(pipeline=st.integers(0, 1))
    def connect(self, pipeline: int) -> None:
        """Open a connection."""
        self.live.connect(pipeline)

    @precondition(lambda self: self.scenario and self.live.senders)
    @rule(
        connection=st.integers(0, _MOST_CONNECTIONS - 1),
        numbers=st.lists(st.integers(0, len(PAYLOADS) - 1), min_size=1, max_size=3),
        chunks=st.lists(st.integers(1, 7), max_size=2),
    )
    def send(self, connection: int, numbers: list[int], chunks: list[int]) -> None:
        """Send frames, or the rest of one."""
        connection %= len(self.live.senders)
        sender = self.live.senders[connection][1]
        if sender.held:
            self.live.complete(connection, self._begun.pop(id(sender)))
        self.live.send(
            connection, [self._payload(connection, number) for number in numbers], chunks
        )

    @precondition(lambda self: self.scenario and self.live.senders)
    @rule(
        connection=st.integers(0, _MOST_CONNECTIONS - 1),
        number=st.integers(0, len(PAYLOADS) - 1),
        kept_back=st.integers(0, 9),
    )
    def begin(self, connection: int, number: int, kept_back: int) -> None:
        """Send the beginning of a frame."""
        connection %= len(self.live.senders)
        sender = self.live.senders[connection][1]
        if not sender.held:
            payload = self._payload(connection, number)
            self.live.begin(connection, payload, kept_back)
            self._begun[id(sender)] = payload

    @precondition(lambda self: self.scenario and self.live.senders)
    @rule(connection=st.integers(0, _MOST_CONNECTIONS - 1))
    def finish(self, connection: int) -> None:
        """Half-close a connection."""
        self.live.finish(connection % len(self.live.senders))

    @precondition(lambda self: self.scenario and self.live.senders)
    @rule(connection=st.integers(0, _MOST_CONNECTIONS - 1))
    def claim_too_much(self, connection: int) -> None:
        """Send a header that claims too much, unless a frame has been begun."""
        connection %= len(self.live.senders)
        if not self.live.senders[connection][1].held:
            self.live.claim_too_much(connection)

    @precondition(lambda self: self.scenario)
    @rule(sink=st.integers(0, 1), back=st.booleans())
    def sink(self, sink: int, back: bool) -> None:
        """Let a sink go away or come back."""
        if back:
            self.live.sink_returns(sink)
        else:
            self.live.sink_goes(sink)

    @precondition(lambda self: self.scenario and self.scenario.recovers)
    @rule()
    def kill_and_restart(self) -> None:
        """Kill the server and start it again."""
        self.live.kill_and_restart()

    def teardown(self) -> None:
        """Stop, compare, and count which rules this run has touched."""
        if self.scenario is not None:
            with self.scenario:
                self.scenario.stop()
                self.touched.update(self.scenario.touched)

    def _payload(self, connection: int, number: int) -> bytes:
        """Return a payload that the source's headers are long enough for."""
        return PAYLOADS[number]
