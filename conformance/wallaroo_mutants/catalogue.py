"""The mutants that this package's files describe, as `wallaroo_conformance.killing` runs them.

Each file says its mutants' home. A table of it is a mutant: its name stands in the table of the
rule that it breaks, or under ``equivalent``, if it breaks none::

    [compute-1."falsy filtered"]
    says = "a similar mistake in real engines"
    in = "module:qualified.name"
    before = "the text that is replaced"  # without it, `after` goes before the first statement
    after = "the text instead"

``in``, ``before`` and ``after`` may be lists: several changes that make one fault.
`wallaroo_mutants.patching.Change` says more about the texts.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.resources import files
from itertools import chain
from typing import Any

from wallaroo_conformance.killing import Mutant
from wallaroo_reference.engine import CompiledEngine, ReferenceEngine

from wallaroo.engine import Capabilities, Case, Engine
from wallaroo.topology import Application
from wallaroo.trace import Trace
from wallaroo_mutants.patching import Change, Patch


@dataclass(frozen=True)
class Entry:
    """A mutant as a file describes it.

    Args:
        name, rule, says, home: those of the `Mutant`.
        patch: the fault.
    """

    name: str
    rule: str
    says: str
    home: str
    patch: Patch


def read(*homes: str) -> Iterator[Entry]:
    """Yield what the files describe, of these homes or of all."""
    for file in sorted(files("wallaroo_mutants").iterdir(), key=lambda file: file.name):
        if file.name.endswith(".toml"):
            tables = tomllib.loads(file.read_text("utf-8"))
            home = tables.pop("home")
            for rule, mutants in tables.items() if not homes or home in homes else ():
                for name, table in mutants.items():
                    yield _entry(name, rule, home, table)


def _entry(name: str, rule: str, home: str, table: dict[str, Any]) -> Entry:
    places, before, after = (_listed(table.get(key, "")) for key in ("in", "before", "after"))
    if len(places) == 1:
        places *= len(after)
    changes = tuple(map(Change, places, before, after))
    assert len(changes) == len(places) == len(before) == len(after), f"{name}: lists of one length"
    breaks = "" if rule == "equivalent" else rule
    return Entry(name, breaks, table["says"], home, Patch(name, changes))


def _listed(value: Any) -> list[str]:
    return value if isinstance(value, list) else [value]


class MutantEngine:
    """An engine that has a fault while it runs cases.

    Args:
        name: the mutant's name.
        engine: the engine.
        patch: the fault.
        claims: what the engine claims, as far as the fault is looked for.
    """

    def __init__(self, name: str, engine: Engine, patch: Patch, claims: Capabilities) -> None:
        self.name = name
        self.patch = patch
        self._engine = engine
        self._claims = claims
        self.serve = engine.serve
        self.add_arguments = engine.add_arguments

    def capabilities(self) -> Capabilities:
        """Return what it claims."""
        return self._claims

    def check(self, application: Application) -> None:
        """Refuse what the engine refuses."""
        self._engine.check(application)

    def run(self, case: Case) -> Trace:
        """Run a case, with the fault."""
        with self.patch.in_place():
            return self._engine.run(case)

    def run_many(self, cases: Sequence[Case]) -> Sequence[Trace | Exception]:
        """Run cases, with the fault."""
        with self.patch.in_place():
            return self._engine.run_many(cases)


_ISOLATED = Capabilities(isolation=frozenset({"isolated"}), live=False, kafka=True)
_RUN: dict[str, tuple[Callable[[], Engine], Capabilities]] = {
    "reference": (ReferenceEngine, _ISOLATED),
    "compiled": (CompiledEngine, CompiledEngine().capabilities()),
}
"""By home, the engine that runs cases, and what is claimed of it."""


def broken(*names: str, claims: Capabilities = _ISOLATED) -> MutantEngine:
    """Return the reference with the faults of these mutants."""
    changes = [entry.patch.changes for entry in read("reference") if entry.name in names]
    assert len(changes) == len(names), f"there is no such mutant: {names}"
    patch = Patch(" and ".join(names), tuple(chain(*changes)))
    return MutantEngine(patch.name, ReferenceEngine(), patch, claims)


def mutants() -> list[Mutant]:
    """Return all but Spark's: the entry point of the group ``wallaroo.mutants``."""
    return [
        _mutant(entry) for entry in read("reference", "compiled", "edges", "language", "brokers")
    ]


def _mutant(entry: Entry) -> Mutant:
    fields = (entry.name, entry.rule, entry.says)
    if entry.home in _RUN:
        make, claims = _RUN[entry.home]
        made = partial(MutantEngine, entry.name, make(), entry.patch, claims)
        return Mutant(*fields, made, entry.home)
    shown_by: Any = "live" if entry.home == "edges" else entry.home
    during = entry.patch.in_place
    return Mutant(*fields, ReferenceEngine, entry.home, shown_by=shown_by, during=during)
