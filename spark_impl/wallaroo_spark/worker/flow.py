"""An application's code, run from one state partition to the next.

A `Flow` takes frames (`decode`) or messages before a state step (`visit`). It processes each, depth
first, through stateless steps, through state steps whose entities it holds, and into sinks. If a
message needs an entity that another shard holds, the flow computes the key and puts the message
into the outbox. The work at each node is a function (`worker.nodes`), made when the first message
comes to the node.

In trusting mode a flow raises `NeedsIsolation` if the rules cannot be kept without copies (a state
computation failed and its entity may be half changed). The caller then processes the same messages
again in isolated mode.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

from wallaroo.operations import Stateful, Stateless
from wallaroo.topology import Sink, Source, Step
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
    """Runs an application's code for one task; see the module's docstring.

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
        """Process consecutive frames of one source.

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
        """Process messages, in their order, from their state steps on, which are held here."""
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
            # The nodes behind come first, so that a long pipeline needs no deep recursion.
            for node in sorted(self._missing(index), reverse=True):
                self._takes[node] = self._calls.bounded(node, self._take_of(node))
        return self._takes[index]

    def _missing(self, index: int) -> set[int]:
        """Return the nodes that a message may reach from here and that have no function yet."""
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
            decoder = node.config.decoder
            assert decoder is not None  # generators are refused (build-2)
            decode = decoder.call
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
        assert isinstance(operation, Stateless)  # all others are refused (build-2)
        if operation.computation.multi:
            return nodes.many_from_one(calls, index, operation, self._follow_items(index))
        compute = operation.computation.call
        return nodes.one_from_one(calls, index, compute, Reason.RAISED, self._follow(index))

    def _visit_at(self, index: int) -> VisitEntity:
        """Return the function that takes a message with a known key to a state step held here."""
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
        """Return the function that takes a node's message through all nodes behind it (order-1)."""
        takes = [self._take_at(index) for index in self._program.application.consumers[origin]]
        if len(takes) == 1:
            return takes[0]
        again = self._calls.again

        def follow(lineage: Lineage, value: Any, frozen: Any) -> None:
            for number, take in enumerate(takes):
                take(lineage, again(value, frozen) if number else value, frozen)

        return follow

    def _follow_items(self, origin: int) -> TakeItems:
        """Return the function that takes the items of a multi result on, one after the other."""
        follow = self._follow(origin)

        def follow_items(lineage: Lineage, items: list[Made | None]) -> None:
            for number, made in enumerate(items):
                if made is not None:
                    follow((*lineage, number), *made)

        return follow_items
