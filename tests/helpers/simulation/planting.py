"""How a fault is put into the engine, for as long as a simulation looks for it."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from unittest import mock

from simulation.machine import not_syncing


@dataclass(frozen=True)
class Planted:
    """A fault.

    Args:
        subject: what is simulated to find it.
        what: in words.
        plant: a context in which the engine has it.
        runs: number of runs in which it has been found; `make test` looks for those found soon.
    """

    subject: str
    what: str
    plant: Callable[[], contextlib.AbstractContextManager[Any]]
    runs: int


PLANTED: list[Planted] = []


def plant(
    subject: str, what: str, owner: Any, name: str, *, runs: int = 20
) -> Callable[[Any], Any]:
    """Plant a function in place of one of the engine's, which it is given first."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        right = getattr(owner, name)

        @functools.wraps(right)
        def wrong(*arguments: Any, **more: Any) -> Any:
            return function(right, *arguments, **more)

        PLANTED.append(Planted(subject, what, lambda: mock.patch.object(owner, name, wrong), runs))
        return function

    return decorate


def without(
    subject: str, what: str, *places: tuple[Any, str], kind: type | None = None, runs: int = 20
) -> None:
    """Plant functions that do nothing, or do not sync a kind of node."""

    def planted() -> contextlib.AbstractContextManager[Any]:
        stack = contextlib.ExitStack()
        for owner, name in places:
            right = getattr(owner, name)

            @functools.wraps(right)
            def wrong(*arguments: Any, right: Any = right, **more: Any) -> Any:
                if kind is None:
                    return None
                with not_syncing(kind):
                    return right(*arguments, **more)

            stack.enter_context(mock.patch.object(owner, name, wrong))
        return stack

    PLANTED.append(Planted(subject, what, planted, runs))
