"""The error that carries a message's end to where its dead letter is written."""

from __future__ import annotations

from wallaroo.trace import Reason, describe_error


class DeadLetterError(Exception):
    """A message cannot go on (dead-1), or the whole run cannot (dead-3).

    Args:
        reason: why the message cannot go on; `None` if user code raised `SystemExit` or
            `KeyboardInterrupt`: that ends the run and makes no dead letter.
        error: what happened, for people.
        error_type: the exception's class name, if user code raised one.
    """

    def __init__(self, reason: Reason | None, error: str, error_type: str | None = None) -> None:
        super().__init__(error)
        self.reason = reason
        self.error = error
        self.error_type = error_type


def dead_letter_from(error: BaseException, reason: Reason) -> DeadLetterError:
    """Return the error for a message whose user code raised `error`.

    The traceback of `error` is removed. User code may keep one exception and raise it many times,
    and its traceback would grow each time and keep old messages in memory.
    """
    if not isinstance(error, Exception):
        return DeadLetterError(None, describe_error(error), type(error).__name__)
    BaseException.with_traceback(error, None)
    return DeadLetterError(reason, describe_error(error), type(error).__name__)
