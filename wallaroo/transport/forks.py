"""What a process forked by user code must do first, so that it does not act as a second engine.

A forked child inherits the engine's sockets. While it keeps them open, senders do not notice the
engine's death, and no other process can listen on the addresses. So the child closes them.
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
    """Call a bound method in each forked child, as long as its object exists."""
    bound = cast(MethodType, method)
    _methods.add(weakref.WeakMethod(bound, _methods.discard))


def forked_at() -> str:
    """Return, in a forked child, the function that forked it: ``NAME (FILE, line N)``."""
    return _forked_at


def _after_fork() -> None:
    global _forked_at  # noqa: PLW0603 - of a process there is one
    code = (frame := sys._getframe(1)).f_code  # the only way to find the function that forked
    _forked_at = f"{code.co_name} ({code.co_filename}, line {frame.f_lineno})"
    for reference in list(_methods):
        if (method := reference()) is not None:
            method()


os.register_at_fork(after_in_child=_after_fork)
