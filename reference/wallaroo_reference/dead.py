"""How a message's end travels from where it is found to where the dead letter is written."""

from __future__ import annotations

from wallaroo.trace import Reason


class Dead(Exception):  # noqa: N818 - it is no error of ours, but the end of a message
    """A message cannot go on (dead-1).

    Args:
        reason: why.
        error: what happened, for people.
        error_type: the class's name, where user code raised an exception.
    """

    def __init__(self, reason: Reason, error: str, error_type: str | None = None) -> None:
        super().__init__(error)
        self.reason = reason
        self.error = error
        self.error_type = error_type
