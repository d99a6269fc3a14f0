"""What is done with a message at nodes that pass it on unchanged.

Branches, merges, key extractors and `collect` (graph-2, graph-3, key-1, key-2). As in
`worker.nodes`, there is a function for each node, made for one flow.
"""

from __future__ import annotations

from typing import Any

from wallaroo.operations import Branch, KeyBy
from wallaroo.trace import Reason
from wallaroo_spark.wire.lineages import Lineage
from wallaroo_spark.worker.calls import SINGLE, Calls
from wallaroo_spark.worker.nodes import TakeMessage


def branch(operation: Branch, follow: TakeMessage) -> TakeMessage:
    """Return the function of a branch: its number enters the lineage."""
    number = operation.number

    def take(lineage: Lineage, value: Any, frozen: Any) -> None:
        follow((*lineage, number), value, frozen)

    return take


def collect(calls: Calls, follow: TakeMessage) -> TakeMessage:
    """Return the function that gives every message the same key."""

    def take(lineage: Lineage, value: Any, frozen: Any) -> None:
        _follow_with(calls, SINGLE, follow, lineage, value, frozen)

    return take


def key_by(calls: Calls, index: int, operation: KeyBy, follow: TakeMessage) -> TakeMessage:
    """Return the function that finds a message's key, which stays with the message."""
    place, printer, failed = calls.program.places[index], calls.printer, calls.failed
    known, judge = calls.program.keys[index].known, calls.program.keys[index].judge
    again = calls.again
    name, call = place.name, calls.reported(operation.route.call, place)

    def take(lineage: Lineage, value: Any, frozen: Any) -> None:
        printer.step = name
        try:
            made = call(value)
            memory = known.get(type(made))
            key, _ = (memory and memory.get(made)) or judge(made)
        except BaseException as error:  # noqa: BLE001 - dead-3: all that user code raises
            failed(place, lineage, Reason.RAISED, error)
            return
        _follow_with(calls, key, follow, lineage, again(value, frozen), frozen)

    return take


def _follow_with(
    calls: Calls, key: bytes, follow: TakeMessage, lineage: Lineage, value: Any, frozen: Any
) -> None:
    """Take a message on with another key; after it, the earlier key is set again."""
    before, calls.key = calls.key, key
    follow(lineage, value, frozen)
    calls.key = before
