"""The source code that the compiled path runs: nested loops, generated from the topology.

`Program` writes one function per source of the application, and knows what each name in it stands
for. A message that cannot go on raises an exception, which is caught once in each loop. The line
that raised it tells `Compiled.fail` which call failed; the function's variables tell the rest.

There are further functions for the steps behind a merge, for each branch, and for what a window
gives. They get the message's payload and lineage and, if steps there need them, its key and its
event time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache, partial
from types import CodeType
from typing import Any

from wallaroo.judging import producing
from wallaroo.kafka import KafkaSinkConfig, KafkaSourceConfig
from wallaroo.keys import SINGLE_KEY, identity
from wallaroo.operations import Branch, Collect, KeyBy, Merge, Stateful, Stateless, Windowed
from wallaroo.times import TIME_END
from wallaroo.topology import Application, Sink, Source, Step
from wallaroo.trace import Reason
from wallaroo_reference.compiled.codegen_text import (
    FRAMES,
    Spot,
    Text,
    identifier,
    lineage_of,
    sequence_of,
    shown,
)
from wallaroo_reference.compiled.codegen_windows import ALL, write_put, write_take_out
from wallaroo_reference.meter import PORTION

_DEEPEST = 6  # loops inside the first in one function, each with a `try`; Python allows 20 blocks


class Program(Text):
    """The generated code, and what its names stand for.

    Args:
        application: the application.
        keeps: the code notes which entities and panes change, for checkpoints.
    """

    def __init__(self, application: Application, *, keeps: bool = False) -> None:
        super().__init__(keeps=keeps)
        self._application = application
        self._later: list[Callable[[], None]] = []  # functions that are still to be written
        self._begun: set[int] = set()  # merges that have their function
        self._key = ALL  # the expression for the current message's key
        self._identity = ""  # the variable that holds the key's identity, where there is one
        self._context = _context(application)
        self._timed = "time" in self._context
        self._turns = bool(application.window_steps)
        self.functions: dict[str, str] = {}  # source -> name of its function
        for index, source in enumerate(application.sources):
            self._source(index, source)

    def _source(self, index: int, pipeline: str) -> None:
        nodes = self._application.nodes
        origin = next(i for i, node in enumerate(nodes) if node.pipeline == pipeline)
        source = nodes[origin]
        assert isinstance(source, Source)
        decoder = source.config.decoder
        name = f"feed_{index}_{identifier(pipeline)}"
        self.functions[pipeline] = name
        self._key_is(ALL)
        self.spot = Spot(pipeline, None, -1, None, Reason.DECODE, FRAMES, source=True)
        head = self.head(f"{name}(payloads, start")
        self.line(1, f"# source {shown(pipeline)}")
        if self._timed and source.config.event_time is None:
            self.line(1, "time = times.now")
        if source.config.max_ahead is not None:
            self.line(1, f"latest = times.now + {source.config.max_ahead}")
        self.line(1, "frames = iter(payloads)")
        if isinstance(source.config, KafkaSourceConfig):
            self._decode_kafka(origin, source.config)
        elif decoder is None:  # graph-4
            self.line(1, "payload = None")
            self.line(1, "for value in frames:")
            self.line(2, "try:")
            self.line(3, f"m{origin} = own(value)")
        else:
            self.line(1, "for payload in frames:")
            self.line(2, "try:")
            decode = self.call("decode", origin, decoder.call, decoder.name)
            self.line(3, f"m{origin} = {decode}(payload)")
        if self._timed or source.config.event_time is not None:
            self._event_time(index, origin, source)
            self._follow(3, origin, f"m{origin}", "continue")
        else:
            self._consumers(3, origin, "continue")
        self.caught(2)
        self.bind(head)
        while self._later:
            self._later.pop(0)()

    def _decode_kafka(self, origin: int, config: KafkaSourceConfig) -> None:
        """Write the loop over records of a Kafka source, or over their values (kafka-7)."""
        decoder = config.decoder
        if self._turns:
            self.line(1, "clock = times.clock")  # of the partition that they stand in
        self.line(1, f"for {'record' if config.whole else 'payload'} in frames:")
        if config.whole:
            self.line(2, "payload = record.value")
        self.line(2, "try:")
        decode = self.call("decode", origin, decoder.call, decoder.name)
        if decoder.whole:
            self.line(3, f"m{origin} = {decode}(record)")
        else:
            self.line(3, f"m{origin} = None if payload is None else {decode}(payload)")

    def _event_time(self, index: int, origin: int, source: Source) -> None:
        """Write the code before a message's first step: its event time, and turns (time-4)."""
        clock = f"clock_{index}"
        if isinstance(source.config, KafkaSourceConfig):
            clock = "clock"
        elif self._turns:
            self.use(clock)
        due, lineage = f"{clock}.due", lineage_of(FRAMES)
        self.line(3, f"if m{origin} is None:")
        if self._turns:
            self.engine_line(4, f"if {due} < 0:")
            self.engine_line(5, f"turns({lineage})")
        self.line(4, "continue")
        event_time = source.config.event_time
        if event_time is None:
            if self._turns:
                self.engine_line(3, f"if {due} < 0:")
                self.engine_line(4, f"turns({lineage})")
            return
        assert self.spot is not None
        self.spot = replace(self.spot, reason=Reason.RAISED)
        find = self.call("event_time", origin, event_time.call, event_time.name)
        given = "record" if event_time.of_record else f"m{origin}"
        self.line(3, f"time = {find}({given})")
        exact = f"{self.use('type')}(time) is {self.use('int')}"
        self.line(3, f"if not ({exact} and {event_time.usual} <= time < {TIME_END}):")
        judged = self.call("judged", origin, event_time.judged, event_time.name)
        self.line(4, f"time = time_of({judged}, time)")
        if source.config.max_ahead is not None:
            self.line(3, "if time > latest:")
            self.line(4, f"refuse_ahead(time, {source.config.max_ahead})")
        if self._turns:
            self.engine_line(3, f"if time >= {due}:")
            self.engine_line(4, f"turns({lineage}, time)")
            self.engine_line(3, f"elif time > {clock}.greatest:")
            self.engine_line(4, f"{clock}.greatest = time")

    def _consumers(self, indent: int, origin: int, skip: str) -> None:
        """Write the code that processes node `origin`'s message, the variable m<origin>."""
        if self._application.consumers[origin]:
            self.line(indent, f"if m{origin} is None:")
            self.line(indent + 1, skip)
        self._follow(indent, origin, f"m{origin}", skip)

    def _follow(self, indent: int, origin: int, message: str, skip: str) -> None:
        """Write the code that takes `message` to the consumers of node `origin`."""
        consumers = self._application.consumers[origin]
        for index in consumers:
            node = self._application.nodes[index]
            # An exception in one consumer must not skip the others.
            several = len(consumers) > 1
            if isinstance(node, Sink):
                self._sink(indent, index, node, message, several)
            elif isinstance(node, Step):
                if several or len(self._loops) > _DEEPEST or isinstance(node.operation, Merge):
                    self._call_go_on(indent, index, node, message)
                else:
                    self._step(indent, index, node, message, skip)

    def _call_go_on(self, indent: int, index: int, step: Step, message: str) -> None:
        """Write the call of a function that processes a message from node `index` on."""
        name = f"go_on_at_{index}"
        operation = step.operation
        further = (operation.number,) if isinstance(operation, Branch) else ()
        values = {"key": self._key, "time": "time"}
        context = "".join(f", {values[name]}" for name in self._context)
        self.line(
            indent, f"{name}(payload, {lineage_of(self._loops, *further)}, {message}{context})"
        )
        if isinstance(operation, Merge):
            if index in self._begun:
                return
            self._begun.add(index)
        own = f"m{index}" if isinstance(operation, (Merge, Branch)) else message
        self._later.append(partial(self._go_on, name, index, step, own))

    def _go_on(self, name: str, index: int, step: Step, message: str) -> None:
        head = self._further(f"{name}(payload, lineage, {message}", step)
        self.line(1, "try:")
        before = len(self.spots)
        self._step(2, index, step, message, "return")
        if len(self.spots) == before:
            self.line(2, "pass")
        self.caught(1)
        self.bind(head)

    def _further(self, signature: str, step: Step) -> int:
        """Begin a function that takes a message further."""
        head = self.head(signature + "".join(f", {name}" for name in self._context))
        self._key_is("key" if "key" in self._context else ALL)
        self.spot = Spot(step.pipeline, step.name, step.position, None, Reason.RAISED, ())
        return head

    def _step(self, indent: int, index: int, step: Step, message: str, skip: str) -> None:
        operation = step.operation
        if isinstance(operation, (Merge, Branch)):  # graph-2, graph-3
            self._follow(indent, index, message, skip)
            return
        self.spot = Spot(step.pipeline, step.name, step.position, None, Reason.RAISED, self._loops)
        if isinstance(operation, Collect):  # key-2
            self._key_is(ALL)
            self._follow(indent, index, message, skip)
            return
        self.line(indent, f"# {shown(step.name)}")
        if isinstance(operation, KeyBy):
            self._key_by(indent, index, operation, message)
            self._follow(indent, index, message, skip)
        elif isinstance(operation, Windowed):
            key, known = (self._key, self._identity) if operation.keyed else (ALL, "")
            write_put(self, indent, index, operation, message, key, known)
            self._later.append(partial(self._take_out, index, step, operation))
        elif operation.computation.multi:
            self._multi(indent, index, operation, step.name, message)
        elif isinstance(operation, Stateful):
            self._stateful(indent, index, operation, step.name, message)
            self._consumers(indent, index, skip)
        else:
            compute = self.call("compute", index, operation.computation.call, step.name)
            self.line(indent, f"m{index} = {compute}({message})")
            self._consumers(indent, index, skip)

    def _multi(
        self, indent: int, index: int, operation: Stateless | Stateful, name: str, message: str
    ) -> None:
        if isinstance(operation, Stateful):
            self._stateful(indent, index, operation, name, message)
            # The list may be part of the state, and a later step may change it: iterate a copy.
            whole = f"{self.use('type')}(m{index}) is {self.use('list')}"
            items = f"m{index}[:] if {whole} else items_of(m{index})"
            self.line(indent, f"i{index} = {items}")
        else:
            compute = self.call("compute", index, operation.computation.call, name)
            self.line(indent, f"i{index} = {compute}({message})")
            self.line(indent, f"if {self.use('type')}(i{index}) is not {self.use('list')}:")
            self.line(indent + 1, f"i{index} = items_of(i{index})")
        if not self._application.consumers[index]:
            return
        self.line(indent, f"n{index} = iter(i{index})")
        portions = f"{self.use('portions')}(n{index}, {sequence_of(self._loops)})"
        short = f"{self.use('len')}(i{index}) <= {PORTION}"
        self.line(indent, f"for m{index} in n{index} if {short} else {portions}:")
        self.line(indent + 1, "try:")
        assert self.spot is not None
        self.spot = replace(self.spot, loops=(*self._loops, (f"i{index}", f"n{index}")))
        self._consumers(indent + 2, index, "continue")
        self.caught(indent + 1)

    def _key_by(self, indent: int, index: int, operation: KeyBy, message: str) -> None:
        """Write the code that finds a message's key k<index> and its identity d<index> (key-1)."""
        extract = self.call("key", index, operation.route.call, operation.route.name)
        key, kind = f"k{index}", f"{self.use('type')}(k{index})"
        self.line(indent, f"{key} = {extract}({message})")
        # Keys of usual size; of others `judge` says whether they are keys (route-2).
        short = f"{kind} is {self.use('str')} and {self.use('len')}({key}) < 1000"
        small = f"{kind} is {self.use('int')} and {-TIME_END} < {key} < {TIME_END}"
        self.line(indent, f"d{index} = {key}")
        self.line(indent, f"if not ({short} or {small}):")
        self.line(indent + 1, f"d{index} = judge({key})")
        self._key_is(key, f"d{index}")

    def _key_is(self, key: str, identity: str = "") -> None:
        self._key, self._identity = key, identity

    def _stateful(
        self, indent: int, index: int, operation: Stateful, name: str, message: str
    ) -> None:
        compute = self.call("compute", index, operation.computation.call, name)
        changed = self._entity(indent, index, operation, message)
        visit = f"{compute}({message}, s{index})"
        if operation.computation.pair:
            self._pair(indent, index, visit)
            if changed:
                self.line(indent, "if changed:")
                self.line(indent + 1, changed)
        else:  # key-3
            self.line(indent, f"m{index} = {visit}")
            if changed:
                self.line(indent, changed)

    def _entity(self, indent: int, index: int, operation: Stateful, message: str) -> str:
        """Write the code that finds the entity s<index> by its key.

        Returns:
            The line that notes that this entity has changed; empty: that is not needed.
        """
        number = list(self._application.partition).index(operation.partition)
        partition = self._application.partition[operation.partition]
        states = self.use(f"states_{number}")
        key, variable, exact, known = repr(SINGLE_KEY), f"k{index}", "", ""
        if operation.route is not None:
            key = variable
            route = self.call("partition", index, operation.route.call, operation.route.name)
            self.line(indent, f"{key} = {route}({message})")
        elif operation.keyed and self._key != ALL:
            key, variable, known = self._key, self._key, self._identity
        if key == variable and not known:
            # A key of another type is not looked up, so `enter` judges it. The same holds for
            # tuples, which are stored by their encoding.
            exact = self.exactness(key, partition)
        assert self.spot is not None
        self.spot = replace(self.spot, key=variable, partition=partition.name)
        cell_text = known or (key if exact else repr(identity(SINGLE_KEY)))
        noted = f"{self.use(f'changed_{number}')}[{{}}] = None" if self.keeps else ""
        if noted and exact:
            self.line(indent, f"d{index} = {key}")  # the identity of the key: the key, or
        self.line(indent, "try:")
        if exact:
            self.line(indent + 1, f"if not ({exact}):")
            self.line(indent + 2, "raise KeyError")
        self.line(indent + 1, f"s{index} = {states}[{cell_text}]")
        if partition.expire_after is not None:  # key-4
            visits, times = self.use(f"visits_{number}"), self.use("times")
            self.line(indent + 1, f"{visits}[{cell_text}] = {times}.now")
            if noted:
                self.line(indent + 1, noted.format(cell_text))
        self.line(indent, "except KeyError:")
        if noted and exact:  # another value stands for it
            self.line(indent + 1, f"s{index}, d{index} = entered(store_{number}, {key})")
            return noted.format(f"d{index}")
        self.line(indent + 1, f"s{index} = enter(store_{number}, {key})")
        return noted and noted.format(cell_text)

    def _pair(self, indent: int, index: int, visit: str) -> None:
        """Write the call of a state computation and the check of its result (state-2)."""
        self.line(indent, f"r{index} = {visit}")
        self.line(indent, "try:")
        self.line(indent + 1, f"if {self.use('type')}(r{index}) is not {self.use('tuple')}:")
        self.line(indent + 2, f"r{index} = pair_of(r{index})")
        self.line(indent + 1, f"m{index}, changed = r{index}")
        self.line(indent, "except ValueError:")
        self.line(indent + 1, "changed = None")
        self.line(indent, "if changed is not True and changed is not False:")
        self.line(indent + 1, f"pair_of(r{index})")

    def _take_out(self, index: int, step: Step, operation: Windowed) -> None:
        """Write the function that processes what a window gives (window-4)."""
        head = write_take_out(self, index, step, operation)
        self._key_is("key" if "key" in self._context else ALL)
        self._consumers(2, index, "return")
        self.caught(1)
        self.bind(head)

    def _sink(self, indent: int, index: int, sink: Sink, message: str, several: bool) -> None:
        position = self._application.position(sink)
        self.spot = Spot(sink.pipeline, None, position, sink.index, Reason.ENCODE, self._loops)
        encoder = sink.config.encoder
        encode = self.call("encode", index, encoder.call, encoder.name)
        # A call of a list's method by its name is quicker than that of the bound method.
        write = self.use(f"outputs_{list(self._application.sinks).index(sink.id)}") + ".append"
        outer = indent
        if several:
            self.line(outer, "try:")
            indent += 1
        self.line(indent, f"data = {encode}({message})")
        if isinstance(sink.config, KafkaSinkConfig):
            produced = self.call("produced", index, producing(sink.config), encoder.name)
            self.line(indent, "if data is not None:")
            number = sequence_of(self._loops)
            there = f"{self.use('topics')}.get({sink.id!r})"
            self.line(indent + 1, f"{write}({produced}(data, time, {number}, {there}))")
            if several:
                self.caught(outer)
            return
        # An encoder annotated to return text is encoded directly; other results raise, see below.
        text = getattr(encoder.call, "__annotations__", {}).get("return")
        if text not in (str, "str"):
            self.line(indent, f"if {self.use('type')}(data) is {self.use('bytes')}:")
            self.line(indent + 1, f"{write}(data)")
            self.line(indent, "elif data is not None:")
            indent += 1
        self.line(indent, "try:")
        self.line(indent + 1, f"{write}({self.use('utf8')}(data))")
        self.line(indent, "except (TypeError, UnicodeEncodeError):")
        self.line(indent + 1, "if data is not None:")
        self.line(indent + 2, f"{write}(written_of(data))")
        if several:
            self.caught(outer)

    @property
    def _loops(self) -> tuple[tuple[str, str], ...]:
        assert self.spot is not None
        return self.spot.loops


def _context(application: Application) -> tuple[str, ...]:
    """Return what further functions get besides payload and lineage: ``key``, ``time``."""
    keyed = any(
        isinstance(step.operation, (Stateful, Windowed)) and step.operation.keyed
        for step in application.steps
    )
    produces = any(isinstance(one.config, KafkaSinkConfig) for one in application.sinks.values())
    return ("key",) * keyed + ("time",) * bool(application.window_steps or produces)


def link(program: Program, name: str, names: dict[str, Any]) -> None:
    """Add a program's functions to the names that they refer to.

    Args:
        program: the program.
        name: the application's, for tracebacks.
        names: see `Compiled.names`.
    """
    exec(_code(program.source, file_of(name)), names)  # noqa: S102 - our own text; users' names enter it only as identifiers and by repr


def file_of(name: str) -> str:
    """Return what tracebacks show as the file of an application's generated code."""
    return f"<compiled {name!r}>"


def compiled_source(application: Application) -> str:
    """Return the Python source that `Compiled` runs for `application`."""
    return Program(application).source


@lru_cache(maxsize=256)  # compiling is most of a short run's cost, and many applications are alike
def _code(source: str, file: str) -> CodeType:
    return compile(source, file, "exec")
