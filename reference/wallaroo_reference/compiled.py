"""The compiled path: `trusting` mode, a function generated from the topology.

For each source one function takes a batch of payloads and runs the pipeline as nested loops, as one
would write it by hand: no object per message, no copy, no call but the user's. What the rules
require to be checked is checked; what costs is left to the paths that are not taken:

- a ``try`` that does not raise costs nothing, so each user call stands in one of its own;
- a lineage is worked out only when somebody asks: a loop's position is what its iterator has left;
- a key met before has been judged before, so a dictionary hit on a key of exact type is enough.

``wallaroo graph APP --compiled`` prints the source.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from wallaroo.canonical import structure
from wallaroo.keys import (
    SINGLE_KEY,
    BadKeyError,
    Key,
    decode_key,
    identity,
    partition_number,
    show_key,
)
from wallaroo.topology import Application, Sink, SinkId, Stateful, StatePartition, Step
from wallaroo.trace import (
    DeadLetter,
    Ended,
    Entity,
    Finding,
    Lineage,
    Reason,
    describe_error,
)
from wallaroo_reference.results import BadResultError, items_of, pair_of

_U64 = 1 << 64
_DEEPEST = 12  # nested loops in one function; Python takes 20 nested blocks
_MISSING = object()

Feed = Callable[[Sequence[bytes], int], None]


class Compiled:
    """An application, running in `trusting` mode; see `wallaroo_reference.machine.Machine`.

    Args:
        application: what to run.
        partitions: number of partitions the entities' numbers are of (route-4).
        on_error: ``stop`` ends the run at the first dead letter (dead-4).
    """

    def __init__(
        self, application: Application, *, partitions: int = 1, on_error: str = "skip"
    ) -> None:
        self.sequence = 0
        self.outputs: dict[SinkId, list[bytes]] = {sink: [] for sink in application.sinks}
        self.dead_letters: list[DeadLetter] = []
        self.ended: Ended | None = None
        self._partitions = partitions
        self._stop_on_error = on_error == "stop"
        self._stores = {part.name: _Store(part) for part in application.partitions}
        self._source = ""
        program = _Program(application)
        self._feeds = program.link(self)

    @property
    def findings(self) -> Sequence[Finding]:
        """None: `trusting` mode does not look."""
        return ()

    def feed(self, source: str, payloads: Sequence[bytes]) -> None:
        """Process frames of one source, in order."""
        if self.ended is not None:
            return
        self._source = source
        start = self.sequence
        self.sequence += len(payloads)
        try:
            self._feeds[source](payloads, start)
        except _Stop:
            return

    def entities(self) -> list[Entity]:
        """Return the state entities as they are now."""
        return [
            Entity(name, key, partition_number(key, self._partitions), structure(state))
            for name, store in self._stores.items()
            for key, state in store.items()
        ]

    # -- what generated code calls when something is not as usual ---------------------------------

    def fail(
        self,
        place: _Place,
        lineage: Lineage,
        payload: bytes,
        error: BaseException,
        key: Key | None = None,
    ) -> None:
        """Write a dead letter, or end the run (dead-1, dead-3, dead-4)."""
        if not isinstance(error, Exception):
            self._end("exit", place, lineage, type(error).__name__)
        reason, text = place.reason, describe_error(error)
        error_type: str | None = type(error).__name__
        if isinstance(error, _NotTheirs):
            reason, error_type = error.reason, None
        elif isinstance(error, BadResultError):
            reason, error_type = Reason.BAD_RESULT, None
        if place.stateful and reason in (Reason.RAISED, Reason.BAD_RESULT) and key is not None:
            text += f" [trusting: the entity of {show_key(key)} may be half changed]"
        self.dead_letters.append(
            DeadLetter(
                lineage=lineage,
                source=self._source,
                pipeline=place.pipeline,
                step=place.step,
                position=place.position,
                sink=place.sink,
                key=key,
                reason=reason,
                error_type=error_type,
                error=text,
                payload=payload,
            )
        )
        if self._stop_on_error:
            self._end("on-error", place, lineage, None)

    def enter(
        self, store: _Store, place: _Place, lineage: Lineage, payload: bytes, key: Any
    ) -> Any:
        """Return the entity of a key not met before, or `_MISSING` with a dead letter written."""
        partition = store.partition
        judged: Key | None = None
        try:
            try:
                known = identity(key)
            except BadKeyError as error:
                raise _NotTheirs(Reason.BAD_KEY, str(error)) from None
            if partition.u64 and not (type(key) is int and 0 <= key < _U64):  # route-5
                raise _NotTheirs(
                    Reason.BAD_KEY, f"a 64-bit key is an int from 0 to 2**64 - 1: {show_key(key)}"
                )
            judged = key
            state = store.states.get(known, _MISSING)
            if state is _MISSING:
                if store.listed is not None and known not in store.listed:  # route-3
                    raise _NotTheirs(
                        Reason.UNKNOWN_KEY,
                        f"{show_key(key)} is not among the {len(store.listed)} keys of "
                        f"state partition {partition.name!r}",
                    )
                state = store.states[known] = partition.builder.call()  # state-1
        except BaseException as error:  # noqa: BLE001 - `fail` tells letters from ends (dead-3)
            self.fail(place, lineage, payload, error, judged)
            return _MISSING
        return state

    def _end(
        self,
        kind: Literal["on-error", "exit"],
        place: _Place,
        lineage: Lineage,
        error_type: str | None,
    ) -> None:
        self.ended = Ended(kind, place.pipeline, place.step, lineage, error_type)
        raise _Stop


def compiled_source(application: Application) -> str:
    """Return the Python source that `Compiled` runs for `application`."""
    return _Program(application).source


@dataclass(frozen=True)
class _Place:
    """Where a call is made, for dead letters."""

    pipeline: str
    step: str | None
    position: int
    sink: int | None
    reason: Reason
    stateful: bool = False


class _Store:
    """The entities of one state partition, by the identities of their keys."""

    def __init__(self, partition: StatePartition) -> None:
        self.partition = partition
        self.listed = None if partition.keys is None else {identity(key) for key in partition.keys}
        self.states: dict[Any, Any] = {}

    def items(self) -> list[tuple[Key, Any]]:
        """Return keys and states; a tuple's identity is its encoding."""
        return [
            (decode_key(known[0]) if type(known) is tuple else known, state)
            for known, state in self.states.items()
        ]


