"""`ApplicationBuilder`: the calls that describe an application, and what they refuse (build-1)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Never, TypeVar, overload

from wallaroo import kinds
from wallaroo.components import (
    PartitionFunction,
    StateBuilder,
    computation_of,
    declared_name,
    name_of,
    partition_function_of,
    state_builder_of,
    state_computation_of,
)
from wallaroo.config import TCPSinkConfig, TCPSourceConfig
from wallaroo.errors import WallarooParameterError
from wallaroo.keys import SINGLE_KEY, BadKeyError, Key, encode_key
from wallaroo.topology import (
    Application,
    Node,
    Operation,
    Sink,
    Source,
    Stateful,
    Stateless,
    StatePartition,
    Step,
)

C = TypeVar("C")
State = TypeVar("State")

_U64 = 1 << 64


class ApplicationBuilder:
    """Describes an application, call by call; every step returns the builder.

    Every method raises `WallarooParameterError`, which names application, pipeline and step, if its
    arguments cannot be built; the builder is then as before the call.

    >>> import wallaroo
    >>> wallaroo.ApplicationBuilder("a").to(str)
    Traceback (most recent call last):
    wallaroo.errors.WallarooParameterError: application 'a': to(str) comes before any pipeline. \
Write first: .new_pipeline(NAME, SOURCE_CONFIG)
    """

    def __init__(self, name: str) -> None:
        if not isinstance(name, str) or not name:
            raise WallarooParameterError(f"an application's name is a non-empty str, not {name!r}")
        self._name = name
        self._nodes: list[Node] = []
        self._partitions: dict[str, StatePartition] = {}
        self._declared_at: dict[str, str] = {}  # state partition's name -> who declared it
        self._pipeline: str | None = None
        self._ended: str | None = None  # the call that ended the current pipeline

    def new_pipeline(self, name: str, source_config: TCPSourceConfig[Any]) -> ApplicationBuilder:
        """Begin a pipeline called `name`, fed by `source_config`."""
        self._refuse_open_pipeline()
        where = f"application {self._name!r}"
        if not isinstance(name, str) or not name:
            raise WallarooParameterError(
                f"{where}: a pipeline's name is a non-empty str, not {name!r}"
            )
        where = f"{where}, pipeline {name!r}"
        sources = [node for node in self._nodes if isinstance(node, Source)]
        if any(source.pipeline == name for source in sources):
            raise WallarooParameterError(f"{where}: there is a pipeline of that name already")
        if not isinstance(source_config, TCPSourceConfig):
            raise WallarooParameterError(
                f"{where}: expected a source, not {_described(source_config)}. Write: "
                f".new_pipeline({name!r}, wallaroo.TCPSourceConfig(HOST, PORT, DECODER))"
            )
        for source in sources:
            if source_config.port and source.config.address == source_config.address:
                raise WallarooParameterError(
                    f"{where}: its source listens on {source_config.address}, and so does that of "
                    f"pipeline {source.pipeline!r}; give each its own port"
                )
        self._nodes.append(Source(name, source_config))
        self._pipeline, self._ended = name, None
        return self

    def to(self, computation: kinds.AnyComputation[Any, Any]) -> ApplicationBuilder:
        """Add a computation: message in, message or `None` out; if multi, an iterable out."""
        return self._stateless("to", computation, parallel=False)

    def to_parallel(self, computation: kinds.AnyComputation[Any, Any]) -> ApplicationBuilder:
        """Add a computation that an engine may spread; results keep their order (compute-3)."""
        return self._stateless("to_parallel", computation, parallel=True)

    @overload
    def to_stateful(
        self,
        computation: kinds.AnyStateComputation[Any, State, Any],
        state: kinds.AnyState[State],
        state_name: str,
    ) -> ApplicationBuilder: ...

    @overload  # a type checker refuses it; at run time its error says what to write
    def to_stateful(self, computation: Never) -> ApplicationBuilder: ...

    def to_stateful(
        self, computation: Any, state: Any = None, state_name: Any = None
    ) -> ApplicationBuilder:
        """Add a state computation over a state partition with one entity (route-6).

        Args:
            computation: a state computation.
            state: the state's class, or a builder whose `build()` returns the state.
            state_name: the partition's name; pipelines that give the same share the entity.
        """
        where = self._where("to_stateful", computation)
        if state is None or state_name is None:
            raise WallarooParameterError(
                f"{where}: expected a state and its name beside the computation. "
                f"Write: .to_stateful({name_of(computation)}, STATE, STATE_NAME)"
            )
        builder = self._try(where, state_builder_of, state)
        partition = self._declared(where, state_name, builder, (SINGLE_KEY,), u64=False)
        return self._stateful(where, computation, partition, None)

    def to_state_partition(
        self,
        computation: kinds.AnyStateComputation[Any, State, Any],
        state: kinds.AnyState[State],
        state_name: str,
        partition_function: kinds.AnyPartitionFunction[Any, Key],
        partition_keys: list[Any] | tuple[Key, ...] | range | None = None,
    ) -> ApplicationBuilder:
        """Add a state computation over a state partition with an entity per key.

        Args:
            computation: a state computation.
            state: the state's class, or a builder whose `build()` returns the state.
            state_name: the partition's name; pipelines that give the same share its entities.
            partition_function: maps a message to its key.
            partition_keys: a sequence of all keys; empty or `None`: an entity is made for each key
                that comes (route-3).
        """
        where = self._where("to_state_partition", computation)
        return self._keyed(
            where, computation, state, state_name, partition_function, partition_keys, u64=False
        )

    def to_state_partition_u64(
        self,
        computation: kinds.AnyStateComputation[Any, State, Any],
        state: kinds.AnyState[State],
        state_name: str,
        partition_function: kinds.AnyPartitionFunction[Any, int],
        partition_keys: list[int] | tuple[int, ...] | range | None = None,
    ) -> ApplicationBuilder:
        """Add a step as `to_state_partition` does, with keys `0 <= key < 2**64` (route-5)."""
        where = self._where("to_state_partition_u64", computation)
        return self._keyed(
            where, computation, state, state_name, partition_function, partition_keys, u64=True
        )

    def to_sink(self, sink_config: TCPSinkConfig[Any]) -> ApplicationBuilder:
        """End the pipeline in a sink."""
        return self._sinks("to_sink", [sink_config])

    def to_sinks(
        self, sink_configs: list[TCPSinkConfig[Any]] | tuple[TCPSinkConfig[Any], ...]
    ) -> ApplicationBuilder:
        """End the pipeline in several sinks, each of which gets every message (sink-2)."""
        if not isinstance(sink_configs, (list, tuple)) or not sink_configs:
            where = self._where("to_sinks", None)
            raise WallarooParameterError(
                f"{where}: expected a list of one sink or more, not {_described(sink_configs)}. "
                "Write: .to_sinks([wallaroo.TCPSinkConfig(HOST, PORT, ENCODER), …])"
            )
        return self._sinks("to_sinks", list(sink_configs))

    def done(self) -> ApplicationBuilder:
        """End the pipeline without a sink."""
        self._where("done", None)
        self._ended = "done()"
        return self

    def build(self) -> Application:
        """Return the application's topology, complete and frozen."""
        if not self._nodes:
            raise WallarooParameterError(
                f"application {self._name!r} has no pipeline. "
                "Write: .new_pipeline(NAME, SOURCE_CONFIG)"
            )
        self._refuse_open_pipeline()
        return Application(self._name, tuple(self._nodes), tuple(self._partitions.values()))

    def _stateless(self, method: str, component: Any, *, parallel: bool) -> ApplicationBuilder:
        where = self._where(method, component)
        computation = self._try(where, computation_of, component)
        return self._step(Stateless(computation, parallel))

    def _keyed(
        self,
        where: str,
        component: Any,
        state: Any,
        state_name: Any,
        partition_function: Any,
        partition_keys: Any,
        *,
        u64: bool,
    ) -> ApplicationBuilder:
        builder = self._try(where, state_builder_of, state)
        route = self._try(where, partition_function_of, partition_function)
        listed = () if partition_keys is None else _checked_keys(where, partition_keys, u64=u64)
        keys = listed or None  # an empty list, the published default, means any key (route-3)
        partition = self._declared(where, state_name, builder, keys, u64=u64)
        return self._stateful(where, component, partition, route)

    def _declared(
        self,
        where: str,
        name: Any,
        builder: StateBuilder,
        keys: tuple[Key, ...] | None,
        *,
        u64: bool,
    ) -> StatePartition:
        """Return the partition described; it must agree with its earlier descriptions (state-8)."""
        if not isinstance(name, str) or not name:
            raise WallarooParameterError(
                f"{where}: a state partition's name is a non-empty str, not {_described(name)}"
            )
        known = self._partitions.get(name)
        if known is None:
            return StatePartition(name, builder, keys, u64)
        differs = None
        if not _same_builder(known.builder.component, builder.component):
            differs = f"the builder {known.builder.name} there, {builder.name} here"
        elif _encoded(known.keys) != _encoded(keys):
            differs = f"{_keys_described(known.keys)} there, {_keys_described(keys)} here"
        elif known.u64 != u64:
            kinds = ("keys of any type", "64-bit keys")
            differs = f"{kinds[known.u64]} there, {kinds[u64]} here"
        if differs is not None:
            raise WallarooParameterError(
                f"{where}: state partition {name!r} is shared with {self._declared_at[name]}, but "
                f"they disagree: {differs} (state-8). Say the same in both, or give it another name"
            )
        return known

    def _stateful(
        self,
        where: str,
        component: Any,
        partition: StatePartition,
        route: PartitionFunction | None,
    ) -> ApplicationBuilder:
        computation = self._try(where, state_computation_of, component)
        self._partitions.setdefault(partition.name, partition)
        self._declared_at.setdefault(
            partition.name, f"step {computation.name!r} of pipeline {self._pipeline!r}"
        )
        return self._step(Stateful(computation, partition.name, route))

    def _step(self, operation: Operation) -> ApplicationBuilder:
        assert self._pipeline is not None  # `_where` has refused the call otherwise
        position = len([node for node in self._nodes if node.pipeline == self._pipeline]) - 1
        self._nodes.append(Step(self._pipeline, position, operation, (len(self._nodes) - 1,)))
        return self

    def _sinks(self, method: str, configs: list[Any]) -> ApplicationBuilder:
        where = self._where(method, None)
        for config in configs:
            if not isinstance(config, TCPSinkConfig):
                raise WallarooParameterError(
                    f"{where}: expected a sink, not {_described(config)}. Write: "
                    ".to_sink(wallaroo.TCPSinkConfig(HOST, PORT, ENCODER))"
                )
        assert self._pipeline is not None  # `_where` has refused the call otherwise
        origin = (len(self._nodes) - 1,)
        for index, config in enumerate(configs):
            self._nodes.append(Sink(self._pipeline, index, config, origin))
        self._ended = f"{method}(…)"
        return self

    def _where(self, method: str, component: Any) -> str:
        """Return where the call stands, for errors; refuse a call outside an open pipeline."""
        argument = "" if component is None else name_of(component)
        call = f"{method}({argument})"
        step = declared_name(component)
        if step is not None and step != argument:
            call = f"{call}, step {step!r}"
        if self._pipeline is None:
            raise WallarooParameterError(
                f"application {self._name!r}: {call} comes before any pipeline. "
                "Write first: .new_pipeline(NAME, SOURCE_CONFIG)"
            )
        where = f"application {self._name!r}, pipeline {self._pipeline!r}, {call}"
        if self._ended is not None:
            hint = (
                " For several sinks write: .to_sinks([SINK_CONFIG, …])"
                if method.startswith("to_sink")
                else " Put the step before the end, or begin another: .new_pipeline(NAME, SOURCE)"
            )
            raise WallarooParameterError(
                f"{where}: the pipeline has ended already, with {self._ended}.{hint}"
            )
        return where

    def _refuse_open_pipeline(self) -> None:
        if self._pipeline is not None and self._ended is None:
            raise WallarooParameterError(
                f"application {self._name!r}, pipeline {self._pipeline!r}: it has neither a sink "
                "nor done(). Write: .to_sink(wallaroo.TCPSinkConfig(HOST, PORT, ENCODER)) or "
                ".done()"
            )

    def _try(self, where: str, of: Callable[[object], C], component: object) -> C:
        try:
            return of(component)
        except WallarooParameterError as error:
            raise WallarooParameterError(f"{where}: {error}") from error.__cause__


