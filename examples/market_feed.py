"""Input for `market_spread.py`, made up from a seed: the traded symbols, market data, orders.

    python examples/market_feed.py symbols > examples/data/symbols.txt
    python examples/market_feed.py market-data --messages 5000 --seed 7 > /tmp/market-data.frames
    python examples/market_feed.py orders --messages 5000 --seed 7 > /tmp/orders.frames

Symbols are lines; the other two are frames, for ``wallaroo send --frames``. ``results`` turns the
frames of order results, as ``wallaroo receive --raw`` prints them, into lines.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import string
import struct
import sys
from collections.abc import Iterator

from wallaroo.frames import FrameParser, frame

SYMBOL_COUNT = 300
BUY, SELL = 1, 2


def generate_symbols(count: int = SYMBOL_COUNT, seed: int = 0) -> list[str]:
    """Return `count` different symbols of one to four letters, sorted."""
    random_ = random.Random(seed)
    symbols: set[str] = set()
    while len(symbols) < count:
        length = random_.choices([1, 2, 3, 4], [1, 10, 40, 49])[0]
        symbols.add("".join(random_.choices(string.ascii_uppercase, k=length)))
    return sorted(symbols)


def generate_market_data(messages: int, seed: int, symbols: list[str]) -> Iterator[bytes]:
    """Yield payloads of market data: most spreads are narrow, about one in six rejects."""
    random_ = random.Random(f"market data {seed}")
    for number in range(messages):
        cents = random_.randrange(1_000, 50_000)
        spread = random_.choice([1, 1, 2, 3, 4, 5])
        yield struct.pack(
            ">B4s21sdd",
            2,
            right_justified(random_.choice(symbols)),
            transact_time(number),
            cents / 100,
            (cents + spread) / 100,
        )


def generate_orders(messages: int, seed: int, symbols: list[str]) -> Iterator[bytes]:
    """Yield payloads of orders."""
    random_ = random.Random(f"orders {seed}")
    for number in range(messages):
        yield struct.pack(
            ">BBI6s4sdd21s",
            1,
            random_.choice([BUY, SELL]),
            random_.randrange(1, 10_000),
            b"%06d" % (number % 1_000_000),
            right_justified(random_.choice(symbols)),
            random_.randrange(1, 100) * 100.0,
            random_.randrange(1_000, 50_000) / 100,
            transact_time(number),
        )


def right_justified(symbol: str) -> bytes:
    """Return a symbol as it travels: four bytes, spaces in front."""
    return symbol.rjust(4).encode("ascii")


def transact_time(number: int) -> bytes:
    """Return the time of a day's message `number`, a millisecond each: 21 bytes."""
    seconds, milliseconds = divmod(number % 86_400_000, 1_000)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    return b"20260302-%02d:%02d:%02d.%03d" % (hours, minutes, seconds, milliseconds)


def described(result: bytes) -> str:
    """Return an order result as a line."""
    side, account, order_id, symbol, quantity, price, bid, offer, timestamp = struct.unpack(
        ">BI6s4sddddQ", result
    )
    return (
        f"{timestamp} {symbol.decode()} {'buy' if side == BUY else 'sell':4} {quantity:6.0f} at "
        f"{price:6.2f} by {account:4} ({order_id.decode()}): bid {bid:.2f}, offer {offer:.2f}\n"
    )


def show_results() -> None:
    """Copy order results from standard input to standard output, as lines, as they come."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C ends the writer; then the input ends
    frames = FrameParser()
    while data := os.read(sys.stdin.fileno(), 1 << 16):
        sys.stdout.writelines(map(described, frames.feed(data)))
        sys.stdout.flush()


def main() -> None:
    """Write what the command line asks for to standard output."""
    parser = argparse.ArgumentParser(description="Input for examples/market_spread.py.")
    parser.add_argument("kind", choices=["symbols", "market-data", "orders", "results"])
    parser.add_argument("--messages", type=int, default=5000, help="how many (5000)")
    parser.add_argument("--seed", type=int, default=7, help="other prices, same symbols (7)")
    arguments = parser.parse_args()
    symbols = generate_symbols()
    if arguments.kind == "symbols":
        sys.stdout.writelines([symbol + "\n" for symbol in symbols])
    elif arguments.kind == "results":
        show_results()
    else:
        generate = generate_orders if arguments.kind == "orders" else generate_market_data
        payloads = generate(arguments.messages, arguments.seed, symbols)
        sys.stdout.buffer.writelines(map(frame, payloads))


if __name__ == "__main__":
    main()
