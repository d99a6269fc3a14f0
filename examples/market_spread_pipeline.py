"""Market spread as one merged pipeline: `market_spread.py` in the later form of the API.

Orders and market data are merged, get their symbol as key, and meet in one state computation. The
messages and their binary formats are those of `market_spread.py`, and so are the outputs.

`market_feed.py` makes up both streams. Each command in a terminal of its own::

    wallaroo receive --listen 127.0.0.1:7002 --raw | python examples/market_feed.py results
    wallaroo run examples/market_spread_pipeline.py --in 127.0.0.1:7010,127.0.0.1:7011 --out 127.0.0.1:7002
    python examples/market_feed.py market-data | wallaroo send - --frames --to 127.0.0.1:7011
    python examples/market_feed.py orders | wallaroo send - --frames --to 127.0.0.1:7010

``--symbols FILE`` and ``--clock NS`` are those of `market_spread.py`. A pipeline lists no keys, so
here it is the key extractor that refuses a symbol that is not traded.
"""  # noqa: E501 - a command that is copied stands on one line

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence

from market_spread import (
    WIDEST_SPREAD,
    FixedClock,
    MarketData,
    Order,
    OrderResult,
    SymbolData,
    decode_market_data,
    decode_order,
    encode_order_result,
    key_of,
    load_symbols,
    parse_options,
)

import wallaroo


def application_setup(args: Sequence[str]) -> wallaroo.Application:
    """Describe the application: two sources that are merged, and one sink."""
    options = parse_options(args)
    by_symbol = BySymbol(load_symbols(options.symbols))
    clock = time.time_ns if options.clock is None else FixedClock(options.clock)
    orders_in, market_data_in = wallaroo.tcp_parse_input_addrs(args)
    results_out = wallaroo.tcp_parse_output_addrs(args)[0]

    orders = wallaroo.source("Orders", wallaroo.TCPSourceConfig(*orders_in, decode_order))
    market_data = wallaroo.source(
        "Market Data", wallaroo.TCPSourceConfig(*market_data_in, decode_market_data)
    )
    results = (
        orders.merge(market_data)
        .key_by(by_symbol)
        .to(check_order)
        .to(Stamp(clock))
        .to_sink(wallaroo.TCPSinkConfig(*results_out, encode_order_result))
    )
    return wallaroo.build_application("Market Spread", results)


class BySymbol:
    """Finds a message's key: its symbol.

    Args:
        traded: the keys of the traded symbols.
    """

    def __init__(self, traded: Iterable[int]) -> None:
        self._traded = frozenset(traded)

    def extract_key(self, message: Order | MarketData) -> int:
        """Return the key; a symbol that is not traded raises, and is a dead letter."""
        key = key_of(message.symbol)
        if key not in self._traded:
            raise LookupError(
                f"the symbol {message.symbol.decode('ascii', 'replace')} is not traded"
            )
        return key


@wallaroo.state_computation(name="check order", state=SymbolData)
def check_order(message: Order | MarketData, symbol: SymbolData) -> OrderResult | None:
    """Keep market data; return an order result, not yet stamped, if an order is rejected."""
    if isinstance(message, MarketData):
        spread = message.offer - message.bid
        middle = (message.bid + message.offer) / 2
        symbol.should_reject_trades = spread >= WIDEST_SPREAD or spread / middle >= WIDEST_SPREAD
        symbol.last_bid = message.bid
        symbol.last_offer = message.offer
        return None
    if not symbol.should_reject_trades:
        return None
    return OrderResult(message, symbol.last_bid, symbol.last_offer, timestamp=0)


class Stamp:
    """Writes the time into order results.

    Args:
        clock: tells the time, in nanoseconds since 1970.
    """

    def __init__(self, clock: Callable[[], int] = time.time_ns) -> None:
        self._clock = clock

    def name(self) -> str:
        """Return the computation's name."""
        return "stamp"

    def compute(self, result: OrderResult) -> OrderResult:
        """Return the result with the time at which its order was rejected."""
        return result._replace(timestamp=self._clock())
