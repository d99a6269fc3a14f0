"""What the windows of two traces say: whether their bounds differ, or only what is in them.

The suite's own aggregations put a window's bounds behind its texts, as in ``a 10 m+m'@0-10``.
"""

from __future__ import annotations

import re
from collections import Counter

from wallaroo.trace import Trace

_BOUNDS = re.compile(rb"@(-?\d+)-(-?\d+)\n")
_OF_SEVERAL = re.compile(rb"\+[^@]*" + _BOUNDS.pattern)

Bounds = tuple[int, int]


def bounds_of(trace: Trace, *, opened: bool = True) -> Counter[Bounds]:
    """Return the bounds of the windows that a trace shows: fired and, if `opened`, open."""
    found = Counter([(one.start, one.end) for one in trace.windows] if opened else [])
    for outputs in trace.outputs.values():
        for output in outputs:
            found.update([(int(start), int(end)) for start, end in _BOUNDS.findall(output)])
    return found


def lost_whole(wanted: Trace, given: Counter[Bounds]) -> bool:
    """Whether a fired window of several messages is not there at all, neither fired nor open.

    Args:
        wanted: a right trace.
        given: bounds of an engine's windows.
    """
    return any(
        (int(start), int(end)) not in given
        for outputs in wanted.outputs.values()
        for output in outputs
        for start, end in _OF_SEVERAL.findall(output)
    )


def late_alone(wanted: Counter[Bounds], given: Counter[Bounds]) -> int:
    """Return how many windows of a single late message there are that must not be (window-6).

    If there are as many as there must be, they may be count windows that have other event times.
    """
    alone = [
        sum(count for (start, end), count in bounds.items() if end == start + 1)
        for bounds in (wanted, given)
    ]
    return max(alone[1] - alone[0], 0)


def window_signs(wanted: Counter[Bounds], given: Counter[Bounds]) -> set[str]:
    """Return the signs of the windows' bounds.

    ``same bounds``: they do not differ; ``other ends``: they differ in their ends alone; ``new
    bounds``: no right window has some of them.

    Args:
        wanted: bounds of the right windows.
        given: bounds of an engine's windows.
    """
    if wanted == given:
        return {"same bounds"} if wanted else set()
    found = set()
    starts = [Counter([start for start, _ in bounds.elements()]) for bounds in (wanted, given)]
    if starts[0] == starts[1]:
        found.add("other ends")
    if any(end > start + 1 for start, end in given.keys() - wanted.keys()):
        found.add("new bounds")
    return found
