"""Some of Nexmark's queries on Bytewax: `nexmark_bytewax.py` runs it in an environment of its own.

``python nexmark_by_bytewax.py QUERY FILE``: the file has one event a line. Events are read and rows
are written by the functions of `examples/nexmark/queries.py`, as everywhere. Printed are the
seconds of processor time that the dataflow took, and a digest of its sorted outputs.
"""

from __future__ import annotations

import hashlib
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import bytewax.operators as op
import bytewax.operators.windowing as windowing
from bytewax.dataflow import Dataflow, Stream
from bytewax.testing import TestingSink, TestingSource, run_main

sys.path.insert(0, str(Path(__file__).parent.parent / "examples" / "nexmark"))

import queries

BATCH = 100  # events, as `nexmark.py` feeds the reference engine
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
GAP = timedelta(seconds=10)


def statistics(bids: Stream[Any]) -> Stream[Any]:
    """Return the prices in an auction, by day (q17)."""
    key_of, compute = queries.auction_and_day_of.partition, queries.statistics_of_auction.compute

    def visit(state: Any, bid: Any) -> tuple[Any, Any]:
        state = state or queries.AuctionStatistics()
        row = compute(bid, state)
        return state, row

    keyed = op.key_on("key", bids, lambda bid: "{} {}".format(*key_of(bid)))
    return op.map("rows", op.stateful_map("visit", keyed, visit), lambda item: item[1])


def sessions(bids: Stream[Any]) -> Stream[Any]:
    """Return how many bids a user made without a pause of ten seconds (q11)."""
    clock = windowing.EventClock(
        lambda bid: EPOCH + timedelta(milliseconds=bid.date_time),
        timedelta(seconds=4),
        now_getter=lambda: EPOCH,  # it stands still: the result depends on the events alone
        to_system_utc=lambda _: None,
    )
    keyed = op.key_on("key", bids, lambda bid: str(bid.bidder))
    # In Bytewax messages exactly a gap apart are one session.
    windower = windowing.SessionWindower(GAP - timedelta(milliseconds=1))
    counted = windowing.fold_window(
        *("sessions", keyed, clock, windower, lambda: (0, 2**63, 0)),
        lambda folded, bid: (
            folded[0] + 1,
            min(folded[1], bid.date_time),
            max(folded[2], bid.date_time),
        ),
        lambda one, other: (one[0] + other[0], min(one[1], other[1]), max(one[2], other[2])),
        ordered=False,
    )
    return op.map(
        "rows",
        counted.down,
        lambda item: (int(item[0]), item[1][1][0], item[1][1][1], item[1][1][2] + 10_000),
    )


QUERIES = {
    "q0": lambda bids: op.map("row", bids, queries.as_it_is.compute),
    "q1": lambda bids: op.map("row", bids, queries.in_euros.compute),
    "q2": lambda bids: op.filter_map("row", bids, queries.of_some_auctions.compute),
    "q11": sessions,
    "q17": statistics,
}


def main() -> None:
    """Run a query once."""
    query, path = sys.argv[1:]
    lines, outputs = Path(path).read_bytes().splitlines(), list[bytes]()
    decode, encode = queries.Events(queries.Bid).decode, queries.encode.encode
    flow = Dataflow(query)
    read = op.input("lines", flow, TestingSource(lines, BATCH))
    rows = QUERIES[query](op.filter_map("decode", read, decode))
    written = op.map("encode", rows, lambda row: encode(row).encode())
    op.output("outputs", written, TestingSink(outputs))
    began = time.process_time()
    run_main(flow)
    seconds = time.process_time() - began
    print(seconds, hashlib.sha256(b"".join(sorted(outputs))).hexdigest())


if __name__ == "__main__":
    main()
