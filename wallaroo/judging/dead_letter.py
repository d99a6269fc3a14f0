"""The error that ends the processing of a message; whoever catches it makes the dead letter."""

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


def raised_by_user_code(error: BaseException, reason: Reason, engine: str) -> DeadLetterError:
    """Return the error for a message whose user code raised `error`; removes its traceback.

    Args:
        error: what user code raised.
        reason: of the dead letter; an exception that ends the run has none (dead-3).
        engine: the engine's package, whose frames are not the user's.
    """
    if not isinstance(error, Exception):
        return DeadLetterError(None, describe_error(error), type(error).__name__)
    return DeadLetterError(
        reason, describe_error(error), type(error).__name__, failure_of(error, engine)
    )
