"""One test per rule, for the engine that ``--wallaroo-engine`` names."""

from __future__ import annotations

import pytest

from wallaroo_conformance.judge.results import Report
from wallaroo_conformance.judge.rules import RULES
from wallaroo_conformance.report.showing import failure_text

pytestmark = pytest.mark.xdist_group("wallaroo-conformance")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Make a test of each rule."""
    if "rule" in metafunc.fixturenames:
        metafunc.parametrize("rule", RULES, ids=map(str, RULES.values()))


def test_rule(rule: str, wallaroo_report: Report) -> None:
    """The engine keeps the rule, as far as cases have exercised it."""
    failures = [failure for failure in wallaroo_report.failures if failure.rule == rule]
    if failures:
        texts = [failure_text(failure, wallaroo_report.engine) for failure in failures]
        pytest.fail("\n\n".join(texts).encode("utf-8", "replace").decode(), pytrace=False)
    laws = [law for law in wallaroo_report.laws if law.rule == rule]
    unmet = [law.name for law in laws if law.status == "not exercised"]
    if unmet or not laws:
        notes = sorted({law.note for law in laws if law.note})
        why = notes[0] if notes else "generate more cases (--wallaroo-cases)"
        pytest.skip(f"no case exercised {rule}: {', '.join(unmet) or 'no law'}; {why}")
    if all(law.status == "unsupported" for law in laws):
        pytest.skip(f"{rule} is beyond what the engine claims: {laws[0].note}")


def test_the_check_is_complete(wallaroo_report: Report) -> None:
    """Nothing kept the check from being complete."""
    assert wallaroo_report.problems == ()
