"""Comparisons and histories as JUnit XML."""

from __future__ import annotations

from collections.abc import Sequence

from wallaroo_loadgen.comparison.comparing import Comparison, percent
from wallaroo_loadgen.comparison.ratio import Verdict
from wallaroo_loadgen.comparison.series import Series
from wallaroo_loadgen.presentation.junit import Case, Outcome

_OUTCOMES: dict[Verdict, Outcome] = {
    Verdict.NOT_WORSE: "passed",
    Verdict.WORSE: "failure",
    Verdict.INCONCLUSIVE: "error",
}


def of_comparison(comparison: Comparison) -> list[Case]:
    """Return a case for each bound of each file, and one for its whole distribution."""
    cases = []
    for other in comparison.others:
        group = f"{other.runs.name} against {comparison.baseline.name}"
        for row in other.rows:
            if row.bound is not None and row.verdict is not None:
                name = f"{row.metric.name} within {percent(row.bound)}"
                cases.append(Case(group, name, _OUTCOMES[row.verdict], row.words))
        name = f"whole distribution within {percent(other.shift_bound)}"
        outcome: Outcome = "failure" if other.shift.worse else "passed"
        if other.shift.blind:  # too few runs to ask
            outcome = "skipped"
        cases.append(Case(group, name, outcome, other.shift_words))
    return cases


def of_history(found: Sequence[Series]) -> list[Case]:
    """Return a case for each metric of each history: its newest level."""
    return [
        Case(
            one.label,
            f"{line.metric.name}: newest level within {percent(line.bound)}",
            _OUTCOMES[one.verdict_of(line)],
            "; ".join(one.words(line)),
        )
        for one in found
        for line in one.lines
    ]
