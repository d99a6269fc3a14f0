"""How the reference engine becomes a mutant: by another interpreter, or by a replaced function.

Functions are replaced only while the mutant runs: the reference runs in the same process and must
stay right.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from types import ModuleType
from typing import Any, TypeAlias

import wallaroo_reference.engine
from wallaroo_conformance.killing import Mutant
from wallaroo_reference.engine import ReferenceEngine
from wallaroo_reference.isolated.interpreter import Interpreter
from wallaroo_reference.machine import Machine

from wallaroo.engine import Capabilities, Case
from wallaroo.records import Record
from wallaroo.trace import Trace

Patch: TypeAlias = tuple[ModuleType | type, str, Any]
"""(module or class, name, replacement)."""


class MutantEngine(ReferenceEngine):
    """The reference engine with a fault.

    Args:
        name: the mutant's name.
        machine: the interpreter to use.
        patches: what to replace while it runs.
    """

    def __init__(
        self,
        name: str,
        machine: type[Interpreter] = Interpreter,
        patches: tuple[Patch, ...] = (),
    ) -> None:
        self.name = name
        self._interpreter = machine
        self._patches = patches

    def capabilities(self) -> Capabilities:
        """Return what it claims: the isolated mode, in which the rules hold for every case."""
        return Capabilities(isolation=frozenset({"isolated"}), live=False)

    def run(self, case: Case) -> Trace:
        """Run a case, with the fault."""
        with patched(self._patches):
            return super().run(case)

    def _machine(self, case: Case) -> Machine:
        return self._interpreter(
            case.application, partitions=case.partitions or 1, on_error=case.on_error
        )


def interpreted(rule: str, name: str, says: str, machine: type[Interpreter]) -> Mutant:
    """Return a mutant that runs another interpreter; for the other arguments see `edge`."""
    return altered(rule, name, says, machine=machine)


def altered(
    rule: str, name: str, says: str, *patches: Patch, machine: type[Interpreter] = Interpreter
) -> Mutant:
    """Return a mutant in which parts of the reference are replaced while it runs."""
    return Mutant(name, rule, says, partial(MutantEngine, name, machine, patches))


@contextmanager
def patched(patches: tuple[Patch, ...]) -> Iterator[None]:
    """Replace the attributes in `patches` inside the block."""
    before = [(module, name, getattr(module, name)) for module, name, _ in patches]
    try:
        for (module, name, replacement), (_, _, original) in zip(patches, before, strict=True):
            refuse_another_call(original, replacement)
            setattr(module, name, replacement)
        yield
    finally:
        for module, name, original in before:
            setattr(module, name, original)


def refuse_another_call(original: Any, replacement: Any) -> None:
    """Refuse a replacement that cannot be called with the same arguments as the original.

    It would fail at its first call, and the mutant would be killed for that and not for its fault.

    Raises:
        TypeError: it takes other arguments; change the mutant as the original was changed.
    """
    if not callable(original) or not callable(replacement):
        return
    try:
        parameters = inspect.signature(original).parameters.values()
        taken = inspect.signature(replacement)
    except ValueError:  # a builtin without a readable signature
        return
    wanted = [one for one in parameters if one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)]
    by_place = [one for one in wanted if one.kind is not one.KEYWORD_ONLY]
    ways = [len(by_place), min(1, len(by_place))]  # all arguments by position, or only `self`
    if not any(_takes(taken, wanted, places) for places in ways):
        raise TypeError(f"{replacement!r} cannot be called as {original!r} is")


def _takes(taken: inspect.Signature, given: Sequence[inspect.Parameter], places: int) -> bool:
    """Whether a call fits, with the first arguments by position and the others by name."""
    try:
        taken.bind(*[None] * places, **{one.name: None for one in given[places:]})
    except TypeError:
        return False
    return True


def batches_replaced(replacement: Callable[[Case], list[list[Record]]]) -> Patch:
    """Return a patch of how a case's input is divided into batches."""
    return (wallaroo_reference.engine, "_batches", replacement)


def edge(
    rule: str, name: str, says: str, owner: Any, attribute: str, make: Callable[[Any], Any]
) -> Mutant:
    """Return a mutant of the reference engine's that only a live server shows.

    Args:
        rule: the rule it breaks.
        name: what it does wrong.
        says: a similar mistake in real engines.
        owner: the class that is altered, for the time of the check.
        attribute: which of its attributes.
        make: makes the broken attribute of the right one.
    """

    def during() -> AbstractContextManager[None]:
        return patched(((owner, attribute, make(owner.__dict__[attribute])),))

    return Mutant(name, rule, says, ReferenceEngine, "edges", shown_by="live", during=during)
