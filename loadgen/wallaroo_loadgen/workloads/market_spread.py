"""`market_spread`: orders and quotes in, an order result out for each order that is rejected.

Sources: orders first, market data second. Before the run every symbol is quoted, the symbols that
reject last, and orders for those are sent until all their results show the quote: as a source's
messages keep their order, all quotes have been processed by then. In the run the quotes go on, but
each symbol's verdict stays what it was, so each order's fate is known. Options: `symbols`, the file
with the application's symbols, one a line; `reject`, the part of them that reject (0.3); `quotes`,
the part of the rate that is quotes (0.5).
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from wallaroo.frames import frames
from wallaroo.overriding import override
from wallaroo_loadgen.workloads.cycle import (
    CycleStream,
    NumberedStream,
    from_digits,
    matched,
    rows_of,
)
from wallaroo_loadgen.workloads.protocol import (
    IGNORED,
    Framing,
    Matched,
    Options,
    Workload,
    WorkloadError,
)

ORDERS, QUOTES = 0, 1

_ORDER = struct.Struct(">BBI6s4sdd21s")
_QUOTE = struct.Struct(">B4s21sdd")
_RESULT = struct.Struct(">BI6s4sddddQ")
_RESULT_ROW = np.dtype(
    [("side", "u1"), ("account", ">u4"), ("id", "u1", 6), ("symbol", "V4"), ("rest", "V40")]
)
_ID_AT, _ID_DIGITS = 6, 6
_TIME = b"20260102-09:30:00.000"
_CYCLE = 4096
_PROBE_STREAM = 255


class MarketSpread(Workload):
    """An order causes one output when its symbol rejects, else none; its id says which it is."""

    sources: Sequence[str] = ("orders", "market data")
    framing: Framing = "frames"

    def __init__(self, options: Options) -> None:
        options.known("reject", "quotes", "symbols")
        quotes = options.fraction("quotes", 0.5)
        if not 0 < quotes < 1:
            raise WorkloadError("option quotes is above 0 and below 1")
        self._symbols = _symbols(options.values.get("symbols"))
        rejecting = round(options.fraction("reject", 0.3) * len(self._symbols))
        if not rejecting:
            raise WorkloadError("option reject: without a symbol that rejects nothing comes out")
        self._random = np.random.default_rng([options.seed, 4])
        self._random.shuffle(self._symbols)
        self._accepted = len(self._symbols) - rejecting  # the first that many symbols accept
        self._price = self._random.integers(1000, 50_000, size=len(self._symbols)) / 100
        self._account = (options.run % (1 << 24)) << 8
        self._opening = [self._quote(index) for index in range(len(self._symbols))]
        self._proven: set[bytes] = set()
        ordering = max(1, options.connections // 2)
        quoting = max(1, options.connections - ordering)
        if ordering >= _PROBE_STREAM:
            raise WorkloadError(f"at most {2 * _PROBE_STREAM - 2} connections can be told apart")
        self._orders = [
            self._order_stream(stream, (1 - quotes) / ordering) for stream in range(ordering)
        ]
        self.streams: list[CycleStream] = [
            *self._orders,
            *(self._quote_stream(quotes / quoting) for _ in range(quoting)),
        ]

    def _order_stream(self, stream: int, share: float) -> NumberedStream:
        picked = self._random.integers(len(self._symbols), size=_CYCLE)
        payloads = [self._order(self._account + stream, int(index)) for index in picked]
        outputs = (picked >= self._accepted).astype(np.int64).tolist()
        return NumberedStream(
            payloads, outputs, at=_ID_AT, width=_ID_DIGITS, source=ORDERS, share=share
        )

    def _quote_stream(self, share: float) -> CycleStream:
        picked = self._random.integers(len(self._symbols), size=_CYCLE)
        payloads = [self._quote(int(index)) for index in picked]
        return CycleStream(payloads, [0] * _CYCLE, QUOTES, share)

    def _order(self, account: int, index: int) -> bytes:
        side = int(self._random.integers(1, 3))
        quantity = float(self._random.integers(1, 100) * 100)
        price = float(self._price[index])
        symbol = self._symbols[index]
        return _ORDER.pack(1, side, account, b"AAAAAA", symbol, quantity, price, _TIME)

    def _quote(self, index: int) -> bytes:
        """Return a quote that keeps the symbol's verdict: a spread of 5 cents or more rejects."""
        cents = self._random.integers(1, 4) + (5 if index >= self._accepted else 0)
        bid = float(self._price[index])
        return _QUOTE.pack(2, self._symbols[index], _TIME, bid, bid + float(cents) / 100)

    @override
    def match(self, outputs: list[bytes]) -> Matched:
        # Which order each result is for; a result that should not come matches nothing.
        result = matched(len(outputs))
        raw, which = rows_of(outputs, _RESULT.size)
        rows = raw.copy().view(_RESULT_ROW).reshape(-1)
        account = rows["account"].astype(np.int64)
        streams = np.where(account - (account & 255) == self._account, account & 255, -1)
        messages = from_digits(rows["id"])
        for stream, orders in enumerate(self._orders):
            here = np.flatnonzero((streams == stream) & (messages >= 0))
            position = messages[here] % _CYCLE
            expected = orders.payloads[position, 12:16].copy().view("V4").reshape(-1)
            right = (orders.outputs[position] == 1) & (expected == rows["symbol"][here])
            here = here[right]
            result.streams[which[here]] = stream
            result.numbers[which[here]] = orders.first_output(messages[here])
        result.streams[which[streams == _PROBE_STREAM]] = IGNORED
        return result

    @override
    def preparation(self) -> dict[int, bytes]:
        # A quote for every symbol, those that reject last.
        return {QUOTES: frames(self._opening)}

    @override
    def probe(self, attempt: int) -> dict[int, bytes]:
        # An order for each symbol that rejects and has not been seen to.
        account = self._account + _PROBE_STREAM
        missing = [
            self._order(account, index)
            for index in range(self._accepted, len(self._symbols))
            if self._symbols[index] not in self._proven
        ]
        return {ORDERS: frames(missing)}

    @override
    def answers(self, outputs: list[bytes]) -> bool:
        # Whether each symbol that rejects has done so with the bid and offer of its quote.
        expected = {}
        for payload in self._opening[self._accepted :]:
            _, symbol, _, bid, offer = _QUOTE.unpack(payload)
            expected[symbol] = (bid, offer)
        for output in outputs:
            if len(output) == _RESULT.size:
                _, account, _, symbol, _, _, bid, offer, _ = _RESULT.unpack(output)
                ours = account == self._account + _PROBE_STREAM
                if ours and expected.get(symbol) == (bid, offer):
                    self._proven.add(symbol)
        return len(self._proven) == len(expected)


def _symbols(file: str | None) -> list[bytes]:
    """Return the symbols, right-justified to 4 characters as the wire has them."""
    if file is None:
        raise WorkloadError(
            "market_spread needs -o symbols=FILE: the symbols that the application trades, one a "
            "line, such as examples/data/symbols.txt"
        )
    try:
        names = Path(file).read_text(encoding="ascii").split()
    except (OSError, UnicodeDecodeError) as error:
        raise WorkloadError(f"option symbols: {file}: {error}") from None
    if not names or any(len(name) > 4 for name in names):
        raise WorkloadError("option symbols: a file with at least one symbol, 4 characters at most")
    return [name.rjust(4).encode("ascii") for name in dict.fromkeys(names)]
