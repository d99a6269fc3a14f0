from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from load_runs import result
from wallaroo_loadgen.common.config import RunConfig
from wallaroo_loadgen.common.measure import Timeline
from wallaroo_loadgen.control.result import Result
from wallaroo_loadgen.control.search import Search, run_search, why_not_sustained
from wallaroo_loadgen.control.verdict import SLO, SLOError, exit_code, judge, show


def judged(*slos: str, **changes: Any) -> Result:
    found = result(
        changes.pop("latency", [1000] * 100), changes.pop("lateness", [50] * 100), **changes
    )
    judge(found, [SLO.parse(text) for text in slos])
    return found


def test_a_perfect_run_is_valid() -> None:
    found = judged("p99<5ms", "max<1s")
    assert found.invalid == []
    assert exit_code([found]) == 0


def test_outputs_that_answer_no_known_message_are_a_result_without_latency() -> None:
    found = judged(latency=[], counts={"unanswered": 7, "expected": 0, "received": 0})
    assert found.invalid == []
    assert found.notes[0].startswith("no latency: 7 outputs came")
    assert exit_code([judged("p99<5ms", latency=[], counts={"unanswered": 7})]) == 3


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"latency": []}, "no sample"),
        ({"counts": {"missing": 3, "received": 97}}, "3 missing"),
        ({"counts": {"repeated": 3, "received": 103}}, "3 came more than once"),
        (
            {"counts": {"unmatched": 2, "received": 102}, "example": "b'?'"},
            r"2 match nothing, .*\?",
        ),
        ({"lateness": [501] * 100}, "this machine cannot send"),
        ({"counts": {"sent": 90}}, "only 90 of 100"),
        ({"counts": {"early": 1}}, "clocks"),
        ({"counts": {"held_up": 1}}, "receiver could not keep up"),
        ({"failure": "nobody listens", "started": None}, "nobody listens"),
    ],
)
def test_an_invalid_run_says_why(changes: dict[str, Any], words: str) -> None:
    found = judged(**changes)
    assert len(found.invalid) == 1
    assert re.search(words, found.invalid[0])
    assert exit_code([found]) == 4


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"closed": {"0": "the target closed the connection"}}, "after 90 of 100 messages"),
        ({"counts": {"sinks_closed": 1}}, "sink closed"),
        ({"ended": "the application ended by SIGSEGV"}, "by SIGSEGV"),
    ],
)
def test_a_target_that_ends_is_told_from_a_machine_that_cannot_send(
    changes: dict[str, Any], words: str
) -> None:
    counts = {"sent": 90, **changes.pop("counts", {})}
    found = judged(**changes, counts=counts, lateness=[9000] * 100)
    assert len(found.invalid) == 1
    assert words in found.invalid[0]
    assert exit_code([found]) == 5
    slow = judged(counts={"sent": 90}, lateness=[9000] * 100)
    assert "this machine cannot send" in slow.invalid[0]
    assert exit_code([slow]) == 4


def test_lateness_up_to_a_tenth_of_the_latency_is_allowed() -> None:
    assert judged(latency=[20_000] * 100, lateness=[1990] * 100).invalid == []
    assert judged(latency=[20_000] * 100, lateness=[2100] * 100).invalid != []


def test_lateness_by_back_pressure_is_the_targets() -> None:
    found = judged(lateness=[9000] * 100, own=[20] * 100, counts={"held_back": 100})
    assert "the target did not take them" in found.invalid[0]


def test_a_run_without_a_sample_misses_its_slo() -> None:
    found = judged("p99<5ms", latency=[])
    assert found.slos == [{"text": "p99<5ms", "value": None, "met": False}]


def test_exit_codes_by_what_weighs_more() -> None:
    good, missed = judged("p99<5ms"), judged("p99<5us")
    invalid, partial = judged(latency=[]), judged(partial=True)
    assert exit_code([good, missed]) == 3
    assert exit_code([missed, invalid]) == 4
    assert exit_code([invalid, partial]) == 130


@pytest.mark.parametrize(
    ("text", "micros"),
    [("p99<5ms", 5000), ("p99.99 < 1.5 s", 1_500_000), ("max<20us", 20), ("mean<7µs", 7)],
)
def test_slos(text: str, micros: float) -> None:
    assert SLO.parse(text).micros == micros


