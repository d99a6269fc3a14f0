"""A finding about an application."""

from __future__ import annotations

from dataclasses import dataclass

from wallaroo.trace import InputLog


@dataclass(frozen=True)
class AppFinding:
    """Something about the application that makes its results differ.

    Args:
        kind: what its results depend on, or what is wrong.
        step: the step's, decoder's or encoder's name.
        key: the entity's key for people, empty without one.
        text: what was seen.
        log: the smallest input found that shows it.
    """

    kind: str
    step: str
    key: str
    text: str
    log: InputLog
