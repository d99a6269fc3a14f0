"""An application's code, run from one state partition to the next.

A `Flow` takes frames (`decode`) or messages that stand before a state step (`visit`) and follows
each, depth first, through stateless steps, through state steps of the component it holds, and into
sinks. Where a message needs an entity that is held elsewhere, its key is found here and the message
goes into the outbox.

Two modes: `isolated` hands every call copies of its own. `trusting` shares, and raises `Redo` where
the rules cannot be kept without copies (a state computation failed and its entity may be half
changed): the caller then does the same stretch again, isolated.

A call at which the run ends lowers `limit`: calls that come later in order are not made at all.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from wallaroo.components import Computation, StateComputation
from wallaroo.keys import (
    SINGLE_KEY,
    BadKeyError,
    Key,
    encode_key,
    encoded_partition_number,
    show_key,
)
from wallaroo.topology import Sink, Source, Stateful, Stateless, StatePartition, Step
from wallaroo.trace import Lineage, Reason, describe_error
from wallaroo_spark.outbox import (
    DECODER_POSITION,
    NO_SINK,
    End,
    Event,
    Letter,
    Order,
    Outbox,
)
from wallaroo_spark.plan import Component, Plan
from wallaroo_spark.portable import UnportableError, freeze, freeze_checked, thaw
from wallaroo_spark.prints import Printer
from wallaroo_spark.results import BadResultError, iterator_of, split_pair
from wallaroo_spark.states import Redo, States, entity_id
from wallaroo_spark.watch import Teller

_U64_END = 1 << 64
_KEYS_REMEMBERED = 1 << 16


class Flow:
    """See the module.

    Args:
        plan: the application and where its state is held.
        partitions: number of partitions of the components that are not fused.
        isolated: the mode.
        stop_on_error: a dead letter is the end of the run (dead-4).
        limit: calls after this one in order are not made.
        printer: told which step is at work, so that what it prints can be marked.
        teller: told of each call, where a batch is watched.
    """

    def __init__(
        self,
        plan: Plan,
        *,
        partitions: int,
        isolated: bool,
        stop_on_error: bool,
        limit: Order | None,
        printer: Printer,
        teller: Teller | None = None,
    ) -> None:
        application = plan.application
        self.outbox = Outbox()
        self._nodes = application.nodes
        self._consumers = application.consumers
        self._partitions = partitions
        self._isolated = isolated
        self._stop_on_error = stop_on_error
        self._limit = limit
        self._printer = printer
        self._teller = teller
        self._here: Component | None = None
        self._states: States | None = None
        self._sources = {
            node.pipeline: index
            for index, node in enumerate(self._nodes)
            if isinstance(node, Source)
        }
        self._lengths = {
            pipeline: sum([step.pipeline == pipeline for step in application.steps])
            for pipeline in application.sources
        }
        self._decoders = {
            name: origin.config.decoder for name, origin in application.sources.items()
        }
        self._component = plan.component
        self._partition = {
            partition.name: _Partition(partition) for partition in application.partitions
        }
        # Whether a node's messages leave this place for certain: then they are frozen when made.
        self._departs = [
            any(isinstance(self._operation(index), Stateful) for index in consumers)
            for consumers in self._consumers
        ]

    def hold(self, component: Component, states: States) -> None:
        """Hold a component's entities: its state steps are run here from now on."""
        self._here = component
        self._states = states

    def decode(self, source: str, sequence: int, payload: bytes) -> None:
        """Take a frame and follow its message."""
        node = self._sources[source]
        lineage = (sequence,)
        if self._limit is not None and self._beyond(lineage, DECODER_POSITION):
            return
        decoder = self._decoders[source]
        place = _Place(source, None, decoder.name, DECODER_POSITION, lineage)
        try:
            message = self._call(place, Reason.DECODE, decoder.call, payload)
            held = None if message is None else self._made(place, message, node)
        except _Dead as dead:
            self._bury(place, dead)
        except _Ended:
            pass
        else:
            if held is not None:
                self._follow(node, held, lineage)

    def visit(self, event: Event) -> None:
        """Take a message to the state step it stands before, which is held here."""
        lineage, node, key, message = event
        step: Any = self._nodes[node]
        if self._limit is not None and self._beyond(lineage, step.position):
            return
        held = _Copies(message) if self._isolated else _Original(thaw(message))
        name = step.operation.computation.name
        place = _Place(step.pipeline, name, name, step.position, lineage)
        place.key = key
        self._visit(node, place, held)

    # -- between the calls -------------------------------------------------------------------

    def _follow(self, origin: int, message: _Message, lineage: Lineage) -> None:
        """Take a message from node `origin` to all that consume it, each to its end (order-1)."""
        for index in self._consumers[origin]:
            node = self._nodes[index]
            if isinstance(node, Step):
                if self._limit is not None and self._beyond(lineage, node.position):
                    continue
                operation = node.operation
                name = operation.computation.name
                place = _Place(node.pipeline, name, name, node.position, lineage)
                if isinstance(operation, Stateless):
                    self._compute(index, operation.computation, place, message)
                else:
                    self._route(index, operation, place, message)
            elif isinstance(node, Sink):
                self._encode(index, node, message, lineage)

    def _beyond(self, lineage: Lineage, position: int, sink: int = NO_SINK) -> bool:
        return self._limit is not None and (lineage, position, sink) > self._limit

    def _operation(self, index: int) -> Any:
        node = self._nodes[index]
        return node.operation if isinstance(node, Step) else None

    def _made(self, place: _Place, value: Any, node: int) -> _Message:
        """Return a message that a call has just made; it has to be portable (`unportable`)."""
        try:
            if self._isolated:
                return _Copies(*freeze_checked(value))
            return _Original(value, freeze(value) if self._departs[node] else None)
        except UnportableError as error:
            raise _Dead(Reason.UNPORTABLE, str(error)) from error

    # -- stateless steps ---------------------------------------------------------------------

    def _compute(
        self, index: int, computation: Computation, place: _Place, message: _Message
    ) -> None:
        try:
            result = self._call(place, Reason.RAISED, computation.call, message.take())
            made = self._results(place, computation, result, index)
        except _Dead as dead:
            self._bury(place, dead)
        except _Ended:
            pass
        else:
            self._send(index, made, place.lineage, multi=computation.multi)

    def _results(
        self, place: _Place, computation: Computation | StateComputation, result: Any, node: int
    ) -> list[_Message | None]:
        """Return the messages a call gave; `None` in the place of those left out."""
        items = self._consumed(place, result) if computation.multi else [result]
        return [None if item is None else self._made(place, item, node) for item in items]

    def _consumed(self, place: _Place, result: Any) -> list[Any]:
        """Return all items of a multi result; consuming it is part of the call (compute-2)."""
        try:
            return list(self._call(place, Reason.RAISED, _consume, result))
        except BadResultError as error:
            raise _Dead(Reason.BAD_RESULT, str(error)) from None

    def _send(
        self, index: int, made: list[_Message | None], lineage: Lineage, *, multi: bool
    ) -> None:
        for position, message in enumerate(made):
            if message is not None:
                self._follow(index, message, (*lineage, position) if multi else lineage)

    # -- state steps -------------------------------------------------------------------------

    def _route(self, index: int, operation: Stateful, place: _Place, message: _Message) -> None:
        """Find a message's key, and go to its entity if that is here, else send it there."""
        partition = self._partition[operation.partition]
        try:
            key: Any = SINGLE_KEY
            if operation.route is not None:
                key = self._call(place, Reason.RAISED, operation.route.call, message.take())
            encoded = partition.checked(place, key)
        except _Dead as dead:
            self._bury(place, dead)
            return
        except _Ended:
            return
        component = self._component[operation.partition]
        if component is self._here:
            self._visit(index, place, message)
            return
        number = 0 if component.fused else partition.number(encoded, self._partitions)
        event = Event(place.lineage, index, encoded, message.frozen())
        self.outbox.events.setdefault((component.index, number), []).append(event)

    def _visit(self, index: int, place: _Place, message: _Message) -> None:
        node: Any = self._nodes[index]
        operation: Stateful = node.operation
        states = self._states
        assert place.key is not None
        assert states is not None
        assert self._here is not None
        entity = entity_id(self._here, operation.partition, place.key)
        computation = operation.computation
        try:
            if not states.exists(entity):  # state-1
                builder = self._partition[operation.partition].builder
                states.build(entity, self._call(place, Reason.RAISED, builder))
            state = states.take(entity)
            result = self._call(place, Reason.RAISED, computation.call, message.take(), state)
            try:
                output, changed = split_pair(result)
            except BadResultError as error:
                raise _Dead(Reason.BAD_RESULT, str(error)) from None
            made = self._results(place, computation, output, index)
            if changed:
                states.keep(entity, state)
        except UnportableError as error:
            self._bury(place, _Dead(Reason.UNPORTABLE, str(error)))
        except _Dead as dead:
            if not self._isolated:
                raise Redo from dead
            self._bury(place, dead)
        except _Ended:
            if not self._isolated:
                raise Redo from None
        else:
            self._send(index, made, place.lineage, multi=computation.multi)

    # -- sinks -------------------------------------------------------------------------------

    def _encode(self, index: int, sink: Sink, message: _Message, lineage: Lineage) -> None:
        position = self._lengths[sink.pipeline]
        if self._limit is not None and self._beyond(lineage, position, sink.index):
            return
        encoder = sink.config.encoder
        place = _Place(sink.pipeline, None, encoder.name, position, lineage, sink.index)
        try:
            output = self._call(place, Reason.ENCODE, encoder.call, message.take())
            if isinstance(output, str):
                try:
                    output = output.encode("utf-8")
                except UnicodeEncodeError as error:
                    raise _Dead(Reason.ENCODE, f"not to be had as UTF-8: {error}") from None
            if output is not None and not isinstance(output, bytes):
                raise _Dead(
                    Reason.ENCODE,
                    f"expected bytes, str or None of an encoder, not a {type(output).__name__}",
                )
        except _Dead as dead:
            self._bury(place, dead)
        except _Ended:
            pass
        else:
            if output is not None:
                self.outbox.finished.outputs.append((lineage, index, bytes(output)))

    # -- what goes wrong ---------------------------------------------------------------------

    def _call(self, place: _Place, reason: Reason, call: Callable[..., Any], *given: Any) -> Any:
        """Call user code; what it raises is a dead letter or the run's end (dead-3)."""
        self._printer.step = place.name
        if self._teller is not None:
            order = (place.lineage, place.position, place.sink)
            self._teller.begins(order, place.pipeline, place.step)
        try:
            return call(*given)
        except BadResultError:
            raise
        except Exception as error:
            raise _Dead(reason, describe_error(error), type(error).__name__) from error
        except BaseException as error:  # noqa: BLE001 - dead-3: SystemExit and its like end the run
            self._end("exit", place, type(error).__name__)
            raise _Ended from None
        finally:
            if self._teller is not None:
                self._teller.ends()

    def _bury(self, place: _Place, dead: _Dead) -> None:
        self.outbox.finished.letters.append(
            Letter(
                place.lineage,
                place.position,
                place.sink,
                place.pipeline,
                place.step,
                place.key,
                dead.reason.value,
                dead.error_type,
                dead.error,
            )
        )
        if self._stop_on_error:
            self._end("on-error", place, None)

    def _end(self, kind: str, place: _Place, error_type: str | None) -> None:
        order = (place.lineage, place.position, place.sink)
        if self._limit is None or order < self._limit:
            self._limit = order
        self.outbox.finished.ends.append(End(order, kind, place.pipeline, place.step, error_type))


