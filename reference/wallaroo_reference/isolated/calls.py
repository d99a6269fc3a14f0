"""Calls of user code: an exception ends a message or the run (dead-1, dead-3)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from wallaroo.trace import Reason
from wallaroo_reference.dead_letter import dead_letter_from


def call_user_code(call: Callable[..., Any], reason: Reason, *arguments: Any) -> Any:
    """Return what `call` returns.

    Args:
        call: a function of the application.
        reason: of the dead letter, if the call raises.
        arguments: of the call; it may change them.

    Raises:
        DeadLetterError: the call raised.
    """
    try:
        return call(*arguments)
    except BaseException as error:
        raise dead_letter_from(error, reason) from error
