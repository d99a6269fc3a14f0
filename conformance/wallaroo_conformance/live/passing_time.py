"""A live run in which time alone makes something due: windows of arrival time, and no more input.

Nobody knows beforehand which window a frame comes into, so no reference says what must come out.
But each frame must come out of each step once, from a window that was due.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

import wallaroo
from wallaroo.engine import Engine, Handle, Isolation, ServeOptions
from wallaroo.errors import UnsupportedTopology
from wallaroo.topology import Application
from wallaroo.windows import Windows
from wallaroo_conformance.live.checkpoint import Checkpoint
from wallaroo_conformance.live.peers import Sender, SinkPeer, header, wait_until
from wallaroo_conformance.live.run import plain
from wallaroo_conformance.live.scenario import BrokenRuleError

_SHORT = wallaroo.milliseconds(200)
_LONG = wallaroo.days(40_000)  # such a window is open until the year 2079
_WINDOWS: dict[str, Windows] = {
    "ranges": wallaroo.range_windows(_SHORT),
    "sessions": wallaroo.session_windows(_SHORT),
    "counts": wallaroo.count_windows(1_000).with_timeout(_SHORT),
    "never": wallaroo.range_windows(_LONG),
}
_FIRING = ("ranges", "sessions", "counts")
_PAYLOADS = (b"a1", b"b1", b"a2", b"c1", b"b2", b"a3")
_CLOSING = 2.0  # seconds that a server has for a stop when something broke


@wallaroo.key_extractor
def _letter(payload: bytes) -> bytes:
    return payload[:1]


class _Gathered:
    """Keeps a window's payloads."""

    def __init__(self, name: str) -> None:
        self._name = name

    def name(self) -> str:
        return self._name

    def initial_accumulator(self) -> list[bytes]:
        return []

    def update(self, payload: bytes, payloads: list[bytes]) -> list[bytes]:
        return [*payloads, payload]

    def combine(self, earlier: list[bytes], later: list[bytes]) -> list[bytes]:
        return [*earlier, *later]

    def output(self, key: bytes, payloads: list[bytes], window: Any) -> bytes:
        return b"%d %d %s\n" % (window.start, window.end, b",".join(payloads))


@wallaroo.encoder
def _line(line: bytes) -> bytes:
    return line


def what_time_does(
    engine: Engine, reference: Engine, isolation: Isolation, patience: float
) -> Counter[str]:
    """Let windows fire because time passes, also after a kill, and stop; return the rules."""
    del reference
    if refusal(engine):
        return Counter()
    peers = {name: SinkPeer() for name in _WINDOWS}
    try:
        application = _application({name: peer.address for name, peer in peers.items()})
        recovers = engine.capabilities().recovery
        _Passing(engine, application, peers, patience).run(isolation, recovers=recovers)
    finally:
        for peer in peers.values():
            peer.close()
    return Counter(["time-1", "time-5", *["recover-1"] * recovers])


def refusal(engine: Engine) -> str:
    """Return why the engine does not run windows; empty: it does."""
    try:
        engine.check(_application(dict.fromkeys(_WINDOWS, ("127.0.0.1", 1))))
    except UnsupportedTopology as refused:
        return f"it refuses the application: {refused}"
    return ""


def _application(addresses: Mapping[str, tuple[str, int]]) -> Application:
    source = wallaroo.source("times", wallaroo.TCPSourceConfig("127.0.0.1", 0, plain))
    keyed = source.key_by(_letter)
    return wallaroo.build_application(
        "passing time",
        *[
            keyed.to(windows.over(_Gathered(name))).to_sink(
                wallaroo.TCPSinkConfig(*addresses[name], _line)
            )
            for name, windows in _WINDOWS.items()
        ],
    )


