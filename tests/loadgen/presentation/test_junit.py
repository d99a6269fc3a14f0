"""SLOs and searches as JUnit: what is missed fails, what is not known is an error."""

from __future__ import annotations

from xml.etree import ElementTree as ET

from load_runs import result
from wallaroo_loadgen.control.search import Search
from wallaroo_loadgen.control.verdict import SLO, judge
from wallaroo_loadgen.presentation.junit import Case, junit, of_runs, of_search


def cases(latency: list[int], *, runs: int = 1, **changes: object) -> list[tuple[str, str]]:
    found = [result(latency, **changes) for _ in range(runs)]
    for run in found:
        judge(run, [SLO.parse("p99<5ms")])
    return [(case.name, case.outcome) for case in of_runs(found)]


def test_slos_that_are_met_missed_and_not_known() -> None:
    assert cases([1000]) == [("valid", "passed"), ("p99<5ms", "passed")]
    assert cases([9000]) == [("valid", "passed"), ("p99<5ms", "failure")]
    missing = {"missing": 3, "received": 97}
    assert cases([1000], counts=missing) == [("valid", "error"), ("p99<5ms", "error")]
    closed = {"0": "the target closed the connection"}
    assert cases([1000], closed=closed)[0] == ("valid", "failure")
    assert cases([1000], partial=True) == [("valid", "error"), ("p99<5ms", "error")]


def test_repeated_runs_have_names_of_their_own() -> None:
    names = [name for name, _ in cases([1000], runs=2)]
    assert names[1] == "run 1 of 2: p99<5ms"
    assert len(set(names)) == 4


def test_a_search_is_one_case() -> None:
    found = Search("echo")
    found.add(result([1000], started=None, failure="nobody listens", invalid=["nobody listens"]))
    assert [(case.outcome, case.words) for case in of_search(found)] == [
        ("error", "nobody listens")
    ]
    found.best = 500.0
    assert [(case.outcome, case.words) for case in of_search(found)] == [
        ("passed", "500 messages/s")
    ]


def test_the_counts_and_texts_are_what_xml_can_hold() -> None:
    outcomes = ("passed", "failure", "error", "skipped")
    text = junit("s", [Case("<g>", f"\x00{outcome}", outcome, "a & b") for outcome in outcomes])
    suite = ET.fromstring(text)[0]
    assert [suite.get(name) for name in ("tests", "failures", "errors", "skipped")] == list("4111")
    assert [case.get("name") for case in suite] == [f"\ufffd{name}" for name in outcomes]
    assert suite[1][0].get("message") == "a & b"