@pytest.mark.parametrize("text", ["", "p99", "p99<5", "p101<5ms", "p99>5ms", "min<5ms"])
def test_what_is_no_slo(text: str) -> None:
    with pytest.raises(SLOError, match="such as 'p99<5ms'"):
        SLO.parse(text)


def with_backlog(per_second: list[int]) -> Result:
    """Return a run in which this many outputs a second did not come in time."""
    timeline = Timeline(10**9, 10)
    timeline.series["owed"][: len(per_second)] = 10
    timeline.series["received"][: len(per_second)] = 10 - np.array(per_second)
    return judged(timeline=timeline.to_json())


def test_a_backlog_that_grows_is_no_sustained_rate() -> None:
    assert why_not_sustained(with_backlog([0] * 9)) is None
    assert why_not_sustained(with_backlog([5, -5, 5, -5, 5, -5, 5, -5, 5])) is None
    assert "grew by 50%" in str(why_not_sustained(with_backlog([5] * 9)))


def searched(rate: float, outcome: Callable[[float], dict[str, Any]]) -> tuple[Any, list[float]]:
    """Search from this rate, with runs made up by their rates; return the best and all tried."""
    tried: list[float] = []

    def run(config: RunConfig) -> Result:
        tried.append(config.rate)
        return judged(**outcome(config.rate), config=config.to_json())

    return run_search(RunConfig("echo", (("h", 1),), rate=rate), run, resolution=0.05).best, tried


@pytest.mark.parametrize(
    ("first", "tried"),
    [(100.0, [100, 200, 400, 800, 800, 600]), (10_000.0, [10_000, 10_000, 5000])],
)
def test_a_search_closes_in_on_the_limit(first: float, tried: list[float]) -> None:
    best, rates = searched(first, lambda rate: {} if rate <= 700 else {"latency": []})
    assert rates[: len(tried)] == tried
    assert 700 / 1.05 <= best <= 700


def test_a_search_gives_up_where_nothing_is_good_or_this_machine_is_always_late() -> None:
    assert searched(1000.0, lambda rate: {"latency": []})[0] is None
    late = searched(1000.0, lambda rate: {"lateness": [9000] * 100})
    assert late == (None, [1000, 1000, 500, 500, 250, 250])


def test_one_hiccup_does_not_fail_a_rate() -> None:
    seen: set[float] = set()

    def outcome(rate: float) -> dict[str, Any]:
        hiccup = rate not in seen
        seen.add(rate)
        return {"latency": []} if hiccup or rate > 300 else {}

    assert searched(100.0, outcome)[0] > 200


def knee(rates: dict[float, Result]) -> str:
    found = Search("echo")
    for rate, measured in rates.items():
        measured.config = {**measured.config, "rate": rate}
        found.results.append(measured)
    return found.sentence()


def test_a_search_names_the_knee_in_a_sentence() -> None:
    slow = [70_000] * 100
    assert knee(
        {20_000.0: judged("p99<50ms"), 41_600.0: judged("p99<50ms")}
        | {80_000.0: judged("p99<50ms", latency=slow), 44_000.0: judged("p99<50ms", latency=slow)}
    ) == ("the target keeps p99 under 50 ms up to 41,600 messages/s; at 44,000 p99 is 70.02 ms")
    assert knee({100.0: judged("p99<50ms", "max<1.5 s")}) == (
        "the target keeps p99 under 50 ms and max under 1.5 s up to 100 messages/s; "
        "its limit was not reached"
    )
    late = {100.0: judged(), 200.0: judged(lateness=[9000] * 100)}
    assert knee(late) == (
        "the target keeps pace up to 100 messages/s; at 200 this machine cannot send on time, "
        "so the target's limit may be higher"
    )
    assert knee({100.0: judged("p99<5ms", latency=slow)}) == (
        "the target did not keep p99 under 5 ms at any rate that was tried; at 100 p99 is 70.02 ms"
    )


@pytest.mark.parametrize(
    ("micros", "text"),
    [
        (None, "\N{EN DASH}"),
        (3, "3 µs"),
        (1500, "1.50 ms"),
        (123_456, "123 ms"),
        (2_500_000, "2.50 s"),
    ],
)
def test_times_have_the_unit_that_suits_them(micros: float | None, text: str) -> None:
    assert show(micros) == text
