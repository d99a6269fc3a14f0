r"""Immutable pipelines: the later published form of the API (graph-1).

Each call returns a new pipeline and leaves the one it was called on as it was, so a pipeline can be
used twice, which makes branches, and two can be merged.

>>> import wallaroo
>>> @wallaroo.decoder(header_length=4, length_fmt=">I")
... def decode(payload):
...     return payload.decode("utf-8")
>>> @wallaroo.computation(name="shout")
... def shout(text):
...     return text.upper()
>>> @wallaroo.encoder
... def encode(text):
...     return text + "\n"
>>> words = wallaroo.source("words", wallaroo.TCPSourceConfig("127.0.0.1", 0, decode))
>>> shouted = words.to(shout).to_sink(wallaroo.TCPSinkConfig("127.0.0.1", 7002, encode))
>>> wallaroo.build_application("shouting", shouted).name
'shouting'
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeAlias, TypeVar

from wallaroo import kinds
from wallaroo.building.declarations import (
    Declarations,
    checked_sinks,
    codec_in,
    described,
    refuse_same_address,
)
from wallaroo.checks import checked_at, name_of
from wallaroo.components import (
    computation_of,
    own_state_of,
    partition_function_of,
    state_builder_of,
    state_computation_of,
)
from wallaroo.errors import WallarooParameterError
from wallaroo.keys import Key
from wallaroo.operations import (
    Branch,
    Collect,
    KeyBy,
    Merge,
    Operation,
    Stateful,
    Stateless,
    Windowed,
)
from wallaroo.topology import (
    SOURCES,
    AnySink,
    AnySource,
    Application,
    Node,
    Sink,
    Source,
    Step,
)
from wallaroo.windows import WindowedAggregation, refuse_bare

M = TypeVar("M")
N = TypeVar("N")
S = TypeVar("S")
K = TypeVar("K", bound=Key)
L = TypeVar("L", bound=Key)

_calls = itertools.count()
"""Numbers the calls of this process: only their order counts (graph-2)."""


_NAMED_BY: dict[type, str] = {
    Stateless: "computation",
    Stateful: "computation",
    Windowed: "aggregation",
    KeyBy: "route",
}
"""What a step has its name of."""


@dataclass(frozen=True)
class _Sinks:
    """The sinks of one call."""

    configs: tuple[AnySink[Any], ...]


@dataclass(frozen=True)
class _Done:
    """The end of a pipeline without a sink."""


_What: TypeAlias = AnySource[Any] | Operation | _Sinks | _Done


@dataclass(frozen=True, eq=False, repr=False)
class Pipeline(Generic[kinds.Message, kinds.MessageKey]):
    """A pipeline up to one call: made by `wallaroo.source` and by its own methods.

    Every method raises `WallarooParameterError`, which names pipeline and call, if its arguments
    cannot be built.

    A type checker follows the types of messages and keys, as in ``Pipeline[str, int]``. A message
    without a key is treated as if it had the key `()` (key-2).
    """

    _name: str
    _what: _What
    _inputs: tuple[Pipeline[Any, Any], ...]
    _keyed: bool
    _call: int

    def to(
        self: Pipeline[M, K],
        step: kinds.AnyComputation[M, N]
        | kinds.AnyOwnStateComputation[M, S, N]
        | WindowedAggregation[M, K, N],
    ) -> Pipeline[N, K]:
        """Return the pipeline with another step.

        Args:
            step: a computation; a state computation that says its state, as in
                ``@wallaroo.state_computation(name=…, state=STATE)``; or windows over an
                aggregation, as in ``wallaroo.range_windows(wallaroo.seconds(10)).over(TOTAL)``.
        """
        where = self._where("to", step)
        if isinstance(step, WindowedAggregation):
            record = step.aggregation
            windowed = Windowed(step.windows, record, record.name, None, keyed=self._keyed)
            return self._next(windowed, keyed=True)
        if own_state_of(step) is not None:
            computation = checked_at(where, state_computation_of, step)
            own = own_state_of(step)
            assert own is not None
            return self._next(Stateful(computation, own.name, None, self._keyed), keyed=True)
        return self._stateless(where, step, parallel=False)

    def to_parallel(
        self: Pipeline[M, K], computation: kinds.AnyComputation[M, N]
    ) -> Pipeline[N, K]:
        """Return the pipeline with a computation that an engine may spread (compute-3)."""
        where = self._where("to_parallel", computation)
        if isinstance(computation, WindowedAggregation) or own_state_of(computation) is not None:
            raise WallarooParameterError(
                f"{where}: a step with state meets its messages in order. Write: "
                f".to({name_of(computation)})"
            )
        return self._stateless(where, computation, parallel=True)

    def key_by(
        self: Pipeline[M, Any], key_extractor: kinds.AnyPartitionFunction[M, K]
    ) -> Pipeline[M, K]:
        """Return the pipeline with messages that have the key `key_extractor` finds (key-1).

        Args:
            key_extractor: made by ``@wallaroo.key_extractor``, or any partition function.
        """
        where = self._where("key_by", key_extractor)
        return self._next(
            KeyBy(checked_at(where, partition_function_of, key_extractor)), keyed=True
        )

    def collect(self: Pipeline[M, Any]) -> Pipeline[M, tuple[()]]:
        """Return the pipeline with messages that all have one key, `()` (key-2)."""
        self._where("collect", None)
        return self._next(Collect(), keyed=True)

    def merge(self: Pipeline[M, K], other: Pipeline[N, L]) -> Pipeline[M | N, K | L]:
        """Return the union of both pipelines' messages (graph-3)."""
        where = self._where("merge", None)
        if not isinstance(other, Pipeline):
            raise WallarooParameterError(
                f"{where}: expected a pipeline, not {described(other)}. Write: "
                "wallaroo.source(NAME, SOURCE_CONFIG) and its steps"
            )
        other._where("merge", None)
        if self._keyed is not other._keyed:
            bare = self._name if other._keyed else other._name
            raise WallarooParameterError(
                f"{where}: the messages of one side have a key, those of the other have none: "
                f"{bare!r}. Write: .key_by(KEY_EXTRACTOR) or .collect() on both sides (graph-3)"
            )
        return Pipeline(self._name, Merge(), (self, other), self._keyed, next(_calls))

    def to_sink(self: Pipeline[M, K], sink_config: AnySink[M]) -> Pipeline[M, K]:
        """Return the pipeline, ended in a sink."""
        return self._sinks("to_sink", (sink_config,))

    def to_sinks(
        self: Pipeline[M, K],
        sink_configs: list[AnySink[M]] | tuple[AnySink[M], ...],
    ) -> Pipeline[M, K]:
        """Return the pipeline, ended in several sinks that each get every message (sink-2)."""
        return self._sinks("to_sinks", sink_configs)

    def done(self: Pipeline[M, K]) -> Pipeline[M, K]:
        """Return the pipeline, ended without a sink."""
        self._where("done", None)
        return self._next(_Done(), keyed=self._keyed)

    def __repr__(self) -> str:
        return f"<wallaroo pipeline {self._name!r}>"

    def _stateless(self, where: str, step: Any, *, parallel: bool) -> Pipeline[Any, Any]:
        checked_at(where, refuse_bare, step)
        try:
            computation = computation_of(step)
        except WallarooParameterError as error:
            # A state computation of the builder's form is the usual slip.
            try:
                name = state_computation_of(step).name
            except WallarooParameterError:
                raise WallarooParameterError(f"{where}: {error}") from error.__cause__
            raise WallarooParameterError(
                f"{where}: {name!r} is a state computation that does not say its state. Write: "
                f'@wallaroo.state_computation(name="{name}", state=STATE), and return the output '
                "alone (key-3)"
            ) from None
        return self._next(Stateless(computation, parallel), keyed=self._keyed)

    def _sinks(self, method: str, configs: Sequence[AnySink[Any]]) -> Pipeline[Any, Any]:
        checked = checked_sinks(self._where(method, None), configs)
        return self._next(_Sinks(checked), keyed=self._keyed)

    def _next(self, what: _What, *, keyed: bool) -> Pipeline[Any, Any]:
        return Pipeline(self._name, what, (self,), keyed, next(_calls))

    def _where(self, method: str, component: Any) -> str:
        """Return where a call stands, for errors; refuse a call on a pipeline that has ended."""
        argument = "" if component is None else name_of(component)
        where = f"pipeline {self._name!r}, {method}({argument})"
        if isinstance(self._what, (_Sinks, _Done)):
            raise WallarooParameterError(
                f"{where}: the pipeline has ended already. Put the step before the end; to use "
                "a pipeline twice, give it a name before it ends, and write both calls on that"
            )
        return where


