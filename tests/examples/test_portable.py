"""The examples keep to what every engine needs: they can be pickled, by reference and by value."""

import pickle

import pytest

from wallaroo import testing

INPUT = {
    "word_count": {"Split and Count": [b"a b a"]},
    "word_count_classes": {"Split and Count": [b"a b a"]},
    "word_count_u64": {"Split and Count": [b"a b a"]},
    "market_spread": {
        "Orders": [b"\x01" * 12 + b" ADW" + b"2" * 37],
        "Market Data": [b"\x02 ADW" + b"2" * 37],
    },
    "log_status": {"Count Status": [b"a line", b"END_OF_DAY"]},
    "word_count_pipeline": {"Split and Count": [b"a b a"]},
    "market_spread_pipeline": {
        "Orders": [b"\x01" * 12 + b" ADW" + b"2" * 37],
        "Market Data": [b"\x02 ADW" + b"2" * 37],
    },
    "log_status_windows": {"Count Status": [b'::1 - - [30/Apr/2026:23:59:58 +0000] "-" 408 -']},
    "sessions": {"Requests": [b'::1 - - [30/Apr/2026:23:59:58 +0000] "-" 408 -']},
    "alerts_windowed": {},
    "celsius_kafka": {"Celsius Conversion": [b"21.5"]},
}


@pytest.mark.parametrize("name", INPUT)
def test_an_unpickled_application_does_the_same(name, application):
    built = application(name, *(("--clock", "1") if name.startswith("market") else ()))
    copied = pickle.loads(pickle.dumps(built))
    first, second = testing.run(built, INPUT[name]), testing.run(copied, INPUT[name])
    assert first.outputs == second.outputs
    assert any(first.outputs.values())
    assert not first.dead_letters
    assert first.trace == second.trace