def _consume(result: Any) -> list[Any]:
    return list(iterator_of(result))


class _Copies:
    """A message of which every call gets its own copy."""

    __slots__ = ("_frozen", "_spare")

    def __init__(self, frozen: Any, spare: Any = None) -> None:
        self._frozen = frozen
        self._spare = spare

    def take(self) -> Any:
        spare = self._spare
        if spare is None:
            return thaw(self._frozen)
        self._spare = None
        return spare

    def frozen(self) -> Any:
        return self._frozen


class _Original:
    """A message that all calls share; frozen when it was made, if it is to travel."""

    __slots__ = ("_frozen", "_value")

    def __init__(self, value: Any, frozen: Any = None) -> None:
        self._value = value
        self._frozen = frozen

    def take(self) -> Any:
        return self._value

    def frozen(self) -> Any:
        return self._frozen


_Message = _Copies | _Original


class _Place:
    """Where a call is made."""

    __slots__ = ("key", "lineage", "name", "pipeline", "position", "sink", "step")

    def __init__(
        self,
        pipeline: str,
        step: str | None,
        name: str,
        position: int,
        lineage: Lineage,
        sink: int = NO_SINK,
    ) -> None:
        self.pipeline = pipeline
        self.step = step
        self.name = name
        self.position = position
        self.lineage = lineage
        self.sink = sink
        self.key: bytes | None = None


