"""The source code that the compiled path runs: nested loops, generated from the topology.

`Program` writes one function per source of the application, and knows what each name in it stands
for. A message that cannot go on raises an exception, which is caught once in each loop. From the
line that raised it `Compiled.fail` knows which call failed; it reads the rest from the function's
variables.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from wallaroo.keys import SINGLE_KEY, identity
from wallaroo.operations import Stateful, Stateless
from wallaroo.topology import Application, Sink, StatePartition, Step
from wallaroo.trace import Reason
from wallaroo_reference.meter import PORTION

_FRAMES = (("payloads", "frames"),)  # the loop of a source's function
_DEEPEST = 6  # loops inside the first in one function, each with a `try`; Python allows 20 blocks


@dataclass(frozen=True)
class Spot:
    """The call that a line of the generated code belongs to.

    Args:
        pipeline, step, position, sink, reason: a dead letter's fields, if the line raises.
        loops: the loops around the line in its function, outermost first: for each the names of
            the list and of its iterator.
        key: the name of the variable that holds the visited entity's key; `None` where the
            partition has only one entity.
    """

    pipeline: str
    step: str | None
    position: int
    sink: int | None
    reason: Reason
    loops: tuple[tuple[str, str], ...]
    key: str | None = None


class Program:
    """The generated code, and what its names stand for."""

    def __init__(self, application: Application) -> None:
        self._application = application
        self._lines: list[str] = []
        self._later: list[Callable[[], None]] = []  # functions for the rest of deep pipelines
        self._used: dict[str, None] = {}  # names the current function uses often
        self.calls: dict[str, Any] = {}
        self.functions: dict[str, str] = {}  # source -> name of its function
        self.spots: list[Spot | None] = []  # for each line; `None` for lines that call `fail`
        for index, source in enumerate(application.sources):
            self._source(index, source)
        self.source = "\n".join(self._lines) + "\n"

    def _source(self, index: int, pipeline: str) -> None:
        nodes = self._application.nodes
        origin = next(i for i, node in enumerate(nodes) if node.pipeline == pipeline)
        name = f"feed_{index}_{_identifier(pipeline)}"
        self.functions[pipeline] = name
        loops = _FRAMES
        self._spot = Spot(pipeline, None, -1, None, Reason.DECODE, loops)
        head = self._head(f"{name}(payloads, start")
        self._line(1, f"# source {_shown(pipeline)}")
        self._line(1, "frames = iter(payloads)")
        self._line(1, "for payload in frames:")
        self._line(2, "try:")
        decode = self._call("decode", origin, self._application.sources[pipeline].config.decoder)
        self._line(3, f"m{origin} = {decode}(payload)")
        self._consumers(3, origin, "continue")
        self._caught(2)
        self._bind(head)
        while self._later:
            self._later.pop(0)()

    def _consumers(self, indent: int, origin: int, skip: str) -> None:
        """Write the code that processes node `origin`'s message, the variable m<origin>."""
        consumers = self._application.consumers[origin]
        if consumers:
            self._line(indent, f"if m{origin} is None:")
            self._line(indent + 1, skip)
        for index in consumers:
            node = self._application.nodes[index]
            # An exception in one consumer must not skip the others.
            several = len(consumers) > 1
            if isinstance(node, Sink):
                self._sink(indent, index, node, origin, several)
            elif isinstance(node, Step) and (several or len(self._spot.loops) > _DEEPEST):
                name = f"go_on_at_{index}"
                self._line(indent, f"{name}(payload, {_lineage(self._spot.loops)}, m{origin})")
                self._later.append(partial(self._go_on, name, index, node, origin))
            elif isinstance(node, Step):
                self._step(indent, index, node, origin, skip)

    def _go_on(self, name: str, index: int, step: Step, origin: int) -> None:
        head = self._head(f"{name}(payload, lineage, m{origin}")
        self._spot = Spot(step.pipeline, step.name, step.position, None, Reason.RAISED, ())
        self._line(1, "try:")
        self._step(2, index, step, origin, "return")
        self._caught(1)
        self._bind(head)

    def _step(self, indent: int, index: int, step: Step, origin: int, skip: str) -> None:
        operation = step.operation
        assert isinstance(operation, (Stateless, Stateful))  # others are not compiled yet
        at, loops = step.position, self._spot.loops
        self._spot = Spot(step.pipeline, step.name, at, None, Reason.RAISED, loops)
        self._line(indent, f"# {_shown(step.name)}")
        compute = self._call("compute", index, operation.computation, step.name)
        multi = operation.computation.multi
        if isinstance(operation, Stateful):
            self._entity(indent, index, operation, origin)
            self._pair(indent, index, f"{compute}(m{origin}, s{index})")
            if multi:
                # The list may be part of the state, and a later step may change it: iterate a copy.
                items = (
                    f"m{index}[:] if type(m{index}) is {self._use('list')} else items_of(m{index})"
                )
                self._line(indent, f"i{index} = {items}")
        elif multi:
            self._line(indent, f"i{index} = {compute}(m{origin})")
            self._line(indent, f"if {self._use('type')}(i{index}) is not {self._use('list')}:")
            self._line(indent + 1, f"i{index} = items_of(i{index})")
        else:
            self._line(indent, f"m{index} = {compute}(m{origin})")
        if not multi:
            self._consumers(indent, index, skip)
        elif self._application.consumers[index]:
            self._line(indent, f"n{index} = iter(i{index})")
            portions = f"{self._use('portions')}(n{index}, {_sequence(loops)})"
            short = f"{self._use('len')}(i{index}) <= {PORTION}"
            self._line(indent, f"for m{index} in n{index} if {short} else {portions}:")
            self._line(indent + 1, "try:")
            self._spot = replace(self._spot, loops=(*loops, (f"i{index}", f"n{index}")))
            self._consumers(indent + 2, index, "continue")
            self._caught(indent + 1)

    def _entity(self, indent: int, index: int, operation: Stateful, origin: int) -> None:
        """Write the code that finds the entity s<index> by its key k<index>."""
        number = list(self._application.partition).index(operation.partition)
        states = self._use(f"states_{number}")
        if operation.route is None:
            key, known = repr(SINGLE_KEY), repr(identity(SINGLE_KEY))
        else:
            key = f"k{index}"
            partition_function = self._call("partition", index, operation.route)
            self._line(indent, f"{key} = {partition_function}(m{origin})")
            # A key of another type is looked up as MISSING, which is never found, so `enter` judges
            # it. The same holds for tuples, which are stored by their encoding.
            exact = self._exactness(self._application.partition[operation.partition], key)
            known = f"{key} if {exact} else {self._use('MISSING')}"
        self._spot = replace(self._spot, key=f"k{index}")
        self._line(indent, "try:")
        self._line(indent + 1, f"s{index} = {states}[{known}]")
        self._line(indent, "except KeyError:")
        self._line(indent + 1, f"s{index} = enter(store_{number}, {key})")

    def _pair(self, indent: int, index: int, visit: str) -> None:
        """Write the call of a state computation and the check of its result (state-2)."""
        whole = f"{self._use('type')}(r{index}) is {self._use('tuple')}"
        self._line(indent, f"r{index} = {visit}")
        self._line(indent, "try:")
        self._line(indent + 1, f"m{index}, changed = r{index} if {whole} else (None, None)")
        self._line(indent, "except ValueError:")
        self._line(indent + 1, "changed = None")
        self._line(indent, "if changed is not True and changed is not False:")
        self._line(indent + 1, f"m{index}, changed = pair_of(r{index})")

    def _sink(self, indent: int, index: int, sink: Sink, origin: int, several: bool) -> None:
        position = self._application.position(sink)
        loops = self._spot.loops
        self._spot = Spot(sink.pipeline, None, position, sink.index, Reason.ENCODE, loops)
        encode = self._call("encode", index, sink.config.encoder)
        write = self._use(f"write_{list(self._application.sinks).index(sink.id)}")
        outer = indent
        if several:
            self._line(outer, "try:")
            indent += 1
        self._line(indent, f"data = {encode}(m{origin})")
        # An encoder annotated to return text is encoded directly; other results raise, see below.
        text = getattr(sink.config.encoder.call, "__annotations__", {}).get("return")
        if text in (str, "str"):
            self._line(indent, "if data is not None:")
        else:
            self._line(indent, f"if {self._use('type')}(data) is {self._use('bytes')}:")
            self._line(indent + 1, f"{write}(data)")
            self._line(indent, "elif data is not None:")
        self._line(indent + 1, "try:")
        self._line(indent + 2, f"{write}({self._use('utf8')}(data))")
        self._line(indent + 1, "except (TypeError, UnicodeEncodeError):")
        self._line(indent + 2, f"{write}(written_of(data))")
        if several:
            self._caught(outer)

    def _caught(self, indent: int) -> None:
        """Write the end of the `try` around the processing of one message."""
        self._line(indent, "except BaseException:")
        self._line(indent + 1, "fail(locals())")
        self.spots[-1] = None

    def _head(self, signature: str) -> int:
        self._used = {}
        self._line(0, f"def {signature}")
        return len(self._lines) - 1

    def _bind(self, head: int) -> None:
        """Complete the function that begins at line `head`: make names it uses often local."""
        self._lines[head] += "".join(f", {name}={name}" for name in self._used) + "):"
        self._line(0, "")

    def _call(self, what: str, index: int, record: Any, name: str = "") -> str:
        called = f"{what}_{index}_{_identifier(name or record.name)}"
        self.calls[called] = record.call
        return self._use(called)

    def _use(self, name: str) -> str:
        self._used[name] = None
        return name

    def _exactness(self, partition: StatePartition, key: str) -> str:
        """Return the test that a key has a type for which dictionary lookup is exact (route-2)."""
        kinds: set[type] = {str, int, bytes}
        if partition.u64:
            kinds = {int}
        elif partition.keys is not None:
            kinds &= {type(known) for known in partition.keys}
        names = sorted((kind.__name__ for kind in kinds), reverse=True)
        tests = [f"{self._use('type')}({key}) is {self._use(name)}" for name in names]
        return " or ".join(tests) or "False"

    def _line(self, indent: int, text: str) -> None:
        self._lines.append("    " * indent + text)
        self.spots.append(self._spot)


def _lineage(loops: tuple[tuple[str, str], ...]) -> str:
    """Return the expression for the loops' positions, computed from what their iterators left."""
    positions = [f"len({items}) - 1 - {rest}.__length_hint__()" for items, rest in loops]
    if loops[:1] == _FRAMES:
        positions[0] = f"start + {positions[0]}"
    else:
        positions.insert(0, "*lineage")
    return f"({', '.join(positions)},)"


def _sequence(loops: tuple[tuple[str, str], ...]) -> str:
    """Return the expression for the current message's sequence number."""
    if loops[:1] == _FRAMES:
        return "start + len(payloads) - 1 - frames.__length_hint__()"
    return "lineage[0]"


def _shown(name: str) -> str:
    """Return a name quoted, on one line; a subclass of `str` may have its own `__repr__`."""
    return str.__repr__(name)


def _identifier(name: str) -> str:
    return re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_").lower()[:40] or "unnamed"