class _NotTheirs(Exception):  # noqa: N818 - never leaves this module
    """A dead letter that no exception of user code stands behind."""

    def __init__(self, reason: Reason, text: str) -> None:
        super().__init__(text)
        self.reason = reason


class _Stop(Exception):  # noqa: N818 - control flow
    """The run is over."""


def _written(data: Any) -> bytes:
    """Return what an encoder gave, if it is of a subclass of bytes or str, as bytes (sink-1)."""
    if isinstance(data, bytes):
        return bytes(data)
    if isinstance(data, str):
        return data.encode()
    raise ValueError(f"an encoder returns bytes, str or None, not a {type(data).__name__}")


def _unwritable(error: ValueError) -> _NotTheirs:
    """Return why an encoder's result cannot be written: no bytes, or text that UTF-8 refuses."""
    utf8 = isinstance(error, UnicodeEncodeError)
    text = f"UTF-8 refuses the encoder's text: {error}" if utf8 else str(error)
    return _NotTheirs(Reason.ENCODE, text)


class _Program:
    """The generated source, and what its names stand for."""

    def __init__(self, application: Application) -> None:
        self._application = application
        self._lines: list[str] = []
        self._later: list[Callable[[], None]] = []  # functions that deep pipelines go on in
        self._calls: dict[str, Any] = {}
        self._places: list[_Place] = []
        self._functions: dict[str, str] = {}  # source -> name of its function
        self._positions: dict[str, int] = {}
        for index, source in enumerate(application.sources):
            self._source(index, source)
        self.source = "\n".join(self._lines) + "\n"

    def link(self, machine: Compiled) -> dict[str, Feed]:
        """Return a function per source, bound to `machine`'s outputs and entities."""
        names: dict[str, Any] = {
            "fail": machine.fail,
            "enter": machine.enter,
            "items_of": items_of,
            "pair_of": pair_of,
            "unwritable": _unwritable,
            "written": _written,
            "MISSING": _MISSING,
            "place": self._places,
            **self._calls,
        }
        for index, store in enumerate(machine._stores.values()):
            names[f"store_{index}"], names[f"states_{index}"] = store, store.states
        for index, outputs in enumerate(machine.outputs.values()):
            names[f"write_{index}"] = outputs.append
        # Names become a closure's, which are found faster than a module's.
        body = "".join(f"    {line}\n" if line else "\n" for line in self._lines)
        listed = ", ".join(f"{source!r}: {name}" for source, name in self._functions.items())
        text = f"def link({', '.join(names)}):\n{body}    return {{{listed}}}\n"
        scope: dict[str, Any] = {}
        exec(compile(text, f"<compiled {self._application.name}>", "exec"), scope)  # noqa: S102 - our own text; users' names enter it only through `_identifier` and `repr`
        feeds: dict[str, Feed] = scope["link"](**names)
        return feeds

    def _source(self, index: int, pipeline: str) -> None:
        nodes = self._application.nodes
        origin = next(i for i, node in enumerate(nodes) if node.pipeline == pipeline)
        name = f"feed_{index}_{_identifier(pipeline)}"
        self._functions[pipeline] = name
        decode = self._call("decode", origin, self._application.sources[pipeline].config.decoder)
        place = self._place(_Place(pipeline, None, -1, None, Reason.DECODE))
        self._line(0, f"def {name}(payloads, start):")
        self._line(1, f"# source {pipeline!r}")
        self._line(1, "frames = iter(payloads)")
        self._line(1, "for payload in frames:")
        lineage = "start + len(payloads) - 1 - frames.__length_hint__()"
        self._try(2, f"m{origin} = {decode}(payload)", place, [lineage], "continue")
        self._line(2, f"if m{origin} is None:")
        self._line(3, "continue")
        self._consumers(2, origin, [lineage], "continue", 1)
        while self._later:
            self._later.pop(0)()
        self._line(0, "")

    def _consumers(
        self, indent: int, origin: int, lineage: list[str], skip: str, loops: int
    ) -> None:
        """Write what becomes of node `origin`'s message, a variable called m<origin>."""
        consumers = self._application.consumers[origin]
        steps = [
            index for index in consumers if not isinstance(self._application.nodes[index], Sink)
        ]
        if len(steps) > 1:  # each in a function: what ends one's message must not skip the others
            loops = _DEEPEST + 1
        for index in consumers:
            node = self._application.nodes[index]
            if isinstance(node, Sink):
                self._sink(indent, index, node, origin, lineage)
            elif isinstance(node, Step):
                self._step(indent, index, node, origin, lineage, skip, loops)

    def _step(
        self,
        indent: int,
        index: int,
        step: Step,
        origin: int,
        lineage: list[str],
        skip: str,
        loops: int,
    ) -> None:
        if loops > _DEEPEST:
            name = f"go_on_at_{index}"
            self._line(indent, f"{name}(payload, {_tuple(lineage)}, m{origin})")
            self._later.append(partial(self._go_on, name, index, step, origin))
            return
        operation = step.operation
        self._line(indent, f"# {step.name!r}")
        stateful = isinstance(operation, Stateful)
        place = self._place(
            _Place(step.pipeline, step.name, step.position, None, Reason.RAISED, stateful)
        )
        compute = self._call("compute", index, operation.computation, step.name)
        multi = operation.computation.multi
        if isinstance(operation, Stateful):
            key = self._route(indent, index, operation, origin, place, lineage, skip)
            call = f"{compute}(m{origin}, s{index})"
            self._try(indent, f"r{index} = {call}", place, lineage, skip, key)
            pair = f"m{index}, changed = r{index} if type(r{index}) is tuple else (None, None)"
            self._line(indent, "try:")
            self._line(indent + 1, pair)
            self._line(indent, "except ValueError:")
            self._line(indent + 1, "changed = None")
            self._line(indent, "if changed is not True and changed is not False:")
            judged = f"m{index}, changed = pair_of(r{index})"
            self._try(indent + 1, judged, place, lineage, skip, key)
            if multi:
                self._try(indent, f"i{index} = items_of(m{index})", place, lineage, skip, key)
        elif multi:
            self._try(indent, f"i{index} = items_of({compute}(m{origin}))", place, lineage, skip)
        else:
            self._try(indent, f"m{index} = {compute}(m{origin})", place, lineage, skip)
        if multi:
            self._line(indent, f"n{index} = iter(i{index})")
            self._line(indent, f"for m{index} in n{index}:")
            lineage = [*lineage, f"len(i{index}) - 1 - n{index}.__length_hint__()"]
            indent, skip, loops = indent + 1, "continue", loops + 1
        self._line(indent, f"if m{index} is None:")
        self._line(indent + 1, skip)
        self._consumers(indent, index, lineage, skip, loops)

    def _go_on(self, name: str, index: int, step: Step, origin: int) -> None:
        self._line(0, f"def {name}(payload, lineage, m{origin}):")
        self._step(1, index, step, origin, ["*lineage"], "return", 0)

    def _route(
        self,
        indent: int,
        index: int,
        operation: Stateful,
        origin: int,
        place: int,
        lineage: list[str],
        skip: str,
    ) -> str:
        """Write how the entity s<index> is found; return the expression for its key."""
        partition = self._application.partition[operation.partition]
        number = list(self._application.partition).index(operation.partition)
        enter = f"enter(store_{number}, place[{place}], {_tuple(lineage)}, payload, k{index})"
        if operation.route is None:
            self._line(indent, f"k{index} = ()")
            found = f"states_{number}[{identity(SINGLE_KEY)!r}]"
        else:
            partition_function = self._call("partition", index, operation.route)
            call = f"k{index} = {partition_function}(m{origin})"
            self._try(indent, call, place, lineage, skip)
            # A tuple is known by its encoding, which only `enter` works out.
            exact = _exactness(partition, f"k{index}")
            found = f"states_{number}[k{index}] if {exact} else {enter}"
        self._line(indent, "try:")
        self._line(indent + 1, f"s{index} = {found}")
        self._line(indent, "except KeyError:")
        self._line(indent + 1, f"s{index} = {enter}")
        self._line(indent, f"if s{index} is MISSING:")
        self._line(indent + 1, skip)
        return f"k{index}"

    def _sink(self, indent: int, index: int, sink: Sink, origin: int, lineage: list[str]) -> None:
        position = len(
            [n for n in self._application.pipeline(sink.pipeline) if isinstance(n, Step)]
        )
        place = self._place(_Place(sink.pipeline, None, position, sink.index, Reason.ENCODE))
        encode = self._call("encode", index, sink.config.encoder)
        write = f"write_{list(self._application.sinks).index(sink.id)}"
        failed = f"fail(place[{place}], {_tuple(lineage)}, payload, error)"
        self._line(indent, "try:")
        self._line(indent + 1, f"data = {encode}(m{origin})")
        self._line(indent, "except BaseException as error:")
        self._line(indent + 1, failed)
        self._line(indent, "else:")
        self._line(indent + 1, "if type(data) is bytes:")
        self._line(indent + 2, f"{write}(data)")
        self._line(indent + 1, "elif data is not None:")
        self._line(indent + 2, "try:")
        self._line(indent + 3, f"{write}(data.encode() if type(data) is str else written(data))")
        self._line(indent + 2, "except ValueError as error:")
        self._line(indent + 3, failed.replace("error)", "unwritable(error))"))

    def _try(
        self,
        indent: int,
        statement: str,
        place: int,
        lineage: list[str],
        skip: str,
        key: str | None = None,
    ) -> None:
        self._line(indent, "try:")
        self._line(indent + 1, statement)
        self._except(indent, "BaseException", place, lineage, skip, key)

    def _except(
        self,
        indent: int,
        caught: str,
        place: int,
        lineage: list[str],
        skip: str,
        key: str | None = None,
    ) -> None:
        shown = "" if key is None else f", {key}"
        self._line(indent, f"except {caught} as error:")
        self._line(indent + 1, f"fail(place[{place}], {_tuple(lineage)}, payload, error{shown})")
        self._line(indent + 1, skip)

    def _call(self, what: str, index: int, record: Any, name: str = "") -> str:
        called = f"{what}_{index}_{_identifier(name or record.name)}"
        self._calls[called] = record.call
        return called

    def _place(self, place: _Place) -> int:
        self._places.append(place)
        return len(self._places) - 1

    def _line(self, indent: int, text: str) -> None:
        self._lines.append("    " * indent + text)


def _exactness(partition: StatePartition, key: str) -> str:
    """Return the test that a key has a type whose dictionary hits can be trusted (route-2)."""
    if partition.u64:
        return f"type({key}) is int"
    kinds = {str, int, bytes}
    if partition.keys is not None:
        kinds &= {type(known) for known in partition.keys}
    names = sorted((kind.__name__ for kind in kinds), reverse=True)
    return " or ".join([f"type({key}) is {name}" for name in names]) or "False"


def _tuple(expressions: list[str]) -> str:
    return f"({', '.join(expressions)},)"


def _identifier(name: str) -> str:
    return re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_").lower()[:40] or "unnamed"
