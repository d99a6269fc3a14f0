"""Mutants of the language: a builder that accepts what it must refuse, or refuses what it must not.

They are no engines; what shows them is the check of the language that every check includes.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from wallaroo_conformance.killing import Mutant
from wallaroo_reference.engine import ReferenceEngine

import wallaroo.builder
from wallaroo.builder import ApplicationBuilder
from wallaroo_mutants.engine import Patch, patched


def _accepted(*_: Any) -> None:
    """Refuse nothing."""


def _without_where(_self: Any, _where: str, of: Any, component: Any) -> Any:
    return of(component)


def _mutant(rule: str, name: str, says: str, *patches: Patch) -> Mutant:
    def during() -> AbstractContextManager[None]:
        return patched(patches)

    return Mutant(name, rule, says, ReferenceEngine, "language", shown_by="language", during=during)


LANGUAGE_MUTANTS: tuple[Mutant, ...] = (
    _mutant(
        "build-1",
        "pipelines without an end accepted",
        "found out when nothing comes out",
        (ApplicationBuilder, "_refuse_open_pipeline", _accepted),
    ),
    _mutant(
        "build-1",
        "errors that do not say where",
        "a message passed on as it came",
        (ApplicationBuilder, "_try", _without_where),
    ),
    _mutant(
        "state-8",
        "equal builders refused",
        "compared by `is`",
        (wallaroo.builder, "_same_builder", lambda one, other: one is other),
    ),
)