class _Partition:
    """A state partition's keys, checked and numbered."""

    def __init__(self, partition: StatePartition) -> None:
        self.builder = partition.builder.call
        self._name = partition.name
        self._u64 = partition.u64
        self._listed = (
            None if partition.keys is None else {encode_key(key) for key in partition.keys}
        )
        self._encoded: dict[str, bytes] = {}
        self._numbers: dict[bytes, int] = {}

    def checked(self, place: _Place, key: Key) -> bytes:
        """Return the encoding of `key`, which is then the place's (route-2, -3, -5)."""
        # Most keys are short strings that come again; only exact `str` may be looked up, since
        # 1 and True are one key of a dict and two here.
        encoded = self._encoded.get(key) if type(key) is str else None
        if encoded is None:
            try:
                encoded = encode_key(key)
            except BadKeyError as error:
                raise _Dead(Reason.BAD_KEY, str(error)) from None
            if type(key) is str:
                _remember(self._encoded, key, encoded)
        if self._u64 and not (type(key) is int and 0 <= key < _U64_END):
            raise _Dead(Reason.BAD_KEY, f"expected 0 <= key < 2**64, not {show_key(key)}")
        place.key = encoded
        if self._listed is not None and encoded not in self._listed:
            raise _Dead(
                Reason.UNKNOWN_KEY,
                f"{show_key(key)} is none of the keys listed for state partition {self._name!r}",
            )
        return encoded

    def number(self, encoded: bytes, partitions: int) -> int:
        """Return the partition number of an encoded key."""
        if partitions == 1:
            return 0
        number = self._numbers.get(encoded)
        if number is None:
            number = encoded_partition_number(encoded, partitions)
            _remember(self._numbers, encoded, number)
        return number


def _remember(memory: dict[Any, Any], key: Any, value: Any) -> None:
    if len(memory) >= _KEYS_REMEMBERED:
        memory.clear()
    memory[key] = value


class _Dead(Exception):  # noqa: N818 - a message's fate, not an error of ours
    """A message cannot go on."""

    def __init__(self, reason: Reason, error: str, error_type: str | None = None) -> None:
        super().__init__(reason, error, error_type)
        self.reason = reason
        self.error = error
        self.error_type = error_type


class _Ended(Exception):  # noqa: N818 - as above
    """User code ended the run."""
