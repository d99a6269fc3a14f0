"""The oracle: what cases mean, and which laws they exercise.

The reference says so of every engine's cases but its own: of these the definition says so
([why](../../../docs/decisions/definition.md)).

It remembers its latest answers. A check asks for the same cases again while it reduces; checks with
one seed, such as those of mutants, ask for the same thousands.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from typing import Protocol

from wallaroo.engine import Case, Engine, load_engine
from wallaroo.trace import Trace
from wallaroo.user_code.calls import instrument
from wallaroo_conformance.cases.building import assemble, engine_case
from wallaroo_conformance.cases.case import ConformanceCase
from wallaroo_conformance.definition import Definition
from wallaroo_conformance.judge.exercising import laws_exercised
from wallaroo_conformance.judge.observing import Observer

REFERENCE = "reference"
"""The engine that all others are judged by."""

_REMEMBERED = 3_000  # cases, of about 10 KB each


class Judging(Protocol):
    """What says how a case must end: an engine, or the definition."""

    @property
    def name(self) -> str:
        """Its name."""

    def run(self, case: Case) -> Trace:
        """Run one bounded case."""


@dataclass(frozen=True)
class Meaning:
    """What a case must do.

    Args:
        case: the case.
        trace: what an engine must give.
        exercised: ids of the laws that it exercises.
        judged_by: the name of what says so.
    """

    case: ConformanceCase
    trace: Trace
    exercised: frozenset[str]
    judged_by: str = REFERENCE


class Oracle:
    """Answers what cases mean.

    Args:
        reference: what is right; it must be deterministic.
        finder: the engine that knows an application's findings, if `reference` does not.
    """

    def __init__(self, reference: Judging, finder: Engine | None = None) -> None:
        self.reference = reference
        self._finder = finder
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
        """Run a case on what is right, isolated, and watch the calls of user code.

        A case for `trusting` mode is searched thoroughly for findings, because that mode is
        promised only to applications without any.
        """
        isolated = replace(case, isolation="isolated", codec=case.asks_codec)
        application = assemble(isolated)
        observer = Observer(case, application)
        watched = instrument(application, observer.around)
        options = {"thorough": case.isolation == "trusting"}
        trace = self.reference.run(engine_case(isolated, watched, options))
        if self._finder is not None and case.isolation == "trusting":
            with suppress(Exception):  # it is under check, and raises there too
                found = self._finder.run(engine_case(isolated, options=options))
                trace = replace(trace, findings=found.findings)
        exercised = laws_exercised(case, application, trace, observer)
        return Meaning(case, trace, exercised, self.reference.name)


@cache
def reference_oracle() -> Oracle:
    """Return the reference engine's oracle, which all checks in this process share."""
    return Oracle(load_engine(REFERENCE))


@cache
def definition_oracle() -> Oracle:
    """Return the definition's oracle, which all checks in this process share."""
    return Oracle(Definition(), load_engine(REFERENCE))


def oracle_for(engine: Engine) -> Oracle:
    """Return the oracle that judges an engine."""
    return definition_oracle() if engine.name == REFERENCE else reference_oracle()
