"""Calls of user code: what it raises ends a message or the run (dead-1, dead-3)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from wallaroo.judging import DeadLetterError, raised_by_user_code
from wallaroo.trace import Reason
from wallaroo.user_code.failure import Failure, failure_of

_ENGINE = "wallaroo_reference"


def dead_letter_from(error: BaseException, reason: Reason) -> DeadLetterError:
    """Return the error for a message whose user code raised `error`; removes its traceback."""
    return raised_by_user_code(error, reason, _ENGINE)


def where_it_failed(error: BaseException) -> Failure:
    """Return where user code raised `error`, and remove its traceback."""
    return failure_of(error, _ENGINE)


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
