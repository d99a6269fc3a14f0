"""What this engine does not run yet, refused before any input is read (build-2)."""

from __future__ import annotations

from wallaroo.errors import UnsupportedTopology
from wallaroo.parts import second_part_of
from wallaroo.topology import Application

_NOT_RUN = frozenset({"window-1"})
"""Rules of the second part whose use is refused in every run."""

_NOT_SERVED = frozenset({"graph-4", "key-4", "window-1"})
"""Rules of the second part whose use is refused in a live run: it writes no ticks and no ends."""


def refuse_unsupported(application: Application) -> None:
    """Refuse what a run over a bounded log does not support.

    Raises:
        UnsupportedTopology: names the first rule and step.
    """
    _refuse(application, _NOT_RUN, "Spark does not run this yet")


def refuse_unserved(application: Application) -> None:
    """Refuse what a live run does not support.

    Raises:
        UnsupportedTopology: names the first rule and step.
    """
    _refuse(application, _NOT_SERVED, "Spark runs this over a bounded input only, not live")


def _refuse(application: Application, rules: frozenset[str], why: str) -> None:
    for rule, step in second_part_of(application):
        if rule in rules:
            raise UnsupportedTopology(rule, step, f"{why}. Write: --engine reference")
