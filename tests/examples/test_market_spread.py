"""Market spread: wire formats to the byte, and the rules by which orders are rejected."""

import struct

import pytest

NOW = "1700000000123456789"
HEADER = b"\x00\x00\x00\x37"


def order(symbol=b" IBM", side=1, account=7, order_id=b"O00001"):
    return (
        bytes([1, side])
        + account.to_bytes(4, "big")
        + order_id
        + symbol
        + b"\x40\x59\x00\x00\x00\x00\x00\x00"  # quantity 100.0
        + b"\x3f\xf8\x00\x00\x00\x00\x00\x00"  # price 1.5
        + b"20260302-14:30:00.000"
    )


def market_data(bid, offer, symbol=b" IBM"):
    return b"\x02" + symbol + b"20260302-14:30:00.000" + struct.pack(">dd", bid, offer)


@pytest.fixture
def symbols(tmp_path):
    file = tmp_path / "symbols.txt"
    file.write_text("IBM\nF\nAAPL\n")
    return ("--symbols", str(file), "--clock", NOW)


def test_an_order_result_to_the_byte(application, run, symbols):
    log = [("Market Data", market_data(1.5, 2.0)), ("Orders", order())]
    result = run(application("market_spread", *symbols), log)
    assert result.outputs == {
        ("Orders", 0): [
            HEADER
            + b"\x01"  # side
            + b"\x00\x00\x00\x07"  # account
            + b"O00001"  # order id
            + b" IBM"
            + b"\x40\x59\x00\x00\x00\x00\x00\x00"  # quantity 100.0
            + b"\x3f\xf8\x00\x00\x00\x00\x00\x00"  # price 1.5
            + b"\x3f\xf8\x00\x00\x00\x00\x00\x00"  # last bid 1.5
            + b"\x40\x00\x00\x00\x00\x00\x00\x00"  # last offer 2.0
            + b"\x17\x97\x9c\xfe\x3d\x85\xcd\x15"  # timestamp 1700000000123456789
        ]
    }
    assert result.dead_letters == []


@pytest.mark.parametrize(
    ("bid", "offer", "rejects"),
    [
        (100.0, 100.0, False),
        (100.0, 100.03125, False),
        (100.0, 100.0625, True),  # 0.05 or more apart
        (0.5, 0.515625, False),
        (0.5, 0.53125, True),  # 5 % or more of the price between the two apart
        (0.0, 0.05, True),
        (2.0, 1.0, False),
    ],
)
def test_which_spread_rejects(bid, offer, rejects, application, run, symbols):
    log = [("Market Data", market_data(bid, offer)), ("Orders", order())]
    result = run(application("market_spread", *symbols), log)
    assert len(result.output) == rejects


def test_a_symbol_rejects_until_its_first_market_data_come(application, run, symbols):
    log = [
        ("Orders", order(order_id=b"before")),
        ("Market Data", market_data(1.0, 1.0, b"   F")),
        ("Orders", order(order_id=b"other ")),
        ("Market Data", market_data(1.0, 1.0)),
        ("Orders", order(order_id=b"inside")),
        ("Market Data", market_data(1.0, 2.0)),
        ("Orders", order(order_id=b"wide  ")),
    ]
    result = run(application("market_spread", *symbols), log)
    fields = [struct.unpack(">BI6s4sddddQ", output[4:]) for output in result.output]
    assert [(name, bid, offer) for _, _, name, _, _, _, bid, offer, _ in fields] == [
        (b"before", 0.0, 0.0),
        (b"other ", 0.0, 0.0),
        (b"wide  ", 1.0, 2.0),
    ]


@pytest.mark.parametrize(
    ("pipeline", "payload", "says"),
    [
        ("Orders", market_data(1.0, 1.0), "orders begin with the type byte 1, not 02"),
        ("Market Data", order(), "market data begin with the type byte 2, not 01"),
        ("Orders", b"", "orders begin with the type byte 1, not nothing"),
    ],
)
def test_a_wrong_type_byte_says_that_the_senders_are_swapped(
    pipeline, payload, says, application, run, symbols
):
    result = run(application("market_spread", *symbols), [(pipeline, payload)])
    (letter,) = result.dead_letters
    assert (letter.pipeline, letter.reason, letter.error_type) == (pipeline, "decode", "ValueError")
    assert says in letter.error
    assert "the senders of orders and of market data are swapped" in letter.error


def test_route_3_a_symbol_that_is_not_traded_is_a_dead_letter(application, run, symbols):
    log = [("Orders", order(b"NONE")), ("Orders", order())]
    result = run(application("market_spread", *symbols), log)
    (letter,) = result.dead_letters
    assert (letter.lineage, letter.reason) == ((0,), "unknown-key")
    assert (letter.step, letter.key) == ("check order", int.from_bytes(b"NONE", "little"))
    assert len(result.output) == 1


def test_a_symbols_file_that_is_none_is_refused_by_line(application, tmp_path):
    file = tmp_path / "symbols.txt"
    file.write_text("IBM\nTOOLONG\n")
    with pytest.raises(Exception, match="line 2: a symbol has 1 to 4 characters: 'TOOLONG'"):
        application("market_spread", "--symbols", str(file))


def test_the_feed_runs_through(application, example, run):
    feed = example("market_feed")
    traded = feed.generate_symbols()
    log = [("Market Data", payload) for payload in feed.generate_market_data(900, 3, traded)]
    log += [("Orders", payload) for payload in feed.generate_orders(500, 3, traded)]
    result = run(application("market_spread", "--clock", NOW), log)
    assert result.dead_letters == []
    assert 50 < len(result.output) < 300
    assert {output[:4] for output in result.output} == {HEADER}
    assert feed.described(result.output[0][4:]) == (
        "1700000000123456789  ADW sell   8000 at 496.11 by 7788 (000008): "
        "bid 434.20, offer 434.25\n"
    )
