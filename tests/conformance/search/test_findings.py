"""What a search has found, law by law."""

from __future__ import annotations

from wallaroo_conformance.cases.case import WindowSpec
from wallaroo_conformance.cases.composing import graph, record, step
from wallaroo_conformance.judge.claims import Claims
from wallaroo_conformance.judge.oracle import reference_oracle
from wallaroo_conformance.search.findings import Findings

from wallaroo.engine import Capabilities


def statuses(findings: Findings) -> dict[str, str]:
    results = findings.law_results("window-2")
    return {one.name: one.status for one in results if one.name in ("sliding", "grid")}


def test_a_law_of_which_every_case_is_refused_is_unsupported_until_one_is_run() -> None:
    case = graph(step("texts", window=WindowSpec()), inputs=(record(0, "a 0 m"),))
    [meaning] = reference_oracle().ask([case])
    findings = Findings(Claims(Capabilities()))
    findings.add_beyond(meaning, "refused: window-1, no windows")
    assert statuses(findings) == {"sliding": "not exercised", "grid": "unsupported"}
    findings.add_kept(meaning)
    assert statuses(findings) == {"sliding": "not exercised", "grid": "kept"}
