"""Nexmark's queries: events by second of processor time, beside loops written by hand.

``python benchmarks/nexmark.py [PART …]``, all parts by default:

- ``reference``: all queries on the compiled path, in process, JSON in and out. For some there is a
  loop by hand, as one would write it without an engine. Goal: at most 1.3 times its time.
- ``spark``: some queries over TCP, when the JVM is warm; ``--queries`` chooses. Goal: 20,000 events
  by second of processor time.
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from facts import Figures, ratios, run_parts, side_by_side
from wallaroo_reference.compiled.machine import Compiled

from wallaroo.loading import load_module
from wallaroo.records import End

NEXMARK = Path(__file__).parent.parent / "examples" / "nexmark"
generator, queries = [
    load_module(NEXMARK / f"{name}.py").module for name in ("generator", "queries")
]
FIGURES = Figures(__file__)
RATE = 1_000  # events a second, in event time
FEED = 100  # events, as reads from a socket would give them
ADDRESSES = ("--in", "127.0.0.1:0", "--out", "127.0.0.1:0")

Loop = Callable[[Sequence[bytes]], list[bytes]]


def written(rows: Iterable[Any]) -> list[bytes]:
    """Return rows as outputs."""
    encode = queries.encode.encode
    return [encode(row).encode() for row in rows]


def by_hand(compute: Callable[[Any], Any]) -> Loop:
    """Return a loop without state."""

    def loop(lines: Sequence[bytes]) -> list[bytes]:
        decode, encode = queries.Events(queries.Bid).decode, queries.encode.encode
        outputs = []
        for line in lines:
            bid = decode(line)
            if bid is not None:
                row = compute(bid)
                if row is not None:
                    outputs.append(encode(row).encode())
        return outputs

    return loop


def q5(lines: Sequence[bytes]) -> list[bytes]:
    """Count bids in pieces of two seconds, of which a window has five."""
    decode = queries.Events(queries.Bid).decode
    outputs: list[bytes] = []
    pieces: dict[int, Counter[int]] = {}
    due = latest = 0

    def fire(last: int) -> None:
        counts: Counter[int] = Counter()
        for number in range(last - 4, last + 1):
            counts.update(pieces.get(number, {}))
        pieces.pop(last - 4, None)
        most = max(counts.values(), default=0)
        start, end = (last - 4) * 2_000, (last + 1) * 2_000
        hot = sorted([auction for auction, count in counts.items() if count == most])
        outputs.extend(written([(auction, most, start, end) for auction in hot]))

    for line in lines:
        bid = decode(line)
        if bid is None:
            continue
        piece = bid.date_time // 2_000
        if bid.date_time > latest:
            latest = bid.date_time
            due = due or piece
            while (due + 1) * 2_000 + 4_000 <= latest:
                fire(due)
                due += 1
        if piece not in pieces:
            pieces[piece] = Counter()
        pieces[piece][bid.auction] += 1
    for last in range(due, max(pieces) + 5):
        fire(last)
    return outputs


def q8(lines: Sequence[bytes]) -> list[bytes]:
    """Keep names and sellers of each ten seconds."""
    decode = queries.Events(queries.Person, queries.Auction).decode
    outputs: list[bytes] = []
    names: dict[int, dict[int, str]] = {}
    sellers: dict[int, set[int]] = {}
    latest = 0

    def fire(start: int) -> None:
        of_window, selling = names.pop(start), sellers.pop(start)
        outputs.extend(
            written([(key, of_window[key], start) for key in sorted(of_window) if key in selling])
        )

    for line in lines:
        event = decode(line)
        if event is None:
            continue
        start = event.date_time // 10_000 * 10_000
        if start not in names:
            names[start], sellers[start] = {}, set()
        if isinstance(event, queries.Person):
            names[start][event.id] = event.name
        else:
            sellers[start].add(event.seller)
        if event.date_time > latest:
            latest = event.date_time
            while min(names) + 14_000 <= latest:
                fire(min(names))
    for start in sorted(names):
        fire(start)
    return outputs


def q17(lines: Sequence[bytes]) -> list[bytes]:
    """Keep the statistics of each auction and day in a dictionary."""
    decode, encode = queries.Events(queries.Bid).decode, queries.encode.encode
    key_of, compute = queries.auction_and_day_of.partition, queries.statistics_of_auction.compute
    states: dict[tuple[int, str], Any] = {}
    outputs = []
    for line in lines:
        bid = decode(line)
        if bid is not None:
            key = key_of(bid)
            if key not in states:
                states[key] = queries.AuctionStatistics()
            outputs.append(encode(compute(bid, states[key])).encode())
    return outputs


BY_HAND: dict[str, Loop] = {
    "q0": by_hand(queries.as_it_is.compute),
    "q1": by_hand(queries.in_euros.compute),
    "q2": by_hand(queries.of_some_auctions.compute),
    "q5": q5,
    "q8": q8,
    "q17": q17,
}


def machine(query: str) -> Compiled:
    """Return a query, compiled."""
    return Compiled(queries.application_setup([*ADDRESSES, "--query", query]))


def fed(compiled: Compiled, lines: Sequence[bytes], *, end: bool = True) -> list[bytes]:
    """Feed a machine as the server does, a read at a time; return all of its outputs."""
    for start in range(0, len(lines), FEED):
        compiled.feed("events", lines[start : start + FEED])
    if end:
        compiled.take(End("events"))
    (outputs,) = compiled.outputs.values()
    return outputs


def reference(options: argparse.Namespace) -> None:
    """Print what each query costs on the compiled path, and the loops by hand."""
    lines = generator.lines(generator.Events(rate=RATE), options.events)
    for query in options.queries or queries.QUERIES:
        contenders: dict[str, Callable[[], Callable[[], object]]] = {
            "compiled": lambda: partial(fed, machine(query), lines)  # noqa: B023 - called in this turn
        }
        if query in BY_HAND:
            contenders["by-hand"] = lambda: partial(BY_HAND[query], lines)  # noqa: B023 - the same
            assert fed(machine(query), lines) == BY_HAND[query](lines), f"{query}: they disagree"
        seconds = side_by_side(contenders, options.rounds, time.process_time)
        rate = len(lines) / statistics.median(seconds["compiled"])
        if query in BY_HAND:
            ratio = ratios(seconds, "by-hand")["compiled"]
            print(f"  {query:4} {rate:9,.0f} events/s   {ratio:5.2f} x by hand", flush=True)
            FIGURES.add(f"{query}/compiled", rate, "events/s", ratio=ratio, baseline="by-hand")
        else:
            print(f"  {query:4} {rate:9,.0f} events/s", flush=True)
            FIGURES.add(f"{query}/compiled", rate, "events/s")


def spark(options: argparse.Namespace) -> None:
    """Print how many events a second Spark takes, by the clock and by processor time."""
    from spark_served import Served

    count = options.spark_events
    lines = generator.lines(generator.Events(rate=RATE), 3 * count)
    for query in options.queries or ("q0", "q5", "q8", "q17"):
        compiled = machine(query)
        outputs = [
            len(fed(compiled, lines[begin : begin + count], end=False))
            for begin in range(0, len(lines), count)
        ]
        served = Served("nexmark", partitions=2, options=("--query", query))
        with contextlib.closing(served):
            for part in range(3):  # the first two make the JVM warm
                began, used = time.perf_counter(), served.cpu_seconds()
                before = outputs[part - 1] if part else 0
                served.exchange(lines[part * count : (part + 1) * count], outputs[part] - before)
                taken, processor = time.perf_counter() - began, served.cpu_seconds() - used
        print(
            f"  {query:4} {count / taken:9,.0f} events/s by the clock, "
            f"{count / processor:9,.0f} by processor time",
            flush=True,
        )
        FIGURES.add(f"{query}/spark", count / processor, "events/s")
        FIGURES.add(f"{query}/spark-clock", count / taken, "events/s")


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--events", type=int, default=50_000)
    parser.add_argument("--spark-events", type=int, default=100_000, help="of a pass (100,000)")
    parser.add_argument(
        "--queries", type=lambda text: text.split(","), metavar="q0,q1,…", help="only these"
    )
    run_parts(parser, {"reference": reference, "spark": spark}, FIGURES)


if __name__ == "__main__":
    main()
