"""Operators first: which of an engine's operators are not what the catalogue says.

An engine in another language has operators of its own. While one of them is guessed, rules seem
broken that are kept. So each is tried in small cases, and what is wrong is named by its operator.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from wallaroo.engine import Engine
from wallaroo_conformance.cases.case import ConformanceCase
from wallaroo_conformance.cases.vectors import edges, one_by_one, operators_of, steps
from wallaroo_conformance.judge.oracle import Meaning, reference_oracle
from wallaroo_conformance.search.findings import Failing, Findings
from wallaroo_conformance.search.judging import Judge
from wallaroo_conformance.search.running import Runner


@dataclass(frozen=True)
class WrongOperator:
    """An operator that is not what the catalogue says, or several, of which at least one is not.

    Args:
        names: of the operators.
        failing: the smallest case that shows it.
    """

    names: tuple[str, ...]
    failing: Failing


def wrong_operators(engine: Engine) -> list[WrongOperator]:
    """Try each operator that an engine takes, and return those that are wrong.

    Where a case fails, the one of its operators is to blame whose cases fail most often.
    """
    runner = Runner(engine)
    judge = Judge(runner, reference_oracle(), Findings())
    tried: Counter[str] = Counter()
    failed: Counter[str] = Counter()
    wrong: dict[tuple[str, ...], Failing] = {}
    with runner.reducing():
        for cases in (edges(), steps()):  # whose edge is wrong says nothing of what is between
            known = {name for names in wrong for name in names}
            left = [case for case in cases if known.isdisjoint(operators_of(case))]
            failing: list[Failing] = []
            for meaning, case_failing in _judged(judge, left):
                tried.update(operators_of(meaning.case))
                if case_failing is not None:
                    failed.update(operators_of(meaning.case))
                    failing.append(case_failing)
            for case_failing in failing:
                shares = {
                    name: failed[name] / tried[name] for name in operators_of(case_failing.case)
                }
                blamed = [name for name, share in shares.items() if share == max(shares.values())]
                wrong.setdefault(tuple(blamed), case_failing)
        sure = {names for names in wrong if len(names) == 1}
        return [
            WrongOperator(names, _alone(judge, case_failing))
            for names, case_failing in wrong.items()
            if names in sure or not any({*name} < {*names} for name in sure)
        ]


def _alone(judge: Judge, failing: Failing) -> Failing:
    """Return a case of one message that fails too, if there is one."""
    each = [
        simpler for _, simpler in _judged(judge, one_by_one(failing.case)) if simpler is not None
    ]
    return each[0] if each else failing


def _judged(
    judge: Judge, cases: Sequence[ConformanceCase]
) -> Iterator[tuple[Meaning, Failing | None]]:
    """Yield the cases that the engine has run, and how it differs."""
    asked = judge.oracle.ask([*dict.fromkeys(map(judge.adapted, cases))])
    meanings = [meaning for meaning in asked if judge.beyond(meaning) is None]
    results = judge.runner.run([meaning.case for meaning in meanings])
    for meaning, result in zip(meanings, results, strict=False):
        if not judge.refused(result):
            yield meaning, judge.failing(meaning, result)
