"""The examples on Spark, to which they go as pickles: the bytes of the reference."""

from pathlib import Path

import pytest

from wallaroo.engine import Case
from wallaroo.loading import load_application, load_module
from wallaroo.testing.input import input_log_of

pytestmark = pytest.mark.xdist_group("spark")

EXAMPLES = Path(__file__).parents[3] / "examples"
FEED = load_module(EXAMPLES / "market_feed.py").module
LOG = load_module(EXAMPLES / "access_log.py").module

TRADED = FEED.generate_symbols()
LINES = list(LOG.generate(150, seed=3))
WORDS = {"Split and Count": [b"a b a", b"\xff", b"b c"]}
MARKET = {
    "Market Data": list(FEED.generate_market_data(100, 3, TRADED)),
    "Orders": list(FEED.generate_orders(100, 3, TRADED)),
}
INPUT = {
    "word_count": WORDS,
    "word_count_classes": WORDS,
    "word_count_u64": WORDS,
    "word_count_pipeline": WORDS,
    "market_spread": MARKET,
    "market_spread_pipeline": MARKET,
    "log_status": {"Count Status": [*LINES, b"END_OF_DAY"]},
    "log_status_windows": {"Count Status": LINES},
    "sessions": {"Requests": LINES},
    "alerts_windowed": {},
    "celsius_kafka": {"Celsius Conversion": [b"21.5"]},
}


def case(name):
    arguments = ("--clock", "1") if name.startswith("market") else ()
    application = load_application(EXAMPLES / f"{name}.py", arguments, placeholders=True)
    return Case(application, input_log_of(application, INPUT[name], end=True), batches=(100, 400))


def test_each_example_gives_the_bytes_of_the_reference(spark_engine, reference):
    cases = {name: case(name) for name in INPUT}
    traces = spark_engine.run_many(list(cases.values()))
    for (name, one), trace in zip(cases.items(), traces, strict=True):
        assert trace.comparable() == reference.run(one).comparable(), name
        assert any(trace.outputs.values()), name
