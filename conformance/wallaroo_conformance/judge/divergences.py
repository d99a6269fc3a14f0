"""Known divergences: where an engine is known to differ, why, and until when that is accepted.

A divergence is a predicate over observed cases, never a list of cases, and expires: from that day
on the rule counts as broken again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date

from wallaroo_conformance.cases.case import ConformanceCase
from wallaroo_conformance.judge.fact import Facts


@dataclass(frozen=True)
class Divergence:
    """An accepted difference.

    Args:
        engine: the engine's name.
        reason: why it differs, and what is meant to be done about it.
        until: the first day on which it is no longer accepted.
        applies: whether it applies to a case with the facts that it has met.
    """

    engine: str
    reason: str
    until: date
    applies: Callable[[ConformanceCase, Facts], bool]


DIVERGENCES: tuple[Divergence, ...] = ()
"""Of this project's own engines: none."""


def known(
    divergences: tuple[Divergence, ...],
    engine: str,
    case: ConformanceCase,
    facts: Facts,
    today: date,
) -> str | None:
    """Return the reason why `engine` may differ on a case today, or `None`."""
    for divergence in divergences:
        accepted = divergence.engine == engine and today < divergence.until
        if accepted and divergence.applies(case, facts):
            return f"known until {divergence.until}: {divergence.reason}"
    return None
