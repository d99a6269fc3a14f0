"""The live runs of a check: for each an application, a script of steps, and the rules it is about.

What must come out is what the reference says of the frames that were sent. Where it cannot say so
beforehand, as with windows by arrival time, the script compares.
"""

from __future__ import annotations

import contextlib
import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from wallaroo.frames import DEFAULT_MAX_SIZE
from wallaroo.trace import NOT_COMPARED
from wallaroo_conformance.live import applications as apps
from wallaroo_conformance.live.checkpoints import mixes, old_states
from wallaroo_conformance.live.peers import RECEIVE_BUFFER, SinkPeer, wait_until
from wallaroo_conformance.live.run import EARLIER_LETTER, LiveRun, Scenario
from wallaroo_conformance.live.windows import kills_with_open_windows, time_passes

_BYTES = ("frame-1", "frame-2", "frame-3", "frame-4", "frame-5")


# -- special input -----------------------------------------------------------------------------

_MANY = 3_000  # frames in one piece, more than an engine may process at once
_CONNECTIONS = 30  # one after the other, two frames on each
_READ = 1 << 16  # bytes that engines often read at a time, or a part or a multiple of them
_READS = 3
_AROUND = 1 << 12  # bytes before and behind the end of such a read, all of them headers
_SHIFTS = (1, 4)  # bytes by which headers are shifted, so that an end of a read is inside one


def _special_input(run: LiveRun) -> None:
    run.send("one", [b"", b"a", b"\xff" * 255], [1], rules=("frame-1", "frame-2"))
    run.send("two", [b"", b"b" * 256, b"c" * 65_535], [30_000], rules=("frame-1", "frame-2"))
    for shift in _SHIFTS:
        run.send("eight", _headers_where_reads_end(shift), rules=("frame-1",))
    run.send("signed", [b"d" * apps.MAX_SIZE], rules=("frame-3",))
    other = run.send("signed", [b"before"])
    behind = run.framed("signed", [b"behind", b""])
    for claim in (
        run.framed("signed", [b"e" * (apps.MAX_SIZE + 1)]),
        (-1).to_bytes(4, "big", signed=True) + b"f",
        run.claim("signed"),
    ):
        run.refuse(run.connect("signed"), claim + behind, [b"good", b""])
        run.send(other, [b"go on"], rules=("frame-3",))
    run.delivered(("frame-3", "frame-5"))
    for source in ("two", "many"):
        size = len(run.framed(source, [b"lost"]))
        for place in (1, size - 5, size - 4, size - 1):  # in the header, and behind it
            sender = run.connect(source)
            run.begin(sender, b"lost", size - place - 1, [b"kept"])
            run.finish(sender)
        sender = run.connect(source)
        run.begin(sender, b"lost", 0, [b"kept"])
        run.reset(sender)
    for number in range(_CONNECTIONS):
        run.finish(run.send("many", [b"%d" % number, b""], rules=("frame-5",)))
    run.send("many", [b"large" + bytes(DEFAULT_MAX_SIZE - 5)], rules=("frame-3",))
    # A half-close right behind many frames: the answer comes when all are received.
    sender = run.connect("many")
    run.hand_over(sender, [b"%d" % number for number in range(_MANY)])
    run.finish(sender)
    run.delivered(("order-2", "frame-5"))
    run.finished()


