"""Market spread in the later form of the API gives the same bytes (graph-1)."""


def test_market_spread_as_one_merged_pipeline(application, example, run):
    feed = example("market_feed")
    traded = feed.generate_symbols()
    market_data = list(feed.generate_market_data(900, 3, traded))
    orders = list(feed.generate_orders(900, 3, traded))
    log = [
        one
        for pair in zip(orders, market_data, strict=True)
        for one in zip(("Orders", "Market Data"), pair, strict=True)
    ]
    one = run(application("market_spread", "--clock", "1"), log)
    other = run(application("market_spread_pipeline", "--clock", "1"), log)
    assert other.outputs == one.outputs
    assert 100 < len(one.output) < 800


def test_a_symbol_that_is_not_traded_is_a_dead_letter_there_too(application, example, run):
    (order,) = example("market_feed").generate_orders(1, 3, ["NONE"])
    result = run(application("market_spread_pipeline"), [("Orders", order)])
    (letter,) = result.dead_letters
    assert (letter.step, letter.reason, letter.error) == (
        "BySymbol",
        "raised",
        "the symbol NONE is not traded",
    )
    assert result.entities == {"check order": {}}
