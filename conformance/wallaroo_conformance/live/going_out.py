"""A live run with special sinks: they read late, break off, share an address or come late.

One sink gets many outputs for one message, which is special for the engine.
"""

from __future__ import annotations

import contextlib
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import wallaroo
from wallaroo.engine import Engine, Isolation, ServeOptions
from wallaroo_conformance.live.peers import SinkPeer, wait_until
from wallaroo_conformance.live.run import RECEIVE_BUFFER, Pipe, Run

_LARGE = 1 << 16  # bytes of a payload
_LOGGED = 128  # large frames after which the slow sink of an engine that always logs begins to read
_TOO_MANY = (
    1_024  # large frames: more than an engine may keep in memory for a sink that reads nothing
)
_STANDSTILL = 0.3  # after so many seconds without a new frame, an engine is waiting for its sink

_LATE = 2  # outputs for the sink that comes back during a stop

_ODD = 9_001  # bytes of a payload: no buffer's size is a multiple of its outputs' size
_ODD_FRAMES = 3
# Bytes of a payload that the system of a sink does not take whole while the sink does not read: if
# the connection breaks then, it breaks in the middle of an output, even if the engine hands on one
# output at a time.
_TOO_LONG = 4 * RECEIVE_BUFFER + 1
_MUCH = b"much"
_ITEMS = 300  # that one message gives: more bytes than an engine may hand on at once
_ITEM = 4_000  # bytes of each
_CALM = 150  # frames before it, after which an engine may take many at once

_FULL = 0.1  # seconds after which a receive buffer that has not grown is full


@wallaroo.computation_multi(name="multiply")
def _multiply(message: Any) -> Any:
    if message != _MUCH:
        return [message]
    return [b"%d." % number + b"m" * _ITEM for number in range(_ITEMS)]


def what_sinks_do(
    engine: Engine, reference: Engine, isolation: Isolation, patience: float
) -> Counter[str]:
    """Let sinks read late, break off, share an address, come during the stop; return the rules."""
    pipes = {
        "together": Pipe(sinks=2, one_address=True),
        "much": Pipe(steps=(_multiply,)),
        "late": Pipe(),
        "broken": Pipe(),
        "bulk": Pipe(),
    }
    most = _LOGGED if engine.capabilities().always_logs else _TOO_MANY
    options = ServeOptions(isolation=isolation, stop_timeout=patience)
    with Run(engine, reference, pipes, options, patience) as run:
        run.send("sink-2", "together", [b"a", b"", b"b"])
        run.on_connections_of_their_own("together")
        calm = [b"%d" % number for number in range(_CALM)]
        run.send("order-2", "much", [*calm, _MUCH, b"a", _MUCH, b"b", b"c"])
        run.delivered("order-2")
        _breaks_off_twice(run)
        with _full(run, most):
            run.peers["bulk", 0].read_on()
        run.received("sink-3")
        run.delivered("sink-3")
        # Only now: while one sink is away, an engine may let the others wait.
        run.peers["late", 0].go_away()
        run.note("the sink of late is away")
        run.send("sink-3", "late", [b"early"] * _LATE)
        _stop_in_the_midst(run, most)
        run.delivered("sink-3", over=True)
        run.on_connections_of_their_own("together")
    return Counter(["sink-2", "sink-3", "order-2", "stop-1"])


def _breaks_off_twice(run: Run) -> None:
    """Reset the sink's connection in the middle of an output, and the next one too (sink-3)."""
    peer = run.peers["broken", 0]
    peer.hold()
    odd = [b"%05d" % number * (_ODD // 5) + b"." for number in range(_ODD_FRAMES)]
    payloads = [*odd, b"a" * _TOO_LONG, *odd, b"b" * _TOO_LONG, *odd]
    run.send("sink-3", "broken", payloads)
    for _ in range(2):
        _wait_until_full(peer, run.patience)
        run.note("the sink of broken resets its connection in the midst of an output")
        peer.break_off()
    peer.read_on()
    run.delivered("sink-3")


@contextlib.contextmanager
def _full(run: Run, most: int) -> Iterator[None]:
    """Send to a sink that reads nothing, until the engine reads nothing either.

    Then the block runs; in it, the sink must read again.

    Args:
        run: the run.
        most: large frames that are sent; an engine must not take `_TOO_MANY`.
    """
    run.note(f"send bulk payloads of {_LARGE} bytes; its sink reads nothing until nobody reads")
    peer = run.peers["bulk", 0]
    peer.hold()
    sender = run.connect("bulk")
    before, enough = len(run.log), threading.Event()

    def feed() -> None:
        for number in range(most):
            payload = number.to_bytes(4, "big") * (_LARGE // 4)
            run.log.append(("bulk", payload))
            with contextlib.suppress(OSError):  # a stop may close the connection
                sender.send(run.framed("bulk", [payload]))
            if enough.is_set():
                return

    def received() -> int:
        return run.handle.progress().received - before

    thread = threading.Thread(target=feed, daemon=True)
    thread.start()
    _wait_for_a_standstill(received, most, run.patience, _STANDSTILL)
    enough.set()
    if most == _TOO_MANY <= received():
        run.broken("sink-3", f"{most * _LARGE >> 20} MiB were read for a sink that reads nothing")
    yield
    thread.join(run.patience)


def _stop_in_the_midst(run: Run, most: int) -> None:
    """Stop while frames wait in the engine and in the system, and two sinks are slow.

    Bytes that a sender has sent and the system has acknowledged count as received. Only the summary
    can say how many of those that `_full` sends this is.
    """
    with _full(run, most):
        sender = run.connect("together")
        payloads = [b"%d" % number for number in range(10)]
        run.note("send together 10 frames and stop at once; late's and bulk's sinks come back")
        sender.send(run.framed("together", payloads))
        run.handle.stop()
        run.peers["bulk", 0].read_on()
        _comes_during_the_stop(run, run.peers["late", 0], _LATE)
        summary = run.ended("stop-1", 0)
    run.log += [("together", payload) for payload in payloads]
    bulk = [entry for entry in run.log if entry[0] == "bulk"]
    others = [entry for entry in run.log if entry[0] != "bulk"]
    run.log = others + bulk[: summary.received.get("bulk", 0)]
    run.counted_all(summary)


def _comes_during_the_stop(run: Run, peer: SinkPeer, outputs: int) -> None:
    """Let a sink come back when only its outputs are pending; a stop waits (sink-3)."""

    def over() -> bool:
        return run.handle.wait(0) is not None

    wait_until(lambda: run.handle.progress().pending == outputs or over(), run.patience)
    peer.come_back()
    wait_until(lambda: bool(peer.size) or over(), run.patience)
    if not peer.size and not over():
        run.broken("sink-3", "the sink of late is back, and nobody has connected to it")


def _wait_until_full(peer: SinkPeer, patience: float) -> None:
    """Wait until the system takes no more for a sink that does not read."""
    wait_until(lambda: peer.unread() >= RECEIVE_BUFFER // 2, patience)
    _wait_for_a_standstill(peer.unread, 1 << 62, patience, _FULL)


def _wait_for_a_standstill(
    count: Callable[[], int], enough: int, patience: float, standstill: float
) -> None:
    """Wait until `count()` is `enough`, or no longer grows."""
    seen = -1
    while (now := count()) < enough and now > seen:
        seen = now
        wait_until(lambda seen=seen: count() > seen, min(standstill, patience))  # type: ignore[misc]
