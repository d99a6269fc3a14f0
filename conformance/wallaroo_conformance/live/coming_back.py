"""A live run that is killed while windows are open and a generator has more to give (recover-1).

Event times are in the frames, so what must come of them does not depend on when they arrive.
"""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, NoReturn

import wallaroo
from wallaroo.engine import Case, Engine, Handle, Isolation, ServeOptions
from wallaroo.errors import UnsupportedTopology
from wallaroo.topology import Application, SinkId
from wallaroo.windows import Windows
from wallaroo_conformance.cases.timed.aggregations import Texts
from wallaroo_conformance.cases.timed.operators import (
    ByLetter,
    line,
    message,
    own_time,
    state_computation,
)
from wallaroo_conformance.live.checkpoint import Checkpoint
from wallaroo_conformance.live.peers import Sender, SinkPeer, header, wait_until
from wallaroo_conformance.live.scenario import BrokenRuleError
from wallaroo_conformance.live.stretches import missing, recovery_rule

_HOST = "127.0.0.1"
_FRAMES, _NUMBERS = "frames", "numbers"
_WINDOWS: tuple[Windows, ...] = (
    wallaroo.range_windows(10).with_slide(4),
    wallaroo.session_windows(5).with_delay(5),
    wallaroo.count_windows(3),
)
_ROUNDS = (
    ("a 5 0", "b 9 1", "a 3 2", "c 4 3", "b 17 4"),
    ("a 14 5", "b 12 6", "c 24 7"),
    ("c 19 8", "a 31 9", "b 23 10", "a 70 11"),
)
"""Frames before the first kill, before the second, and behind it. Some are out of order, and each
kill leaves windows open that hold messages."""
_LAST = 200
_ALL_NUMBERS = [b"%d\n" % number for number in range(1, _LAST + 1)]
_PAUSE = 0.005  # seconds that the generator takes for a number, so that kills come in between
_FIRST = 10  # bytes of numbers that have come before a kill


class _Upwards:
    def initial_value(self) -> Any:
        return 1

    def apply(self, last: Any) -> Any:
        time.sleep(_PAUSE)
        return last + 1 if last < _LAST else None


@wallaroo.encoder
def _number(message: Any) -> Any:
    return f"{message}\n"


def what_outlives_a_kill(
    engine: Engine, reference: Engine, isolation: Isolation, patience: float
) -> Counter[str]:
    """Kill the server twice; windows, states and a generator go on. Return the rules.

    An engine that does not claim to recover, or refuses such an application, is not asked.
    """
    if not engine.capabilities().recovery:
        return Counter()
    with _peers() as peers:
        application = _application(peers)
        try:
            engine.check(application)
        except UnsupportedTopology:
            return Counter()
        served = _Served(engine, reference, application, peers, isolation, patience)
        with contextlib.closing(served):
            for frames in _ROUNDS[:-1]:
                served.send(frames)
                served.kill_and_restart()
            served.send(_ROUNDS[-1])
            served.generated_all()
    return Counter(["recover-1", "recover-2"])


@contextlib.contextmanager
def _peers() -> Iterator[dict[SinkId, SinkPeer]]:
    sinks = [*[(_FRAMES, number) for number in range(len(_WINDOWS) + 1)], (_NUMBERS, 0)]
    peers = {sink: SinkPeer() for sink in sinks}
    try:
        yield peers
    finally:
        for peer in peers.values():
            peer.close()


def _application(peers: Mapping[SinkId, SinkPeer]) -> Application:
    """Return windows of every kind and a state over one source, and a generator."""
    config = wallaroo.TCPSourceConfig(_HOST, 0, message, event_time=own_time)
    keyed: Any = wallaroo.source(_FRAMES, config).key_by(ByLetter("by letter"))
    steps = [windows.over(Texts(f"texts {number}")) for number, windows in enumerate(_WINDOWS)]
    steps.append(state_computation("remember", "remember", "remembered", wallaroo.days(1)))
    ends = [
        keyed.to(step).to_sink(wallaroo.TCPSinkConfig(*peers[_FRAMES, number].address, line))
        for number, step in enumerate(steps)
    ]
    numbers: Any = wallaroo.source(_NUMBERS, wallaroo.GenSourceConfig(_Upwards()))
    sink = wallaroo.TCPSinkConfig(*peers[_NUMBERS, 0].address, _number)
    return wallaroo.build_application("edges", *ends, numbers.to_sink(sink))


class _Served:
    """The application, served; `close` it."""

    def __init__(
        self,
        engine: Engine,
        reference: Engine,
        application: Application,
        peers: Mapping[SinkId, SinkPeer],
        isolation: Isolation,
        patience: float,
    ) -> None:
        self._reference = reference
        self._application = application
        self._peers = peers
        self._patience = patience
        self._log: list[tuple[str, bytes]] = []
        self._before = 0  # frames sent before the last kill
        self._story = ["serve windows by event time, a state and a generator, with a checkpoint"]
        self._checkpoint = Checkpoint()
        options = ServeOptions(
            isolation=isolation, stop_timeout=patience, options=self._checkpoint.options
        )
        self._handle: Handle = engine.serve(application, options)

    def close(self) -> None:
        """End the run."""
        self._handle.kill()
        self._checkpoint.remove()

    def send(self, texts: tuple[str, ...]) -> None:
        """Send frames, and wait until they are acknowledged and their outputs have come."""
        self._story.append(f"send {texts}, and half-close")
        self._log += [(_FRAMES, text.encode()) for text in texts]
        sender = Sender(self._handle.addresses[_FRAMES], self._patience)
        with contextlib.closing(sender):
            try:
                for text in texts:
                    sender.send(header(message, len(text)) + text.encode())
                sender.finish()
            except OSError as error:
                self._broken("frame-5", f"the connection has ended while frames were sent: {error}")
            if (end := sender.end()) != "in order":
                self._broken("frame-4", f"after a half-close the connection's end is {end}")
        wanted, earlier = self._outputs(len(self._log)), self._outputs(self._before)
        for sink, outputs in wanted.items():
            self._settle(sink, earlier.get(sink, ()), outputs)

    def kill_and_restart(self) -> None:
        """Kill the server while the generator is at work, and start it again."""
        peer = self._peers[_NUMBERS, 0]
        enough = min(peer.size + _FIRST, sum(map(len, _ALL_NUMBERS)))  # a slow engine has them all
        if not wait_until(lambda: peer.size >= enough, self._patience):
            self._broken("order-2", f"the generator's numbers do not come: {peer.stretches}")
        self._story.append("kill and restart")
        self._handle.kill()
        self._before = len(self._log)
        self._handle = self._handle.restart()

    def generated_all(self) -> None:
        """Wait until the generator's sink has all its numbers."""
        self._settle((_NUMBERS, 0), (), _ALL_NUMBERS)

    def _outputs(self, frames: int) -> dict[SinkId, tuple[bytes, ...]]:
        found = self._reference.run(Case(self._application, self._log[:frames])).outputs
        return {sink: outputs for sink, outputs in found.items() if sink[0] == _FRAMES}

    def _settle(self, sink: SinkId, before: Any, outputs: Any) -> None:
        peer = self._peers[sink]
        wait_until(lambda: not missing(outputs, peer.stretches), self._patience)
        if problem := missing(outputs, peer.stretches):
            rule = recovery_rule(before, outputs[len(before) :], peer.stretches)
            self._broken(rule if self._before else "order-2", f"sink {sink}: {problem}")

    def _broken(self, rule: str, text: str) -> NoReturn:
        raise BrokenRuleError(rule, text, self._story)
