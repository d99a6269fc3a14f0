"""Mutants of the language: a builder that accepts what it must refuse, or refuses what it must not.

They are not engines: the check of the language, which is part of every check, finds them.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from wallaroo_conformance.killing import Mutant
from wallaroo_reference.engine import ReferenceEngine

import wallaroo.building.builder
import wallaroo.building.declarations
import wallaroo.building.pipeline
import wallaroo.windows
from wallaroo.building.builder import ApplicationBuilder
from wallaroo.errors import WallarooParameterError
from wallaroo.keys import Key
from wallaroo_mutants.engine import Patch, patched


def _accepted(*_: Any) -> None:
    """Refuse nothing."""


def _without_where(_self: Any, _where: str, of: Any, component: Any) -> Any:
    return of(component)


_leading_to = wallaroo.building.pipeline._leading_to
_checked_keys = wallaroo.building.declarations.checked_keys


def _no_empty_list(where: str, keys: Any, *, u64: bool) -> tuple[Key, ...]:
    if not keys:
        raise WallarooParameterError(f"{where}: partition_keys is empty")
    return _checked_keys(where, keys, u64=u64)


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
        "build-1",
        "steps called by their functions",
        "two names for one step, and the report knows the other",
        (wallaroo.building.builder, "declared_name", _accepted),
    ),
    _mutant(
        "route-3",
        "an empty list of keys refused",
        "though it is the published default",
        (wallaroo.building.builder, "checked_keys", _no_empty_list),
    ),
    _mutant(
        "state-8",
        "equal builders refused",
        "compared by `is`",
        (wallaroo.building.declarations, "_same_builder", lambda one, other: one is other),
    ),
    _mutant(
        "graph-1",
        "only the last pipeline built",
        "one result where there are several",
        (wallaroo.building.pipeline, "_leading_to", lambda given: _leading_to(given[-1:])),
    ),
    _mutant(
        "graph-5",
        "two steps of one name accepted",
        "found out when two are blamed for one",
        (wallaroo.building.pipeline._Building, "_refuse_same_name", _accepted),
    ),
    _mutant(
        "window-1",
        "a parameter given twice accepted",
        "the last one counts",
        (wallaroo.windows, "_once", lambda _what, given, _call: given),
    ),
)
