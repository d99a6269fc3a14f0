"""The oracle: what cases mean on the reference, and which facts they show.

It remembers its latest answers. A check asks for the same cases again while it reduces; checks with
one seed, such as those of mutants, ask for the same thousands.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from wallaroo.engine import Engine, load_engine
from wallaroo.trace import Trace
from wallaroo_conformance.cases.case import ConformanceCase
from wallaroo_conformance.judge.fact import Facts
from wallaroo_conformance.judge.facts import facts_of
from wallaroo_conformance.judge.observing import Observation, observe
from wallaroo_conformance.judge.timed_facts import facts_of_timed
from wallaroo_conformance.judge.timed_observing import TimedObservation, observe_timed

_REMEMBERED = 3_000  # cases, of about 10 KB each


@dataclass(frozen=True)
class Meaning:
    """What a case does on the reference, and the facts it shows."""

    observation: Observation | TimedObservation
    facts: Facts

    @property
    def case(self) -> ConformanceCase:
        """The case."""
        return self.observation.case

    @property
    def trace(self) -> Trace:
        """What an engine must give."""
        return self.observation.trace


class Oracle:
    """Answers what cases mean.

    Args:
        reference: the engine that is right; it must be deterministic.
    """

    def __init__(self, reference: Engine) -> None:
        self.reference = reference
        self._known: OrderedDict[ConformanceCase, Meaning] = OrderedDict()

    def ask(self, cases: Sequence[ConformanceCase]) -> list[Meaning]:
        """Return what each case means, in their order."""
        found = {case: self._known.pop(case) for case in cases if case in self._known}
        new = list(dict.fromkeys(case for case in cases if case not in found))
        plain = [case for case in new if not case.timed]
        for observation in observe(self.reference, plain):
            found[observation.case] = Meaning(observation, facts_of(observation))
        timed = [case for case in new if case.timed]
        for watched in observe_timed(self.reference, timed):
            found[watched.case] = Meaning(watched, facts_of_timed(watched))
        self._known.update(found)
        while len(self._known) > _REMEMBERED:
            self._known.popitem(last=False)
        return [found[case] for case in cases]


@cache
def reference_oracle() -> Oracle:
    """Return the reference engine's oracle, which all checks in this process share."""
    return Oracle(load_engine("reference"))
