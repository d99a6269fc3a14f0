"""The laws: which rule a case speaks about, and which difference from the reference breaks it.

A law holds for a case if the engine's whole trace is the reference's: outputs to the byte and in
order, dead letters, final entities. A case *exercises* a law if it has met the facts the law needs.
When a case fails, it is reduced first; then everything in it is needed for the failure. The *blame*
falls on the first law in `LAWS` that the reduced case exercises and that is about this kind of
difference. The order of `LAWS` is from special things, which a reduction removes if it can
(batches, a second source, a mark in a payload), to what every case has. A law of time or windows is
passed over if most of the other failing cases do not exercise it, or do not show what it shows in
every case: then it is not why they fail.
"""

from __future__ import annotations

from collections.abc import Sequence

from wallaroo_conformance.judge.fact import Fact, Facts
from wallaroo_conformance.judge.law import Evidence, Law, law
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


def exercised(facts: Facts) -> tuple[Law, ...]:
    """Return the laws that a case with these facts exercises."""
    return tuple([law for law in LAWS if law.needs <= facts])


def blame(found: Evidence, ended: str | None = None, others: Sequence[Evidence] = ()) -> Law:
    """Return the law that a reduced case breaks.

    Args:
        found: what the case shows.
        ended: how the run ended early, of `end_of`. Where the ends differ, that is the failure: if
            the case failed without an early end, the reduction would have removed it.
        others: what other cases show that fail and that nothing explains yet.
    """
    if "ended" in found.kinds and ended is not None:
        return _ENDS[ended]
    laws = [law for law in LAWS if law.blamed_for(found)]
    first = next(iter(laws), _EXACT)
    if first not in TIMED_LAWS:
        return first
    shared = [law for law in laws if law not in _GENERAL and _speak_of(law, others)]
    return next(iter(shared), first)


def _speak_of(law: Law, others: Sequence[Evidence]) -> bool:
    """Whether most cases exercise a law, and show its signs if these come with every failure."""
    always = bool(law.signs & _IN_EVERY_CASE)
    speak = [law.fits(one) if always else law.exercised_by(one.facts) for one in others]
    return sum(speak) >= _MOST * len(others)


_MOST = 3 / 4  # of the cases that fail
_IN_EVERY_CASE = {"more late"}
"""Signs that an engine shows wherever it breaks a law about them; others show in reduced cases."""
_BY_ID = {law.id: law for law in LAWS}
_GENERAL = frozenset({*PLAIN_LAWS, _BY_ID["graph-1/topology"], _BY_ID["time-1/tick"]})
"""Laws about what most cases have: it says nothing that failing cases exercise them."""
_EXACT = _BY_ID["order-2/exact"]
_ENDS = {"on-error": _BY_ID["dead-4/stop"], "exit": _BY_ID["dead-3/exit"]}

ANSWERS = law(
    "build-2/answers",
    {Fact.DECODED},
    "an engine that cannot run an application says so when it is asked, before it reads input",
    "check() accepts what run() then refuses",
)
"""Blamed for `UnsupportedTopology` from `run`, which no difference of traces shows."""
