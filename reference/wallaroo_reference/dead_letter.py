"""Makes dead letters of what user code raised, with the user's frames, not this engine's."""

from __future__ import annotations

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
