"""Operators first: which of an engine's operators are not what the catalogue says.

An engine in another language has operators of its own. While one of them is guessed, rules seem
broken that are kept. So each is tried in small cases, and what is wrong is named by its operator.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from wallaroo.engine import Engine
from wallaroo_conformance.cases.building import operators_of
from wallaroo_conformance.cases.tour import edges, one_by_one, steps
from wallaroo_conformance.search.findings import Failing
from wallaroo_conformance.search.judging import Judge, judge_of
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
    judge = judge_of(runner)
    tried: Counter[str] = Counter()
    failed: Counter[str] = Counter()
    wrong: dict[tuple[str, ...], Failing] = {}
    with runner.reducing():
        for cases in (edges(), steps()):  # whose edge is wrong says nothing of what is between
            known = {name for names in wrong for name in names}
            adapted = dict.fromkeys(map(judge.claims.adapted, cases))
            left = [case for case in adapted if known.isdisjoint(operators_of(case))]
            failing: list[Failing] = []
            for meaning, case_failing in judge.judged(left):
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
    each = [simpler for _, simpler in judge.judged(one_by_one(failing.case))]
    return next(filter(None, each), failing)
