"""The window steps of an application, and which windows each has."""

from __future__ import annotations

from wallaroo.operations import Windowed
from wallaroo.topology import Application, Step
from wallaroo.windows import RangeWindows, SessionWindows
from wallaroo_reference.compiled.clocks import Times
from wallaroo_reference.compiled.counts import Counts
from wallaroo_reference.compiled.ranges import RangePanes
from wallaroo_reference.compiled.sessions import Sessions
from wallaroo_reference.compiled.windows import KeptWindows


def windows_of(application: Application, index: int, times: Times) -> KeptWindows:
    """Return the windows of the step at a node, none of them open yet."""
    operation = windowed(application, index)
    kind: type[KeptWindows] = Counts
    if isinstance(operation.windows, RangeWindows):
        kind = RangePanes
    elif isinstance(operation.windows, SessionWindows):
        kind = Sessions
    return kind(operation, application.ways[index], times)


def windowed(application: Application, index: int) -> Windowed:
    """Return the operation of the window step at a node."""
    step = application.nodes[index]
    assert isinstance(step, Step)
    assert isinstance(step.operation, Windowed)
    return step.operation
