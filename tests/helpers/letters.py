"""A dead letter, for tests of what becomes of it."""

from typing import Any

from wallaroo.trace import DeadLetter, Reason


def dead_letter(**changes: Any) -> DeadLetter:
    """Return a dead letter of a step, with some changes."""
    fields = {
        "lineage": (3, 1),
        "source": "p",
        "pipeline": "p",
        "step": "count",
        "position": 1,
        "sink": None,
        "key": "k",
        "reason": Reason.RAISED,
        "error_type": "ValueError",
        "error": "it\nbroke \x1b[31m",
        "payload": b"\xff\x00",
    }
    return DeadLetter(**{**fields, **changes})
