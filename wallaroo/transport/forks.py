"""What a child that user code forks must do first, so that it is no second engine.

A forked child has the engine's sockets too. As long as it holds them, a sender learns nothing of
the engine's death, and the addresses cannot be listened on again. So it closes them.
"""

from __future__ import annotations

import os
import sys
import weakref
from collections.abc import Callable
from types import MethodType
from typing import Any, cast

_methods: set[weakref.WeakMethod[Any]] = set()
_forked_at = "somewhere"


def in_child(method: Callable[[], object]) -> None:
    """Have a bound method called in each forked child, for as long as its object lives."""
    bound = cast(MethodType, method)
    _methods.add(weakref.WeakMethod(bound, _methods.discard))


def forked_at() -> str:
    """Return, in a child, which function forked it and where: ``NAME (FILE, line N)``."""
    return _forked_at


def _after_fork() -> None:
    global _forked_at  # noqa: PLW0603 - of a process there is one
    code = (frame := sys._getframe(1)).f_code  # the only way to learn who forked
    _forked_at = f"{code.co_name} ({code.co_filename}, line {frame.f_lineno})"
    for reference in list(_methods):
        if (method := reference()) is not None:
            method()


os.register_at_fork(after_in_child=_after_fork)