class _Passing:
    """The run."""

    def __init__(
        self,
        engine: Engine,
        application: Application,
        peers: dict[str, SinkPeer],
        patience: float,
    ) -> None:
        self._engine = engine
        self._application = application
        self._peers = peers
        self._patience = patience
        self._handle: Handle
        self._taken: dict[bytes, int] = {}  # a time at which each payload had been received
        self._story: list[str] = [f"windows of {_SHORT // 10**6} ms, by arrival time"]

    def run(self, isolation: Isolation, *, recovers: bool) -> None:
        """Send, let time pass, and stop; where it recovers, also with a checkpoint and a kill."""
        with self._served(isolation, {}):
            sent = [self._send("1")]
            self._all_fire("time-1", sent)
            self._stop(lost=sent)
        if not recovers:
            return
        checkpoint = Checkpoint()
        try:
            with self._served(isolation, checkpoint.options):
                sent = [self._send("2")]
                self._all_fire("time-1", sent)
                sent.append(self._send("3"))
                self._story.append("kill and restart; nothing is sent any more")
                self._handle.kill()
                self._handle = self._handle.restart()
                self._all_fire("recover-1", sent)
                self._stop(lost=[])
        finally:
            checkpoint.remove()

    @contextmanager
    def _served(self, isolation: Isolation, serving: Mapping[str, Any]) -> Iterator[None]:
        """Serve; whatever happens, nothing of it is left."""
        self._story.append("serve with a checkpoint" if serving else "serve")
        options = ServeOptions(
            isolation=isolation, stop_timeout=self._patience, options=dict(serving)
        )
        self._handle = self._engine.serve(self._application, options)
        try:
            yield
        finally:
            self._handle.stop()
            self._handle.wait(_CLOSING)
            self._handle.kill()

    def _send(self, which: str) -> list[bytes]:
        """Send frames, and wait until they are received; return the payloads."""
        payloads = [payload + which.encode() for payload in _PAYLOADS]
        self._story.append(f"send {payloads}, and no more")
        already = self._handle.progress().received
        sender = Sender(self._handle.addresses["times"], self._patience)
        try:
            data = [header(plain, len(payload)) + payload for payload in payloads]
            sender.send(b"".join(data))
            sender.finish()
            if (end := sender.end()) != "in order":  # which says that all was taken
                self._broken("frame-4", f"after a half-close the connection's end is {end}")
            wanted = already + len(payloads)
            if not wait_until(lambda: self._handle.progress().received >= wanted, self._patience):
                self._broken("time-1", f"{self._handle.progress().received} frames received")
            self._taken |= dict.fromkeys(payloads, time.time_ns())
        finally:
            sender.close()
        return payloads

    def _all_fire(self, rule: str, sent: Sequence[Sequence[bytes]]) -> None:
        """Wait until every frame has come out of every step that fires."""
        wanted = {payload for payloads in sent for payload in payloads}
        for name in _FIRING:

            def all_came(name: str = name) -> bool:
                return self._came(name) >= wanted

            if not wait_until(all_came, self._patience):
                missing = sorted(wanted - self._came(name))
                self._broken(rule, f"{name}: {missing} have come out of no window")
            stretches = self._peers[name].stretches
            now = time.time_ns()
            for stretch in stretches:
                self._judge(rule, name, stretch, now)

    def _came(self, name: str) -> set[bytes]:
        return {
            payload
            for stretch in self._peers[name].stretches
            for line in _lines(stretch)
            for payload in line[2]
        }

    def _judge(self, rule: str, name: str, stretch: bytes, now: int) -> None:
        """Look at what one connection brought: each frame once, in a window that was due.

        No window begins after its frames were received: they keep their arrival times (recover-1).
        """
        seen: Counter[bytes] = Counter()
        for start, end, payloads in _lines(stretch):
            seen.update(payloads)
            due = start + _SHORT if name == "counts" else end
            received = min([self._taken.get(payload, now) for payload in payloads])
            if start > received:
                shown = f"{name}: the window of {payloads} begins at {start}"
                self._broken(rule, f"{shown}, and they were received by {received}")
            if due > now:
                shown = f"{name}: the window of {payloads} from {start} to {end}"
                self._broken("time-1", f"{shown} has fired, and it is {now} only")
        if twice := [payload for payload, number in seen.items() if number > 1]:
            self._broken(rule, f"{name}: {twice} came out of several windows")

    def _stop(self, *, lost: Sequence[Sequence[bytes]]) -> None:
        """Stop: windows that are not due do not fire, and those that are lost count (time-5).

        Args:
            lost: the payloads in open windows that no checkpoint keeps.
        """
        self._story.append("stop")
        self._handle.stop()
        summary = self._handle.wait(self._patience)
        if summary is None:
            self._broken("stop-1", f"it has not stopped within {self._patience:g} s")
        never = self._peers["never"]
        wait_until(lambda: not never.connections, self._patience)  # all is read that it brought
        if fired := never.stretches:
            self._broken("time-5", f"a window that ends in 2079 has fired: {fired}")
        keys = len({payload[:1] for payloads in lost for payload in payloads})
        if summary.open_windows != keys:
            counted = summary.open_windows
            self._broken("time-5", f"{counted} open windows are counted, {keys} are lost")

    def _broken(self, rule: str, text: str) -> NoReturn:
        raise BrokenRuleError(rule, text, self._story)


def _lines(stretch: bytes) -> list[tuple[int, int, list[bytes]]]:
    """Return start, end and payloads of the windows on a connection, without a cut-off last one."""
    found = []
    for line in stretch.split(b"\n")[:-1]:
        start, end, payloads = line.split(b" ")
        found.append((int(start), int(end), payloads.split(b",")))
    return found
