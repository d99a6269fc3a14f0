"""Mutants killed side by side: what only a live server shows is mostly waited for."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from wallaroo_conformance.killing import Mutant, installed_mutants, kill

_TRIES = 3  # some show only at a moment that a busy machine may miss, such as a stop's
_AT_A_TIME = 6  # each waits up to three seconds for something that never comes
_IMPORTED = [
    *("wallaroo_conformance.killing", "wallaroo_reference.serving.server"),
    *("wallaroo_mutants.catalogue", "wallaroo_mutants.spark"),
]


def kills(mutants: Sequence[Mutant]) -> dict[str, tuple[bool, str]]:
    """Return for each mutant's name whether it was killed as it must be, and what was found."""
    names = [mutant.name for mutant in mutants]
    # A mutant changes the whole process while it is checked, so each needs one. They are forked
    # from a process that has imported everything and done nothing.
    context = get_context("forkserver")
    context.set_forkserver_preload(_IMPORTED)
    with ProcessPoolExecutor(_AT_A_TIME, context) as pool:
        return dict(zip(names, pool.map(_killed, names), strict=True))


def _killed(name: str) -> tuple[bool, str]:
    [mutant] = [one for one in installed_mutants() if one.name == name]
    for _ in range(_TRIES):
        came = kill(mutant, seed=1)
        if came.ok:
            break
    return came.ok, f"{name}: breaks {mutant.rule}, found {came.rules}"
