"""An application's code, run from one state partition to the next.

A `Flow` takes frames (`decode`) or messages that stand before a state step (`visit`) and follows
each, depth first, through stateless steps, through state steps of the component it holds, and into
sinks. Where a message needs an entity that is held elsewhere, its key is found here and the message
goes into the outbox. What is done at each node is a function (`worker.nodes`), made when the first
message comes to it.

In trusting mode a flow raises `NeedsIsolation` where the rules cannot be kept without copies (a
state computation failed and its entity may be half changed): the caller then takes the same
messages again, isolated.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

from wallaroo.topology import Sink, Source, Stateful, Step
from wallaroo.trace import Lineage, Reason
from wallaroo_spark.wire.columns import Arrival
from wallaroo_spark.wire.outbox import Outbox
from wallaroo_spark.worker import nodes
from wallaroo_spark.worker.calls import Calls, Made, RunEnded
from wallaroo_spark.worker.nodes import TakeItems, TakeMessage, VisitEntity
from wallaroo_spark.worker.plan import Component
from wallaroo_spark.worker.portable import thaw
from wallaroo_spark.worker.states import States


class Flow:
    """See the module.

    Args:
        calls: how user code is called.
    """

    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self._program = calls.program
        self._ended = False
        self._held: tuple[Component, States] | None = None
        self._takes: dict[int, TakeMessage] = {}
        self._visits: dict[int, VisitEntity] = {}

    @property
    def outbox(self) -> Outbox:
        """What came out."""
        return self._calls.outbox

    def hold(self, component: Component, states: States) -> None:
        """Hold a component's entities: its state steps are run here from now on."""
        self._held = (component, states)

    def decode(self, source: str, first: int, payloads: Iterable[bytes]) -> None:
        """Take frames of one source that follow each other, and follow their messages.

        Args:
            source: its name.
            first: the first frame's sequence.
            payloads: of the frames.
        """
        take = self._take_at(self._program.sources[source])
        if self._ended:
            return
        try:
            for sequence, payload in enumerate(payloads, first):
                take((sequence,), payload, None)
        except RunEnded:
            self._ended = True

    def visit(self, arrivals: Iterable[Arrival]) -> None:
        """Take messages, in their order, to the state steps they stand before, held here."""
        visits = self._visits
        try:
            for lineage, node, key, frozen in arrivals:
                visit = visits.get(node) or self._visit_at(node)
                value = frozen if type(frozen) is not tuple else thaw(frozen)
                visit(lineage, key, value, frozen)
        except RunEnded:
            self._ended = True

    # -- from node to node -------------------------------------------------------------------

    def _take_at(self, index: int) -> TakeMessage:
        """Return the function of a node."""
        if index not in self._takes:
            # Those behind come first: a long pipeline must not need as deep a recursion.
            for node in sorted(self._missing(index), reverse=True):
                self._takes[node] = self._calls.bounded(node, self._take_of(node))
        return self._takes[index]

    def _missing(self, index: int) -> set[int]:
        """Return the nodes to which a message may come from here and that have no function yet."""
        missing: set[int] = set()
        waiting = [index]
        while waiting:
            number = waiting.pop()
            if number not in self._takes and number not in missing:
                missing.add(number)
                node = self._program.application.nodes[number]
                operation = node.operation if isinstance(node, Step) else None
                if not isinstance(operation, Stateful) or self._is_held(operation):
                    waiting += self._program.application.consumers[number]
        return missing

    def _is_held(self, operation: Stateful) -> bool:
        """Whether a state step's entities are held here."""
        component = self._program.component_of(operation)
        return self._held is not None and self._held[0] is component

    def _take_of(self, index: int) -> TakeMessage:
        """Return the function of a node."""
        calls = self._calls
        node = self._program.application.nodes[index]
        if isinstance(node, Source):
            decode = node.config.decoder.call
            return nodes.one_from_one(calls, index, decode, Reason.DECODE, self._follow(index))
        if isinstance(node, Sink):
            return nodes.encoder(calls, index, node)
        operation = node.operation
        if isinstance(operation, Stateful):
            if self._is_held(operation):
                take_keyed = nodes.to_entity_here(calls, self._visit_at(index))
            else:
                take_keyed = nodes.to_outbox(calls, index, self._program.component_of(operation))
            return nodes.route(calls, index, operation, take_keyed)
        if operation.computation.multi:
            return nodes.many_from_one(calls, index, operation, self._follow_items(index))
        compute = operation.computation.call
        return nodes.one_from_one(calls, index, compute, Reason.RAISED, self._follow(index))

    def _visit_at(self, index: int) -> VisitEntity:
        """Return what takes a message whose key is known to a state step held here."""
        visit = self._visits.get(index)
        if visit is None:
            step = cast("Step", self._program.application.nodes[index])
            operation = cast("Stateful", step.operation)
            assert self._held is not None
            made = nodes.state_step(
                self._calls,
                index,
                operation,
                self._held,
                self._follow(index),
                self._follow_items(index),
            )
            visit = self._visits[index] = self._calls.bounded(index, made)
        return visit

    def _follow(self, origin: int) -> TakeMessage:
        """Return what takes a message of a node to all behind it, each to its end (order-1)."""
        takes = [self._take_at(index) for index in self._program.application.consumers[origin]]
        if len(takes) == 1:
            return takes[0]
        again = self._calls.again

        def follow(lineage: Lineage, value: Any, frozen: Any) -> None:
            for number, take in enumerate(takes):
                take(lineage, again(value, frozen) if number else value, frozen)

        return follow

    def _follow_items(self, origin: int) -> TakeItems:
        """Return what takes the items of a multi result on, one after the other."""
        follow = self._follow(origin)

        def follow_items(lineage: Lineage, items: list[Made | None]) -> None:
            for number, made in enumerate(items):
                if made is not None:
                    follow((*lineage, number), *made)

        return follow_items
