"""Targets whose behaviour is known: what the load generator says of them must be so.

What is asserted holds on a machine that is busy too: counts, and latencies that cannot be smaller.
How close the figures come is measured in benchmarks/loadgen.py.
"""

from __future__ import annotations

from collections.abc import Callable

from wallaroo_loadgen.control.result import Result

Measure = Callable[..., Result]


def lost_or_wrong(result: Result) -> list[str]:
    """Return the reasons that speak of counts; a busy machine may add others."""
    return [reason for reason in result.invalid if reason.startswith("received")]


def test_every_output_of_an_echo_has_a_latency(measured: Result) -> None:
    result = measured
    assert result.counts["sent"] == result.counts["scheduled"] == 2000
    assert result.counts["received"] == result.counts["distinct"] == result.counts["expected"]
    assert result.latency["count"] == 1500
    assert result.lateness["count"] == 1500
    assert lost_or_wrong(result) == []


def test_a_stall_shows_in_the_latency_of_all_that_should_have_been_sent_in_it(
    measure: Measure,
) -> None:
    result = measure("--stall", "0.2", "1.0", duration=3.0)
    hist = result.histogram("latency")
    # Three stalls of 200 ms: 600 of 3,000 messages wait for 0 to 200 ms. A client that waits for
    # each answer would have three slow ones.
    assert hist.get_value_at_percentile(97) >= 150_000
    assert hist.get_value_at_percentile(88) >= 50_000
    assert lost_or_wrong(result) == []


def test_outputs_that_are_lost_or_repeated_do_not_make_up_for_each_other(measure: Measure) -> None:
    result = measure("--double", "--drop", "2", drain=0.5)
    assert result.counts["received"] == 2000
    wrong = "1,000 missing, 1,000 came more than once"
    assert lost_or_wrong(result) == [f"received 2,000 outputs, expected 2,000: {wrong}"]
    assert result.latency["count"] <= 1500  # a repeated output has none


def test_a_target_that_reorders_is_valid_and_noted(measure: Measure) -> None:
    result = measure("--reorder", rate=200)
    assert result.counts["reordered"] > 0
    assert result.counts["missing"] == 0
    assert lost_or_wrong(result) == []
    assert any("reordered" in note for note in result.notes)


def test_a_slow_reader_shows_as_lateness_that_is_not_our_own(measure: Measure) -> None:
    # 5 MB offered in a second, 1 MB/s taken: the sockets' buffers fill, and the sender waits.
    result = measure(
        "--bytes-per-second",
        "1000000",
        "--read",
        "20000",
        values={"size": "5000"},
        duration=1.0,
        drain=6.0,
    )
    assert result.counts["held_back"] > 0
    assert result.lateness["max"] > 500_000
    assert result.latency["max"] >= result.lateness["max"] / 2
    assert result.counts["missing"] == 0
    assert any("back-pressure" in reason for reason in result.invalid)


def test_several_connections_and_processes_count_exactly(measure: Measure) -> None:
    result = measure(connections=5, processes=2, schedule="steps:0.5,1+poisson")
    assert result.counts["sent"] == result.counts["scheduled"]
    assert result.counts["distinct"] == result.counts["expected"] == result.counts["sent"]
    assert set(result.busy) == {"receiver", "sender 0", "sender 1"}
    assert lost_or_wrong(result) == []


def test_outputs_that_match_nothing_are_said_to(measure: Measure) -> None:
    result = measure("--garbage", wait=1.5)
    assert result.started is None
    assert "none answers the probes" in result.invalid[0]
    assert "b'nonsense'" in result.invalid[0]


def test_a_target_that_closes_in_the_middle(measure: Measure) -> None:
    result = measure("--close-after", "500", drain=0.5)
    assert any("the target closed the connection" in reason for reason in result.invalid)
    assert result.counts["sent"] < result.counts["scheduled"]
