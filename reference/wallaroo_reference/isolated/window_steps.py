"""The windows of a window step, by their kind."""

from __future__ import annotations

from wallaroo.operations import Windowed
from wallaroo.windows import RangeWindows, SessionWindows
from wallaroo_reference.isolated.counts import CountStep
from wallaroo_reference.isolated.ranges import RangeStep
from wallaroo_reference.isolated.sessions import SessionStep
from wallaroo_reference.isolated.windows import Freeze, WindowStep


def window_step(operation: Windowed, freeze: Freeze) -> WindowStep:
    """Return the windows of a step, none of them open yet."""
    windows = operation.windows
    if isinstance(windows, RangeWindows):
        return RangeStep(operation, windows, freeze)
    if isinstance(windows, SessionWindows):
        return SessionStep(operation, windows, freeze)
    return CountStep(operation, windows, freeze)
