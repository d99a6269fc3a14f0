"""A live run whose input is special: sizes, claims, ends inside a frame, many frames at once."""

from __future__ import annotations

from collections import Counter

from wallaroo.engine import Engine, Isolation, ServeOptions
from wallaroo.frames import DEFAULT_MAX_SIZE
from wallaroo_conformance.live.run import Pipe, Run, eight, one, signed, two

MAX_SIZE = 8
"""Bytes that the source ``signed`` takes at most."""

_MANY = 3_000  # frames in one piece, more than an engine may take at once
_CONNECTIONS = 30  # one after the other, two frames on each

_READ = 1 << 16  # bytes that engines often read at a time, or a part or a multiple of them
_READS = 3
_AROUND = 1 << 12  # bytes before and behind the end of such a read, all of them headers
_SHIFTS = (1, 4)  # bytes by which headers are shifted, so that an end of a read is inside one


def what_comes_in(
    engine: Engine, reference: Engine, isolation: Isolation, patience: float
) -> Counter[str]:
    """Send frames of special sizes and numbers, refused and unfinished ones; return the rules."""
    pipes = {
        "one": Pipe(one),
        "two": Pipe(two),
        "signed": Pipe(signed, MAX_SIZE),
        "many": Pipe(),
        "eight": Pipe(eight),
    }
    options = ServeOptions(isolation=isolation, stop_timeout=patience)
    with Run(engine, reference, pipes, options, patience) as run:
        run.send("frame-1", "one", [b"", b"a", b"\xff" * 255], [1])
        run.send("frame-1", "two", [b"", b"b" * 256, b"c" * 65_535], [30_000])
        for shift in _SHIFTS:
            run.send("frame-1", "eight", _headers_where_reads_end(shift))
        run.send("frame-3", "signed", [b"d" * MAX_SIZE])
        dropped = Counter(signed=_refusals(run))
        dropped += Counter(two=_ends_inside(run, "two"), many=_ends_inside(run, "many"))
        for number in range(_CONNECTIONS):
            run.finished(run.send("frame-5", "many", [b"%d" % number, b""]))
        run.send("frame-3", "many", [b"large" + bytes(DEFAULT_MAX_SIZE - 5)])
        _many_and_a_half_close(run)
        run.delivered("order-2")
        summary = run.stopped()
        run.delivered("order-2", over=True)  # refused and unfinished frames gave no output
        refused, unfinished = {"signed": dropped.pop("signed")}, dropped
        counted = dict(summary.dropped_frames)
        run.counted("frame-3", "dropped frames", {"signed": counted.pop("signed", 0)}, refused)
        run.counted("frame-4", "dropped frames", counted, unfinished)
    return Counter(["frame-1", "frame-2", "frame-3", "frame-4", "frame-5", "order-2", "stop-1"])


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


def _refusals(run: Run) -> int:
    """Send headers with impossible claims, frames before and behind them; return how many."""
    other = run.send("frame-5", "signed", [b"before"])
    behind = run.framed("signed", [b"behind", b""])
    for data in (
        run.framed("signed", [b"e" * (MAX_SIZE + 1)]),
        (-1).to_bytes(4, "big", signed=True) + b"f",
        (1 << 30).to_bytes(4, "big"),
    ):
        run.refused("signed", [b"good", b""], data + behind)
        run.send("frame-3", "signed", [b"go on"], sender=other)
    run.delivered("frame-3")
    run.finished(other)
    return 3


def _ends_inside(run: Run, source: str) -> int:
    """End connections at each place inside a frame (frame-4); return how many."""
    whole = run.framed(source, [b"lost"])
    places = [1, len(whole) - 5, len(whole) - 4, len(whole) - 1]  # in the header and behind it
    for place in places:
        run.finished(run.send("frame-4", source, [b"kept"], behind=whole[:place]))
    run.send("frame-4", source, [b"kept"], behind=whole[:-1]).reset()
    return len(places) + 1


def _many_and_a_half_close(run: Run) -> None:
    """Half-close right behind many frames; the answer comes when all are received (frame-4)."""
    payloads = [b"%d" % number for number in range(_MANY)]
    run.note(f"send many {_MANY} frames in one piece, and half-close at once")
    run.log += [("many", payload) for payload in payloads]
    sender = run.connect("many")
    sender.send(run.framed("many", payloads))
    run.finished(sender)
