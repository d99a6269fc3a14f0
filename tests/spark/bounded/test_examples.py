"""The examples of the later form of the API on Spark: the bytes of the reference.

What the engine refuses is skipped with its own words: the list of tests says what is missing.
"""

from pathlib import Path

import pytest

from wallaroo import testing
from wallaroo.errors import UnsupportedTopology
from wallaroo.loading import load_application, load_module

EXAMPLES = Path(__file__).parents[3] / "examples"
FEED = load_module(EXAMPLES / "market_feed.py").module
LOG = load_module(EXAMPLES / "access_log.py").module

TRADED = FEED.generate_symbols()
LINES = list(LOG.generate(400, seed=3))
INPUT = {
    "word_count_pipeline": {"Split and Count": [b"a b a", b"\xff", b"b c"]},
    "market_spread_pipeline": {
        "Market Data": list(FEED.generate_market_data(200, 3, TRADED)),
        "Orders": list(FEED.generate_orders(200, 3, TRADED)),
    },
    "log_status_windows": {"Count Status": LINES},
    "sessions": {"Requests": LINES},
    "alerts_windowed": {},
}


@pytest.mark.parametrize("name", INPUT)
def test_an_example_gives_the_bytes_of_the_reference(name, spark_engine):
    arguments = ("--clock", "1") if name.startswith("market") else ()
    application = load_application(EXAMPLES / f"{name}.py", arguments, placeholders=True)
    try:
        spark_engine.check(application)
    except UnsupportedTopology as refused:
        pytest.skip(f"Spark refuses it: {refused}")
    on_reference = testing.run(application, INPUT[name])
    on_spark = testing.run(application, INPUT[name], engine="spark", batches=[100] * 2)
    assert on_spark.outputs == on_reference.outputs
    assert on_spark.dead_letters == on_reference.dead_letters
    assert any(on_spark.outputs.values())
