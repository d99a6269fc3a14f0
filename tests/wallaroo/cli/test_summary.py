"""What a run's summary tells for people: late messages, and windows that were open."""

import pytest
from small_windows import arrivals, built, sink

from wallaroo.cli.summary import as_lines
from wallaroo.engine import Summary

APPLICATION = built(arrivals().to_sink(sink()))


def told(**what):
    return as_lines(
        APPLICATION,
        "reference",
        Summary({"p": 300_000}, {}, {}, {}, {}, seconds=1.0, exit_code=0, **what),
    )


@pytest.mark.parametrize(
    ("number", "what", "said"),
    [
        (1, "dropped", "  per minute: 1 message late, dropped"),
        (1200, "dropped", "  per minute: 1,200 messages late, dropped"),
        (2, "partly", "  per minute: 2 messages late for some of the windows"),
    ],
)
def test_window_6_late_messages_are_never_silent(number, what, said):
    assert said in told(late={("per minute", what): number})


def test_the_rate_counts_what_was_processed():
    lines = told(unprocessed=52_800)
    assert "  received and not processed: 52,800" in lines
    assert lines[0].endswith("247,200 messages/s")


def test_time_5_open_windows_are_told():
    assert "  1 window was open at the end, and what is in it is lost" in told(open_windows=1)
    assert "  3,000 windows were open at the end, and what is in them is lost" in told(
        open_windows=3000
    )
    assert not [line for line in told() if "open at the end" in line]


def test_kafka_9_partitions_for_which_windows_wait_are_told():
    (line,) = [line for line in told(silent={"p": [1, 4]}) if "wait" in line]
    assert line.startswith("  windows wait for partitions 1 and 4 of source p, from which nothing")
    assert "idle_after=" in line
