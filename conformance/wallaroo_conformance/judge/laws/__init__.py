"""The laws: which rule a case speaks about, and which difference from the reference breaks it.

A law holds for a case if the engine's whole trace is the reference's: outputs to the byte and in
order, dead letters, final entities. A case *exercises* a law if it has met the facts the law needs.
The order of `LAWS` is from special things, which a reduction removes if it can (batches, a second
source, a mark in a payload), to what every case has. `wallaroo_conformance.judge.blaming` says
which of them a failing case breaks.
"""

from __future__ import annotations

from wallaroo_conformance.judge.fact import Fact, Facts
from wallaroo_conformance.judge.law import Law, law
from wallaroo_conformance.judge.laws.plain import PLAIN_LAWS
from wallaroo_conformance.judge.laws.results import RESULT_LAWS
from wallaroo_conformance.judge.laws.routing import ROUTING_LAWS
from wallaroo_conformance.judge.laws.runs import RUN_LAWS
from wallaroo_conformance.judge.laws.state import STATE_LAWS
from wallaroo_conformance.judge.laws.timed import TIMED_LAWS

LAWS: tuple[Law, ...] = (
    *(*RUN_LAWS, *ROUTING_LAWS, *STATE_LAWS, *RESULT_LAWS, *TIMED_LAWS),
    *PLAIN_LAWS,
)
"""From the most special to what every case has; see the module's docstring."""


OF_TIMED_CASES = frozenset(law.id for law in TIMED_LAWS)
"""Laws that only timed cases can exercise, by their ids; some are of rules of the first part."""


def exercised(facts: Facts) -> tuple[Law, ...]:
    """Return the laws that a case with these facts exercises."""
    return tuple([law for law in LAWS if law.needs <= facts])


ANSWERS = law(
    "build-2/answers",
    {Fact.DECODED},
    "an engine that cannot run an application says so when it is asked, before it reads input",
    "check() accepts what run() then refuses",
)
"""Blamed for `UnsupportedTopology` from `run`, which no difference of traces shows."""