def source(name: str, source_config: AnySource[M]) -> Pipeline[M, tuple[()]]:
    """Begin a pipeline called `name`, fed by `source_config` (graph-1).

    Raises:
        WallarooParameterError: one of them cannot be built.
    """
    if not isinstance(name, str) or not name:
        raise WallarooParameterError(f"a pipeline's name is a non-empty str, not {name!r:.60}")
    if not isinstance(source_config, SOURCES):
        raise WallarooParameterError(
            f"pipeline {name!r}: expected a source, not {described(source_config)}. Write: "
            f"wallaroo.source({name!r}, wallaroo.TCPSourceConfig(HOST, PORT, DECODER))"
        )
    return Pipeline(name, source_config, (), False, next(_calls))


def build_application(name: str, *pipelines: Pipeline) -> Application:
    """Return the topology of the pipelines given and of all that leads to them (graph-1).

    Raises:
        WallarooParameterError: it cannot be built; the error names application, pipeline and step.
    """
    if not isinstance(name, str) or not name:
        raise WallarooParameterError(f"an application's name is a non-empty str, not {name!r:.60}")
    if not pipelines:
        raise WallarooParameterError(
            f"application {name!r} has no pipeline. Write: "
            f"wallaroo.build_application({name!r}, PIPELINE, …)"
        )
    for pipeline in pipelines:
        if not isinstance(pipeline, Pipeline):
            raise WallarooParameterError(
                f"application {name!r}: expected a pipeline, not {described(pipeline)}. Write: "
                f"wallaroo.build_application({name!r}, PIPELINE, …)"
            )
        if not isinstance(pipeline._what, (_Sinks, _Done)):
            raise WallarooParameterError(
                f"application {name!r}, pipeline {pipeline._name!r}: it has neither a sink nor "
                "done(). Write: .to_sink(wallaroo.TCPSinkConfig(HOST, PORT, ENCODER)) or .done()"
            )
    codec = codec_in(sys._getframe(1).f_globals)
    made = _leading_to(pipelines)
    built = _Building(name, made)
    for pipeline in made:
        built.add(pipeline)
    return Application(name, tuple(built.nodes), built.declarations.partitions, codec)