def _checked_keys(where: str, keys: Any, *, u64: bool) -> tuple[Key, ...]:
    if not isinstance(keys, Sequence) or isinstance(keys, (str, bytes, bytearray, memoryview)):
        hint = f"list({name_of(keys)})" if hasattr(keys, "__name__") else "list(KEYS)"
        raise WallarooParameterError(
            f"{where}: partition_keys is a list, tuple or range of keys, not {_described(keys)}. "
            f"Write: {hint}"
        )
    listed: tuple[Any, ...] = tuple(keys)
    seen: set[bytes] = set()
    for key in listed:
        try:
            encoded = encode_key(key)
        except BadKeyError as error:
            raise WallarooParameterError(
                f"{where}: partition_keys holds {_described(key)}: {error} (route-2)"
            ) from None
        if u64 and not (type(key) is int and 0 <= key < _U64):
            raise WallarooParameterError(
                f"{where}: partition_keys holds {_described(key)}; 64-bit keys are ints from 0 to "
                "2**64 - 1 (route-5)"
            )
        if encoded in seen:
            raise WallarooParameterError(f"{where}: partition_keys repeats {_described(key)}")
        seen.add(encoded)
    return listed


def _same_builder(one: Any, other: Any) -> bool:
    """Whether two builders agree: one object, one class, or equal instances of one (state-8)."""
    if one is other:
        return True
    if type(one) is not type(other) or isinstance(one, type):
        return False
    try:
        return bool(_attributes(one) == _attributes(other))
    except Exception:  # noqa: BLE001 - the attributes' __eq__ is the user's: an array has no one answer
        return False


def _encoded(keys: tuple[Key, ...] | None) -> set[bytes] | None:
    """Return keys as a set; by their encodings, since comparing deep tuples recurses."""
    return None if keys is None else {encode_key(key) for key in keys}


def _attributes(instance: Any) -> dict[str, Any]:
    attributes = dict(getattr(instance, "__dict__", {}))
    for kind in type(instance).__mro__:
        slots = kind.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if hasattr(instance, name):
                attributes[name] = getattr(instance, name)
    return attributes


def _keys_described(keys: tuple[Key, ...] | None) -> str:
    return "any key" if keys is None else f"{len(keys)} listed keys"


def _described(value: object) -> str:
    kind = type(value).__name__
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001 - a very deep tuple, an int of 5,000 digits, the user's __repr__
        return f"a {kind}"
    return f"{kind} {text if len(text) <= 60 else text[:60] + '…'}"
