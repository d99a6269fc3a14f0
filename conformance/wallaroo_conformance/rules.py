"""Which rules this package speaks of: the ids that reports and tests name."""

from __future__ import annotations

from wallaroo_conformance.laws import ANSWERS, LAWS
from wallaroo_conformance.live import LIVE_LAWS
from wallaroo_conformance.metamorphic import RELATIONS

RULES: tuple[str, ...] = tuple(
    sorted(
        {
            *[law.rule for law in LAWS],
            *[relation.rule for relation in RELATIONS],
            *LIVE_LAWS,
            ANSWERS.rule,
            "build-1",
        }
    )
)
"""Every rule that is checked. One of the semantics that is missing here is unguarded."""
