"""An application's code, run from one state partition to the next.

A `Flow` takes frames (`decode`) or messages that stand before a state step (`visit`) and follows
each, depth first, through stateless steps, through state steps of the component it holds, and into
sinks. Where a message needs an entity that is held elsewhere, its key is found here and the message
goes into the outbox. What is done at each node is a function that is made when the first message
comes to it (`wallaroo_spark.worker.nodes`).

Two modes: `isolated` hands every call copies of its own. `trusting` shares, freezes only what may
leave, and raises `Redo` where the rules cannot be kept without copies (a state computation failed
and its entity may be half changed): the caller then does the same stretch again, isolated.

Calls are made in their order (`wire.outbox.Order`). So a call at which the run ends is
the last that a flow makes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, cast

from wallaroo.topology import Stateful, Step
from wallaroo.trace import Lineage, Reason, describe_error
from wallaroo_spark.live.call_monitor import Teller
from wallaroo_spark.wire.columns import Arrival
from wallaroo_spark.wire.outbox import End, Letter, Order, Outbox
from wallaroo_spark.worker.captured_output import Printer
from wallaroo_spark.worker.nodes import Made, Take, Visit, state_step, take_of
from wallaroo_spark.worker.plan import Component
from wallaroo_spark.worker.portable import freeze, freeze_checked, thaw
from wallaroo_spark.worker.program import Place, Program
from wallaroo_spark.worker.results import FateError
from wallaroo_spark.worker.states import States


class Flow:
    """See the module.

    Args:
        program: the application.
        isolated: the mode.
        stop_on_error: a dead letter is the end of the run (dead-4).
        limit: calls after this one in order are not made.
        printer: told which step is at work, so that what it prints can be marked.
        teller: told of each call, where a batch is watched.

    Attributes:
        here: the component whose state steps are run here, if there is one.
        states: its entities.
        outbox: what came out.
    """

    def __init__(
        self,
        program: Program,
        *,
        isolated: bool,
        stop_on_error: bool,
        limit: Order | None,
        printer: Printer,
        teller: Teller | None = None,
    ) -> None:
        self.outbox = Outbox()
        self.program = program
        self.isolated = isolated
        self._stop_on_error = stop_on_error
        self._limit = limit
        self.printer = printer
        self._teller = teller
        self._lineage: Lineage = ()  # of the call that is told of
        self._ended = False
        self.here: Component | None = None
        self.states: States | None = None
        self._takes: dict[int, Take] = {}
        self._visits: dict[int, Visit] = {}

    def hold(self, component: Component, states: States) -> None:
        """Hold a component's entities: its state steps are run here from now on."""
        self.here = component
        self.states = states

    def decode(self, source: str, first: int, payloads: Iterable[bytes]) -> None:
        """Take frames of one source that follow each other, and follow their messages.

        Args:
            source: its name.
            first: the first frame's sequence.
            payloads: of the frames.
        """
        take = self.take_at(self.program.sources[source])
        if self._ended:
            return
        try:
            for sequence, payload in enumerate(payloads, first):
                take((sequence,), payload, None)
        except _Ended:
            self._ended = True

    def visit(self, arrivals: Iterable[Arrival]) -> None:
        """Take messages, in their order, to the state steps they stand before, held here."""
        visits = self._visits
        try:
            for lineage, node, key, frozen in arrivals:
                visit = visits.get(node) or self.visit_at(node)
                value = frozen if type(frozen) is not tuple else thaw(frozen)
                visit(lineage, key, value, frozen)
        except _Ended:
            self._ended = True

    # -- from node to node -------------------------------------------------------------------

    def take_at(self, index: int) -> Take:
        """Return the function of a node."""
        if index not in self._takes:
            # Those behind come first: a long pipeline must not need as deep a recursion.
            for node in sorted(self._missing(index), reverse=True):
                self._takes[node] = self._bounded(node, take_of(self, node))
        return self._takes[index]

    def _missing(self, index: int) -> set[int]:
        """Return the nodes to which a message may come from here and that have no function yet."""
        missing: set[int] = set()
        waiting = [index]
        while waiting:
            number = waiting.pop()
            if number not in self._takes and number not in missing:
                missing.add(number)
                node = self.program.application.nodes[number]
                operation = node.operation if isinstance(node, Step) else None
                if (
                    not isinstance(operation, Stateful)
                    or self.program.component_of(operation) is self.here
                ):
                    waiting += self.program.application.consumers[number]
        return missing

    def visit_at(self, index: int) -> Visit:
        """Return what takes a message whose key is known to a state step held here."""
        visit = self._visits.get(index)
        if visit is None:
            operation = cast(
                "Stateful", cast("Step", self.program.application.nodes[index]).operation
            )
            visit = self._visits[index] = self._bounded(index, state_step(self, index, operation))
        return visit

    def follow(self, origin: int) -> Take:
        """Return what takes a message of a node to all behind it, each to its end (order-1)."""
        takes = [self.take_at(index) for index in self.program.application.consumers[origin]]
        if len(takes) == 1:
            return takes[0]
        again = self.again

        def follow(lineage: Lineage, value: Any, frozen: Any) -> None:
            for number, take in enumerate(takes):
                take(lineage, again(value, frozen) if number else value, frozen)

        return follow

    def follow_items(self, origin: int) -> Callable[[Lineage, list[Made | None]], None]:
        """Return what takes the items of a multi result on, one after the other."""
        follow = self.follow(origin)

        def follow_items(lineage: Lineage, items: list[Made | None]) -> None:
            for number, made in enumerate(items):
                if made is not None:
                    follow((*lineage, number), *made)

        return follow_items

    @property
    def again(self) -> Callable[[Any, Any], Any]:
        """Return what gives a second call the same message: a copy, or the one there is."""
        return (lambda _, frozen: thaw(frozen)) if self.isolated else (lambda value, _: value)

    def maker(self, node: int) -> Callable[[Any], Made]:
        """Return what makes a message of a value a call has just made, or raises `unportable`."""
        if self.isolated:

            def made(value: Any) -> Made:
                frozen, copy = freeze_checked(value)
                return copy, frozen

        elif self.program.departs[node]:

            def made(value: Any) -> Made:
                return value, freeze(value)

        else:

            def made(value: Any) -> Made:
                return value, None

        return made

    # -- limits and watches: only where there are any ----------------------------------------

    def _bounded(self, index: int, take: Callable[..., None]) -> Callable[..., None]:
        """Return `take`, or what leaves it alone after the limit."""
        limit, place = self._limit, self.program.places[index]
        if limit is None and self._teller is None:
            return take

        def bounded(lineage: Lineage, *message: Any) -> None:
            if limit is None or (lineage, place.position, place.sink) <= limit:
                self._lineage = lineage
                take(lineage, *message)

        return bounded

    def watched(self, call: Callable[..., Any], place: Place) -> Callable[..., Any]:
        """Return `call`, or what tells of it as well."""
        teller = self._teller
        if teller is None:
            return call

        def told(*given: Any) -> Any:
            order = (self._lineage, place.position, place.sink)
            teller.begins(order, place.pipeline, place.step)
            try:
                return call(*given)
            finally:
                teller.ends()

        return told

    # -- what goes wrong ---------------------------------------------------------------------

    def failed(
        self,
        place: Place,
        lineage: Lineage,
        reason: Reason,
        error: BaseException,
        key: bytes | None = None,
    ) -> None:
        """Make of what a call raised a dead letter, or the run's end (dead-3, dead-4)."""
        at = (lineage, place.position, place.sink)
        where = (place.pipeline, place.step)
        fate: tuple[bytes | None, str, str | None, str]
        if issubclass(type(error), FateError):  # whatever an exception says of itself
            told = cast(FateError, error)
            fate = (told.key or key, told.reason.value, None, str(told))
        elif isinstance(error, Exception):
            # User code may raise one exception again and again: its traceback is not to grow.
            BaseException.with_traceback(error, None)
            fate = (key, reason.value, type(error).__name__, describe_error(error))
        else:
            self.outbox.finished.ends.append(End(at, "exit", *where, type(error).__name__))
            raise _Ended
        self.outbox.finished.letters.append(Letter(*at, *where, *fate))
        if self._stop_on_error:
            self.outbox.finished.ends.append(End(at, "on-error", *where, None))
            raise _Ended


class _Ended(Exception):  # noqa: N818 - no error: user code ended the run
    """This flow makes no more calls."""
