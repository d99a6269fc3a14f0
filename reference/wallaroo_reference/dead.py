"""How a message's end travels from where it is found to where the dead letter is written."""

from __future__ import annotations

from wallaroo.trace import Reason, describe_error


class Dead(Exception):  # noqa: N818 - it is no error of ours, but the end of a message
    """A message cannot go on (dead-1), or the whole run cannot (dead-3).

    Args:
        reason: why; `None`: `SystemExit` or its like, which is no dead letter but the run's end.
        error: what happened, for people.
        error_type: the class's name, where user code raised an exception.
    """

    def __init__(self, reason: Reason | None, error: str, error_type: str | None = None) -> None:
        super().__init__(error)
        self.reason = reason
        self.error = error
        self.error_type = error_type


def dead_by(error: BaseException, reason: Reason) -> Dead:
    """Return what becomes of a message whose user code raised `error`.

    Its traceback is let go: user code may keep `error` and raise it again and again, and each time
    the traceback would grow by what was called then, with the messages there.
    """
    if not isinstance(error, Exception):
        return Dead(None, describe_error(error), type(error).__name__)
    BaseException.with_traceback(error, None)
    return Dead(reason, describe_error(error), type(error).__name__)
