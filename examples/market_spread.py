"""Market spread: orders are checked against the market as it is, and risky ones are reported.

Two streams meet in one state partition, ``symbol-data``, with an entity for each traded symbol.
Market data contain a symbol's bid and offer; when these lie too far apart, its orders are rejected,
and each rejected order goes out as an order result.

`market_feed.py` makes up both streams. Each command in a terminal of its own::

    wallaroo receive --listen 127.0.0.1:7002 --raw | python examples/market_feed.py results
    wallaroo run examples/market_spread.py --in 127.0.0.1:7010,127.0.0.1:7011 --out 127.0.0.1:7002
    python examples/market_feed.py market-data | wallaroo send - --frames --to 127.0.0.1:7011
    python examples/market_feed.py orders | wallaroo send - --frames --to 127.0.0.1:7010

The first ``--in`` address takes orders, the second market data. ``--symbols FILE`` lists the traded
symbols (``data/symbols.txt``); a message about any other is a dead letter. ``--clock NS`` stamps
all results with one time, in nanoseconds since 1970, for runs that can be repeated.
"""

from __future__ import annotations

import argparse
import struct
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import wallaroo
from wallaroo.frames import frame

SYMBOLS = Path(__file__).parent / "data" / "symbols.txt"

ORDER_TYPE = 1
ORDER = struct.Struct(">BBI6s4sdd21s")

MARKET_DATA_TYPE = 2
MARKET_DATA = struct.Struct(">B4s21sdd")

ORDER_RESULT = struct.Struct(">BI6s4sddddQ")

WIDEST_SPREAD = 0.05
"""Orders are rejected from this spread on: as an amount, or relative to the mean price."""


def application_setup(args: Sequence[str]) -> wallaroo.Application:
    """Describe the application: two pipelines that share the symbols' entities."""
    options = parse_options(args)
    symbols = load_symbols(options.symbols)
    clock = time.time_ns if options.clock is None else FixedClock(options.clock)
    orders_in, market_data_in = wallaroo.tcp_parse_input_addrs(args)
    results_out = wallaroo.tcp_parse_output_addrs(args)[0]

    return (
        wallaroo.ApplicationBuilder("Market Spread")
        .new_pipeline("Orders", wallaroo.TCPSourceConfig(*orders_in, decode_order))
        .to_state_partition_u64(
            CheckOrder(clock), SymbolData, "symbol-data", partition_by_symbol, symbols
        )
        .to_sink(wallaroo.TCPSinkConfig(*results_out, encode_order_result))
        .new_pipeline("Market Data", wallaroo.TCPSourceConfig(*market_data_in, decode_market_data))
        .to_state_partition_u64(
            update_market_data, SymbolData, "symbol-data", partition_by_symbol, symbols
        )
        .done()
        .build()
    )


class Order(NamedTuple):
    """A client wants to buy or sell."""

    side: int
    account: int
    order_id: bytes
    symbol: bytes
    quantity: float
    price: float
    transact_time: bytes


class MarketData(NamedTuple):
    """A symbol's best prices have changed."""

    symbol: bytes
    transact_time: bytes
    bid: float
    offer: float


class OrderResult(NamedTuple):
    """An order was rejected; the prices that rejected it, and when, in nanoseconds since 1970."""

    order: Order
    bid: float
    offer: float
    timestamp: int


class SymbolData:
    """The state of a symbol. Until its first market data have come it rejects."""

    def __init__(self) -> None:
        self.last_bid = 0.0
        self.last_offer = 0.0
        self.should_reject_trades = True


@wallaroo.decoder(header_length=4, length_fmt=">I")
def decode_order(payload: bytes) -> Order:
    """Read an order."""
    expect_type(ORDER_TYPE, payload, "orders")
    _, *fields = ORDER.unpack(payload)
    return Order._make(fields)


@wallaroo.decoder(header_length=4, length_fmt=">I")
def decode_market_data(payload: bytes) -> MarketData:
    """Read market data."""
    expect_type(MARKET_DATA_TYPE, payload, "market data")
    _, *fields = MARKET_DATA.unpack(payload)
    return MarketData._make(fields)


def expect_type(expected: int, payload: bytes, what: str) -> None:
    """Refuse a message of the other pipeline."""
    if payload[:1] != bytes([expected]):
        raise ValueError(
            f"{what} begin with the type byte {expected}, not {payload[:1].hex() or 'nothing'}: "
            "the senders of orders and of market data are swapped"
        )


@wallaroo.partition
def partition_by_symbol(message: Order | MarketData) -> int:
    """Return the key of a message's symbol."""
    return key_of(message.symbol)


def key_of(symbol: bytes) -> int:
    """Return a symbol's key: each character's code, shifted left by 8 bits for each before it."""
    return int.from_bytes(symbol, "little")


@wallaroo.state_computation(name="update market data")
def update_market_data(data: MarketData, symbol: SymbolData) -> tuple[None, bool]:
    """Keep the prices, and whether they lie too far apart to trade."""
    spread = data.offer - data.bid
    middle = (data.bid + data.offer) / 2
    symbol.should_reject_trades = spread >= WIDEST_SPREAD or spread / middle >= WIDEST_SPREAD
    symbol.last_bid = data.bid
    symbol.last_offer = data.offer
    return None, True


class CheckOrder:
    """Rejects the orders for symbols whose prices lie too far apart.

    Args:
        clock: tells the time, in nanoseconds since 1970.
    """

    def __init__(self, clock: Callable[[], int] = time.time_ns) -> None:
        self._clock = clock

    def name(self) -> str:
        """Return the computation's name."""
        return "check order"

    def compute(self, order: Order, symbol: SymbolData) -> tuple[OrderResult | None, bool]:
        """Return an order result if the order is rejected; the state stays as it is."""
        if not symbol.should_reject_trades:
            return None, False
        return OrderResult(order, symbol.last_bid, symbol.last_offer, self._clock()), False


@wallaroo.encoder
def encode_order_result(result: OrderResult) -> bytes:
    """Write an order result, framed."""
    order = result.order
    return frame(
        ORDER_RESULT.pack(
            order.side,
            order.account,
            order.order_id,
            order.symbol,
            order.quantity,
            order.price,
            result.bid,
            result.offer,
            result.timestamp,
        )
    )


@dataclass(frozen=True)
class FixedClock:
    """A clock that stands still."""

    nanoseconds: int

    def __call__(self) -> int:
        """Return the time, in nanoseconds since 1970."""
        return self.nanoseconds


def parse_options(args: Sequence[str]) -> argparse.Namespace:
    """Read the application's own arguments; the others are ignored."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    parser.add_argument("--symbols", type=Path, default=SYMBOLS)
    parser.add_argument("--clock", type=int, metavar="NS")
    return parser.parse_known_args(args)[0]


def load_symbols(path: Path) -> list[int]:
    """Return the keys of the symbols in a file, one of at most four characters a line."""
    keys = []
    for number, line in enumerate(path.read_text("ascii").splitlines(), 1):
        symbol = line.strip()
        if not 1 <= len(symbol) <= 4:
            raise ValueError(f"{path}, line {number}: a symbol has 1 to 4 characters: {line!r}")
        keys.append(key_of(symbol.rjust(4).encode()))
    return keys
