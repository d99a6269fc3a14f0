"""SLOs and searches as JUnit: what is missed fails, what is not known is an error."""

from __future__ import annotations

from load_runs import result
from wallaroo_loadgen.control.search import Search
from wallaroo_loadgen.control.verdict import SLO, judge
from wallaroo_loadgen.presentation.files import cases_of_runs, cases_of_search


def cases(latency: list[int], *, runs: int = 1, **changes: object) -> list[tuple[str, str]]:
    found = [result(latency, **changes) for _ in range(runs)]
    for run in found:
        judge(run, [SLO.parse("p99<5ms")])
    return [(case.name, case.outcome) for case in cases_of_runs(found)]


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
    failed = result([1000], started=None, failure="nobody listens", invalid=["nobody listens"])
    found.results.append(failed)
    assert [(case.outcome, case.message) for case in cases_of_search(found)] == [
        ("error", "nobody listens")
    ]
    sustained = result([1000])
    sustained.config["rate"] = 500.0
    found.results.append(sustained)
    assert [(case.outcome, case.message) for case in cases_of_search(found)] == [
        ("passed", "500 messages/s")
    ]
