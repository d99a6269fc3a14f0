"""The source that the compiled path runs: nested loops, generated from the topology.

`Program` writes one function per source and says what the names in them stand for; what a message
that cannot go on needs is called by name (``fail``, ``enter``) and lives in `compiled`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from wallaroo.keys import SINGLE_KEY, identity
from wallaroo.topology import Application, Sink, Stateful, StatePartition, Step
from wallaroo.trace import Reason

_DEEPEST = 12  # nested loops in one function; Python takes 20 nested blocks


@dataclass(frozen=True)
class Place:
    """Where a call is made, for dead letters."""

    pipeline: str
    step: str | None
    position: int
    sink: int | None
    reason: Reason
    stateful: bool = False


class Program:
    """The generated source, and what its names stand for."""

    def __init__(self, application: Application) -> None:
        self._application = application
        self._lines: list[str] = []
        self._later: list[Callable[[], None]] = []  # functions that deep pipelines go on in
        self.calls: dict[str, Any] = {}
        self.places: list[Place] = []
        self.functions: dict[str, str] = {}  # source -> name of its function
        stores = [f"states_{index}" for index, _ in enumerate(application.partitions)]
        writes = [f"write_{index}" for index, _ in enumerate(application.sinks)]
        self._often = ["type", "bytes", "int", "str", "tuple", "list", "MISSING", *stores, *writes]
        for index, source in enumerate(application.sources):
            self._source(index, source)
        self.source = "\n".join(self._lines) + "\n"

    def _source(self, index: int, pipeline: str) -> None:
        nodes = self._application.nodes
        origin = next(i for i, node in enumerate(nodes) if node.pipeline == pipeline)
        name = f"feed_{index}_{_identifier(pipeline)}"
        self.functions[pipeline] = name
        decode = self._call("decode", origin, self._application.sources[pipeline].config.decoder)
        place = self._place(Place(pipeline, None, -1, None, Reason.DECODE))
        head = self._head(f"{name}(payloads, start")
        self._line(1, f"# source {pipeline!r}")
        self._line(1, "frames = iter(payloads)")
        self._line(1, "for payload in frames:")
        lineage = "start + len(payloads) - 1 - frames.__length_hint__()"
        self._try(2, f"m{origin} = {decode}(payload)", place, [lineage], "continue")
        self._line(2, f"if m{origin} is None:")
        self._line(3, "continue")
        self._consumers(2, origin, [lineage], "continue", 1)
        self._bind(head)
        while self._later:
            self._later.pop(0)()

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
            Place(step.pipeline, step.name, step.position, None, Reason.RAISED, stateful)
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
                # A list may be part of the state, which a later step of the pipeline may alter.
                self._line(
                    indent, f"i{index} = m{index}[:] if type(m{index}) is list else m{index}"
                )
                self._items(indent, index, place, lineage, skip, key)
        elif multi:
            self._try(indent, f"i{index} = {compute}(m{origin})", place, lineage, skip)
            self._items(indent, index, place, lineage, skip)
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

    def _items(
        self,
        indent: int,
        index: int,
        place: int,
        lineage: list[str],
        skip: str,
        key: str | None = None,
    ) -> None:
        """Write how a multi result becomes a list; one that is a list is taken as it is."""
        self._line(indent, f"if type(i{index}) is not list:")
        self._try(indent + 1, f"i{index} = items_of(i{index})", place, lineage, skip, key)

    def _go_on(self, name: str, index: int, step: Step, origin: int) -> None:
        head = self._head(f"{name}(payload, lineage, m{origin}")
        self._step(1, index, step, origin, ["*lineage"], "return", 0)
        self._bind(head)

    def _head(self, signature: str) -> int:
        self._line(0, f"def {signature}")
        return len(self._lines) - 1

    def _bind(self, head: int) -> None:
        """Complete the function that began at line `head`: what it uses often becomes local."""
        used = set(re.findall(r"\w+", "\n".join(self._lines[head + 1 :])))
        local = [name for name in (*self.calls, *self._often) if name in used]
        defaults = "".join(f", {name}={name}" for name in local)
        self._lines[head] += f"{defaults}):"
        self._line(0, "")

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
            # A key of another type is sought as MISSING, so not found, and `enter` judges it; it
            # does so with tuples too, which are known by their encoding.
            exact = _exactness(partition, f"k{index}")
            found = f"states_{number}[k{index} if {exact} else MISSING]"
        self._line(indent, "try:")
        self._line(indent + 1, f"s{index} = {found}")
        self._line(indent, "except KeyError:")
        self._line(indent + 1, f"s{index} = {enter}")
        self._line(indent + 1, f"if s{index} is MISSING:")
        self._line(indent + 2, skip)
        return f"k{index}"

    def _sink(self, indent: int, index: int, sink: Sink, origin: int, lineage: list[str]) -> None:
        position = len(
            [n for n in self._application.pipeline(sink.pipeline) if isinstance(n, Step)]
        )
        place = self._place(Place(sink.pipeline, None, position, sink.index, Reason.ENCODE))
        encode = self._call("encode", index, sink.config.encoder)
        write = f"write_{list(self._application.sinks).index(sink.id)}"
        failed = f"fail(place[{place}], {_tuple(lineage)}, payload, error)"
        self._line(indent, "try:")
        self._line(indent + 1, f"data = {encode}(m{origin})")
        self._line(indent, "except BaseException as error:")
        self._line(indent + 1, failed)
        self._line(indent, "else:")
        text = (
            "if type(data) is str:",
            "    try:",
            f"        {write}(data.encode())",
            "    except UnicodeEncodeError as error:",
            f"        {failed.replace('error)', 'not_utf8(error))')}",
        )
        binary = ("if type(data) is bytes:", f"    {write}(data)")
        other = (
            "if data is not None:",
            "    try:",
            f"        {write}(written_of(data))",
            "    except BadOutputError as error:",
            f"        {failed}",
        )
        # What an encoder says it gives is looked for first; that is all its word counts for.
        gives = getattr(sink.config.encoder.call, "__annotations__", {}).get("return")
        likely = (text, binary) if gives in (str, "str") else (binary, text)
        for number, branch in enumerate((*likely, other)):
            for line, statement in enumerate(branch):
                self._line(indent + 1, f"el{statement}" if number and not line else statement)

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
        self.calls[called] = record.call
        return called

    def _place(self, place: Place) -> int:
        self.places.append(place)
        return len(self.places) - 1

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
