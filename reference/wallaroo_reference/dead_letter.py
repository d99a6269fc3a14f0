"""The error that carries a message's end to where its dead letter is written."""

from __future__ import annotations

from wallaroo.trace import Reason
from wallaroo.user_code.failure import Failure, describe_error, failure_of


class DeadLetterError(Exception):
    """A message cannot go on (dead-1), or the whole run cannot (dead-3).

    Args:
        reason: why the message cannot go on; `None` if user code raised `SystemExit` or
            `KeyboardInterrupt`: that ends the run and makes no dead letter.
        error: what happened, for people.
        error_type: the exception's class name, if user code raised one.
        failure: where user code raised it.
    """

    def __init__(
        self,
        reason: Reason | None,
        error: str,
        error_type: str | None = None,
        failure: Failure = Failure(),  # noqa: B008 - it cannot be changed
    ) -> None:
        super().__init__(error)
        self.reason = reason
        self.error = error
        self.error_type = error_type
        self.failure = failure


def dead_letter_from(error: BaseException, reason: Reason) -> DeadLetterError:
    """Return the error for a message whose user code raised `error`; removes its traceback."""
    if not isinstance(error, Exception):
        return DeadLetterError(None, describe_error(error), type(error).__name__)
    return DeadLetterError(
        reason, describe_error(error), type(error).__name__, where_it_failed(error)
    )


def where_it_failed(error: BaseException) -> Failure:
    """Return where user code raised `error`, and remove its traceback."""
    return failure_of(error, "wallaroo_reference")