class _Building:
    """The nodes of an application.

    Args:
        name: the application's name.
        made: the pipelines of which it is made, in the order of their calls.
    """

    def __init__(self, name: str, made: list[Pipeline]) -> None:
        self._application = f"application {name!r}"
        self.nodes: list[Node] = []
        self.declarations = Declarations()
        self._index: dict[Pipeline, int] = {}
        self._names: dict[str, str] = {}
        self._places: dict[tuple[str, int], list[Any]] = {}  # where each component stands
        # For each pipeline the calls that use it, and as which of their inputs.
        self._uses: dict[Pipeline, list[tuple[Pipeline, int]]] = {one: [] for one in made}
        for one in made:
            for side, origin in enumerate(one._inputs):
                self._uses[origin].append((one, side))

    def add(self, pipeline: Pipeline) -> None:
        """Add the node, or the sinks, of one call."""
        where = f"{self._application}, pipeline {pipeline._name!r}"
        what = pipeline._what
        if isinstance(what, SOURCES):
            sources = [node for node in self.nodes if isinstance(node, Source)]
            if any(other.pipeline == pipeline._name for other in sources):
                raise WallarooParameterError(
                    f"{where}: two sources have that name. Give each its own"
                )
            refuse_same_address(where, what, sources)
            self._index[pipeline] = self._append(Source(pipeline._name, what))
            return
        origins = tuple([self._origin(pipeline, side) for side in range(len(pipeline._inputs))])
        if isinstance(what, _Sinks):
            first = len([n for n in self._of(pipeline._name) if isinstance(n, Sink)])
            for index, config in enumerate(what.configs, first):
                self._append(Sink(pipeline._name, index, config, origins))
        elif not isinstance(what, _Done):
            what = self._numbered(where, what)
            if isinstance(what, Stateful):
                self._declare(where, what)
            self._index[pipeline] = self._append(self._step(pipeline._name, what, origins))

    def _origin(self, pipeline: Pipeline, side: int) -> int:
        """Return the node of a pipeline's input; where that is used more than once, a branch."""
        origin = pipeline._inputs[side]
        uses = self._uses[origin]
        if len(uses) == 1:
            return self._index[origin]
        branch = Branch(uses.index((pipeline, side)))
        return self._append(self._step(origin._name, branch, (self._index[origin],)))

    def _step(self, name: str, operation: Operation, origins: tuple[int, ...]) -> Step:
        position = len([node for node in self._of(name) if isinstance(node, Step)])
        return Step(name, position, operation, origins)

    def _append(self, node: Node) -> int:
        self.nodes.append(node)
        return len(self.nodes) - 1

    def _of(self, name: str) -> Iterator[Node]:
        return (node for node in self.nodes if node.pipeline == name)

    def _numbered(self, where: str, operation: Operation) -> Operation:
        """Return a step's operation; in its component's second place it is ``NAME (2)`` (graph-5).

        Raises:
            WallarooParameterError: another component has that name.
        """
        attribute = _NAMED_BY.get(type(operation))
        if attribute is None:
            return operation
        record = getattr(operation, attribute)
        places = self._places.setdefault((attribute, id(record.component)), [])
        places.append(record)  # which keeps the component, so no other has its id
        if len(places) == 1:
            self._refuse_same_name(where, operation)
            return operation
        name = f"{record.name} ({len(places)})"
        changes: dict[str, Any] = {attribute: replace(record, name=name)}
        if isinstance(operation, Windowed):
            changes["state_name"] = name
        numbered: Operation = replace(operation, **changes)
        self._refuse_same_name(where, numbered)
        return numbered

    def _refuse_same_name(self, where: str, operation: Operation) -> None:
        if not isinstance(operation, (Stateless, Stateful, Windowed)):
            return
        name = operation.name
        if name in self._names:
            wrong = f"{where}, step {name!r}: {self._names[name]} has a step of that name too"
            raise WallarooParameterError(
                f"{wrong}, and each name must mean one step. Write another name="
                f"{', and state_name= where both share a state' * isinstance(operation, Stateful)}"
                " (graph-5)"
            )
        self._names[name] = where.partition(", ")[2]

    def _declare(self, where: str, operation: Stateful) -> None:
        own = own_state_of(operation.computation.component)
        assert own is not None  # `Pipeline.to` has made a state computation of no other kind
        where = f"{where}, step {operation.name!r}"
        builder = checked_at(where, state_builder_of, own.state)
        partition = self.declarations.checked(
            where, own.name, builder, None, expire_after=own.expire_after
        )
        self.declarations.add(partition, where.partition(", ")[2])


def _leading_to(pipelines: tuple[Pipeline, ...]) -> list[Pipeline]:
    """Return the pipelines and all that leads to them, in the order of the calls."""
    found: dict[int, Pipeline] = {}
    rest = list(pipelines)
    while rest:
        pipeline = rest.pop()
        if pipeline._call not in found:
            found[pipeline._call] = pipeline
            rest += pipeline._inputs
    return [found[call] for call in sorted(found)]
