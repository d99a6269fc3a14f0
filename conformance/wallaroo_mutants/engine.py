"""Attributes that are replaced while a mutant of the Spark engine runs."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import ModuleType
from typing import Any, TypeAlias

Patch: TypeAlias = tuple[ModuleType | type, str, Any]
"""(module or class, name, replacement)."""


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