def _headers_where_reads_end(shift: int) -> list[bytes]:
    """Return payloads, with headers of 8 bytes, so that an engine's reads end inside a header.

    An engine that reads from a full connection gets as much as its buffer holds. Around the likely
    ends of such reads there are empty frames only, whose headers do not begin at multiples of 8.
    So it does not matter where between them a read ends.
    """
    payloads = [b"s" * shift]
    position = 8 + shift
    for number in range(1, _READS + 1):
        large = number * _READ - _AROUND - position - 8
        payloads.append(b"l" * (large + shift))
        payloads += [b""] * (2 * _AROUND // 8)
        position = number * _READ + _AROUND + shift
    return payloads


# -- special sinks -----------------------------------------------------------------------------

_LARGE = 1 << 16  # bytes of a payload
_LOGGED = 128  # large frames after which the slow sink of an engine that always logs begins to read
_TOO_MANY = 1_024  # large frames: more than an engine may keep for a sink that reads nothing
_STANDSTILL = 0.3  # after so many seconds without a new frame, an engine is waiting for its sink
_FULL = 0.1  # seconds after which a receive buffer that has not grown is full
_LATE = 2  # outputs for the sink that comes back during a stop
_ODD = 9_001  # bytes of a payload: no buffer's size is a multiple of its outputs' size
_ODD_FRAMES = 3
# Bytes of a payload that the system of a sink does not take whole while the sink does not read: if
# the connection breaks then, it breaks in the middle of an output, even if the engine delivers one
# output at a time.
_TOO_LONG = 4 * RECEIVE_BUFFER + 1
_CALM = 150  # frames before one of which much comes, after which an engine may take many at once


def _special_sinks(run: LiveRun) -> None:
    always_logs = run.engine.capabilities().always_logs
    most = _LOGGED if always_logs else _TOO_MANY
    run.send("together", [b"a", b"", b"b"], rules=("sink-2",))
    run.on_connections_of_their_own("together")
    calm = [b"%d" % number for number in range(_CALM)]
    run.send("much", [*calm, apps.MUCH, b"a", apps.MUCH, b"b", b"c"], rules=("order-2",))
    run.delivered(("order-2",))
    _break_off_twice(run)
    with _full(run, most):
        run.peers["bulk", 0].read_on()
    run.received(("sink-3",))
    run.delivered(("sink-3",))
    # Only now: while one sink is away, an engine may let the others wait.
    run.sink_goes(("late", 0))
    run.send("late", [b"early"] * _LATE, rules=("sink-3",))
    _stop_in_the_midst(run, most)
    run.delivered(("sink-3",), over=True)
    run.on_connections_of_their_own("together")


def _break_off_twice(run: LiveRun) -> None:
    """Reset the sink's connection in the middle of an output, and the next one too (sink-3)."""
    peer = run.peers["broken", 0]
    peer.hold()
    odd = [b"%05d" % number * (_ODD // 5) + b"." for number in range(_ODD_FRAMES)]
    run.send("broken", [*odd, b"a" * _TOO_LONG, *odd, b"b" * _TOO_LONG, *odd], rules=("sink-3",))
    for _ in range(2):
        _wait_until_full(run, peer)
        run.note("the sink of broken resets its connection in the middle of an output")
        peer.break_off()
    peer.read_on()
    run.delivered(("sink-3",))


def _wait_until_full(run: LiveRun, peer: SinkPeer) -> None:
    """Wait until the system takes no more for a sink that does not read."""
    wait_until(lambda: peer.unread() >= RECEIVE_BUFFER // 2, run.patience)
    _wait_for_a_standstill(peer.unread, 1 << 62, run.patience, _FULL)


@contextlib.contextmanager
def _full(run: LiveRun, most: int) -> Iterator[None]:
    """Send to a sink that reads nothing, until the engine reads nothing either.

    Then the block runs; in it, the sink must read again.

    Args:
        run: the run.
        most: large frames that are sent; an engine must not take `_TOO_MANY`.
    """
    run.note(f"send bulk payloads of {_LARGE} bytes; its sink reads nothing until nobody reads")
    run.peers["bulk", 0].hold()
    sender = run.connect("bulk")
    before, enough = len(run.log), threading.Event()

    def send_all() -> None:
        for number in range(most):
            payload = number.to_bytes(4, "big") * (_LARGE // 4)
            run.log.append(("bulk", payload))
            with contextlib.suppress(OSError):  # a stop may close the connection
                sender.send(run.framed("bulk", [payload]))
            if enough.is_set():
                return

    def received() -> int:
        return run.handle.progress().received - before

    thread = threading.Thread(target=send_all, daemon=True)
    thread.start()
    _wait_for_a_standstill(received, most, run.patience, _STANDSTILL)
    enough.set()
    if most == _TOO_MANY <= received():
        size = most * _LARGE >> 20
        run.broken(("sink-3",), f"{size} MiB were read for a sink that reads nothing")
    yield
    thread.join(run.patience)


def _stop_in_the_midst(run: LiveRun, most: int) -> None:
    """Stop while frames wait in the engine and in the system, and two sinks are slow.

    Bytes that a sender has sent and the system has acknowledged count as received. Only the summary
    can say how many of those that `_full` sends this is.
    """
    late, payloads = run.peers["late", 0], [b"%d" % number for number in range(10)]

    def over() -> bool:
        return run.handle.wait(0) is not None

    with _full(run, most):
        sender = run.connect("together")
        run.note("send together 10 frames and stop at once; late's and bulk's sinks come back")
        sender.send(run.framed("together", payloads))
        run.handle.stop()
        run.peers["bulk", 0].read_on()
        # A stop waits for a sink that comes back when only its outputs are pending.
        wait_until(lambda: run.handle.progress().pending == _LATE or over(), run.patience)
        late.come_back()
        wait_until(lambda: bool(late.size) or over(), run.patience)
        if not late.size and not over():
            run.broken(("sink-3",), "the sink of late is back, and nobody has connected to it")
        summary = run.ended(("stop-1",), 0)
    run.log += [("together", payload) for payload in payloads]
    bulk = [entry for entry in run.log if entry[0] == "bulk"]
    others = [entry for entry in run.log if entry[0] != "bulk"]
    run.log = others + bulk[: summary.received.get("bulk", 0)]
    run.counted_all(summary)


def _wait_for_a_standstill(
    count: Callable[[], int], enough: int, patience: float, standstill: float
) -> None:
    """Wait until `count()` is `enough`, or no longer grows."""
    last = -1
    while (now := count()) < enough and now > last:
        last = now
        wait_until(lambda last=last: count() > last, min(standstill, patience))  # type: ignore[misc]


# -- dead letters, and other ends --------------------------------------------------------------

_GIVEN_UP = 0.3  # seconds that a stop waits for a sink that never comes
_OF_A_KIND = 12  # dead letters, more than are logged of one kind


def _dead_letters(run: LiveRun) -> None:
    """Make dead letters of each kind, and give up a stop for a sink that is away (stop-1)."""
    run.sink_goes(("away", 1))
    run.send("checked", [b"a", *[apps.BAD] * _OF_A_KIND, b"b", apps.UNWRITABLE, b"c"])
    special = [apps.UNREADABLE, b"", apps.UNWRITABLE, apps.BAD]
    run.send("away", [b"kept", *special, b"kept too"])
    run.delivered(("dead-2",))
    trace = run.expected()
    waiting = len(trace.outputs["away", 1])
    if not wait_until(lambda: run.handle.progress().pending == waiting, run.patience):
        pending = run.handle.progress().pending
        run.broken(("sink-3",), f"{pending} outputs are pending, {waiting} have no sink")
    summary = run.ended(("stop-1",), 1, stop=True)
    run.delivered(("dead-2",), over=True)
    run.counted(("stop-1",), "undelivered", summary.undelivered, {("away", 1): waiting})
    letters = [letter.to_json() for letter in trace.dead_letters]
    kinds = Counter((d["pipeline"], d["step"], d["reason"]) for d in letters)
    run.counted(("dead-1",), "dead letters", summary.dead_letters, kinds)
    lines = [json.loads(line) for line in run.letters.read_text(encoding="utf-8").splitlines()]
    wanted = [EARLIER_LETTER, *letters]
    for number, (line, letter) in enumerate(zip(lines, wanted, strict=False)):
        if _compared(line) != _compared(letter) or type(line["error"]) is not str:
            run.broken(("dead-1",), f"line {number} of the file is {line}, it must be {letter}")
    if len(lines) != len(wanted):
        said = f"the file has {len(lines)} lines, it must have {len(wanted)}"
        run.broken(("dead-1",), said)


def _compared(letter: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in letter.items() if name not in (*NOT_COMPARED, "run")}


def _ends_by_itself(rule: str, last: bytes, letters: int) -> Callable[[LiveRun], None]:
    """Return a script: send what ends the run, with frames before and behind it in one piece.

    One of the sinks is away and comes back: it must get the outputs before the end as well.
    """

    def script(run: LiveRun) -> None:
        run.sink_goes(("checked", 1))
        payloads = [b"first", b"second", last, b"after", last]
        run.hand_over(run.connect("checked"), payloads)
        wait_until(lambda: run.handle.progress().received > 0, run.patience)
        run.note("the sink that was away is back")
        run.peers["checked", 1].come_back()
        summary = run.ended((rule,), 1)
        run.delivered((rule,), payloads.index(last), over=True)
        if (counted := sum(summary.dead_letters.values())) != letters:
            run.broken((rule,), f"{counted} dead letters are counted, there are {letters}")
        if "check" not in (summary.problem or ""):
            run.broken((rule,), f"the problem does not name the step, check: {summary.problem}")

    return script


# -- kills -------------------------------------------------------------------------------------


def _killed(run: LiveRun) -> None:
    """Kill the server, first when all is delivered, so that states cannot hide behind outputs."""
    run.send("first", [b"a", b"b", b"ab", b"a"])
    run.delivered(("order-2",))
    run.let_it_store()
    run.kill_and_restart()
    first = run.send("first", [b"c", b"a"])
    run.sink_goes(("first", 1))
    run.send(first, [b"c", b"a"])
    run.let_it_store()  # so that outputs that wait are not all made again
    run.kill_and_restart()
    run.sink_returns(("first", 1))
    run.send("first", [b"a", b"c"])
    run.finished()


def _remembered(run: LiveRun) -> None:
    """Kill peers that have not kept what came, then the engine, whose peers then are ahead."""
    for number in range(2):
        run.send("kept", [b"a", b"b"])
        run.delivered(("sink-9",))
        run.let_it_store()
        _lose_what_is_not_kept(run, run.peers["kept", number])
        run.kill_and_restart()
        run.send("kept", [b"d"], rules=("sink-9",))
        run.delivered(("sink-9",))
    run.finished()


def _lose_what_is_not_kept(run: LiveRun, peer: SinkPeer) -> None:
    """Break off when the system has acknowledged whole outputs that the peer has not kept."""
    peer.hold()
    sender = run.connect("kept")
    run.hand_over(sender, [b"a"])
    wait_until(lambda: peer.unread() > 0, run.patience)
    run.hand_over(sender, [apps.MUCH, b"c"])
    _wait_until_full(run, peer)
    run.note("a sink's peer loses what it has not kept, and its connection")
    peer.break_off()
    peer.read_on()
    run.delivered(("sink-9",))


# -- all of them -------------------------------------------------------------------------------

SPECIAL: tuple[Scenario, ...] = (
    Scenario(apps.INPUT, _special_input, (*_BYTES, "order-2", "stop-1")),
    Scenario(apps.SINKS, _special_sinks, ("sink-2", "sink-3", "order-2", "stop-1")),
    Scenario(
        *(apps.LETTERS, _dead_letters, ("dead-1", "dead-2", "stop-1")),
        letters=True,
        options={"stop_timeout": _GIVEN_UP},
    ),
    Scenario(
        *(apps.CHECKED, _ends_by_itself("dead-4", apps.BAD, 1), ("dead-4",)),
        options={"on_error": "stop"},
    ),
    Scenario(apps.CHECKED, _ends_by_itself("dead-3", apps.QUIT, 0), ("dead-3",)),
    Scenario(apps.TIME, time_passes, ("time-1", "time-5")),
    Scenario(apps.TIME, time_passes, ("time-1", "time-5", "recover-1"), recovers=True),
    Scenario(apps.SOON, time_passes, ("time-1",), recovers=True),
    Scenario(apps.PLAIN[0], _killed, ("recover-1", "recover-2"), recovers=True),
    Scenario(apps.REMEMBERED, _remembered, ("sink-9", "recover-1"), recovers=True),
    Scenario(
        *(apps.RECOVERY, kills_with_open_windows, ("recover-1", "recover-2")),
        recovers=True,
        letters=True,
    ),
    Scenario(apps.PLAIN[0], mixes, ("recover-3",), recovers=True),
    Scenario(apps.OLDER, old_states, ("recover-4",), recovers=True),
)
"""Special runs, in the mode in which most applications run."""
