"""The oracle: what cases mean on the reference, and which facts they show.

It remembers its latest answers. A check asks for the same cases again while it reduces; checks with
one seed, such as those of mutants, ask for the same thousands.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

from wallaroo.engine import Engine, load_engine
from wallaroo.trace import Trace
from wallaroo.user_code.calls import instrument
from wallaroo_conformance.cases.building import assemble, engine_case
from wallaroo_conformance.cases.case import ConformanceCase
from wallaroo_conformance.judge.facts import facts_of
from wallaroo_conformance.judge.law import Facts
from wallaroo_conformance.judge.observing import Entity, Observer

_REMEMBERED = 3_000  # cases, of about 10 KB each


@dataclass(frozen=True)
class Meaning:
    """What a case does on the reference.

    Args:
        case: the case.
        trace: what an engine must give.
        facts: what it has met.
        met: for each entity whose key is known, the numbers of the frames that met it.
    """

    case: ConformanceCase
    trace: Trace
    facts: Facts
    met: Mapping[Entity, Sequence[int]]


class Oracle:
    """Answers what cases mean.

    Args:
        reference: the engine that is right; it must be deterministic.
    """

    def __init__(self, reference: Engine) -> None:
        self.reference = reference
        self._remembered: OrderedDict[ConformanceCase, Meaning] = OrderedDict()

    def ask(self, cases: Sequence[ConformanceCase]) -> list[Meaning]:
        """Return what each case means, in their order."""
        found: dict[ConformanceCase, Meaning] = {}
        for case in cases:
            if case in self._remembered:
                found[case] = self._remembered.pop(case)
            elif case not in found:
                found[case] = self._meaning(case)
        self._remembered.update(found)
        while len(self._remembered) > _REMEMBERED:
            self._remembered.popitem(last=False)
        return [found[case] for case in cases]

    def _meaning(self, case: ConformanceCase) -> Meaning:
        """Run a case on the reference, isolated, and watch the calls of user code.

        A case for `trusting` mode is searched thoroughly for findings, because that mode is
        promised only to applications without any.
        """
        application = assemble(case)
        observer = Observer(case, application)
        isolated = case if case.isolation == "isolated" else replace(case, isolation="isolated")
        watched = instrument(application, observer.around)
        options = {"thorough": case.isolation == "trusting"}
        trace = self.reference.run(engine_case(isolated, watched, options))
        return Meaning(case, trace, facts_of(case, application, trace, observer), observer.met)


@cache
def reference_oracle() -> Oracle:
    """Return the reference engine's oracle, which all checks in this process share."""
    return Oracle(load_engine("reference"))
