"""`ApplicationBuilder`: the calls that describe an application, and what they refuse (build-1)."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial
from typing import Any, Never, TypeVar, overload

from wallaroo import kinds
from wallaroo.building.declarations import (
    Declarations,
    checked_keys,
    checked_sinks,
    codec_in,
    described,
    refuse_same_address,
)
from wallaroo.checks import checked_at, declared_name, name_of
from wallaroo.components import (
    PartitionFunction,
    computation_of,
    partition_function_of,
    state_builder_of,
    state_computation_of,
)
from wallaroo.errors import WallarooParameterError
from wallaroo.keys import SINGLE_KEY, Key
from wallaroo.operations import Operation, Stateful, Stateless, Windowed
from wallaroo.topology import (
    SOURCES,
    AnySink,
    AnySource,
    Application,
    Node,
    Sink,
    Source,
    StatePartition,
    Step,
)
from wallaroo.windows import WindowedAggregation, refuse_bare

State = TypeVar("State")
K = TypeVar("K", bound=Key)


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
        self._declarations = Declarations()
        self._pipeline: str | None = None
        self._ended: str | None = None  # the call that ended the current pipeline

    def new_pipeline(self, name: str, source_config: AnySource[Any]) -> ApplicationBuilder:
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
        if not isinstance(source_config, SOURCES):
            raise WallarooParameterError(
                f"{where}: expected a source, not {described(source_config)}. Write: "
                f".new_pipeline({name!r}, wallaroo.TCPSourceConfig(HOST, PORT, DECODER))"
            )
        refuse_same_address(where, source_config, sources)
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
        expire_after: int | None = None,
    ) -> ApplicationBuilder: ...

    @overload  # a type checker refuses it; at run time its error says what to write
    def to_stateful(self, computation: Never) -> ApplicationBuilder: ...

    def to_stateful(
        self,
        computation: Any,
        state: Any = None,
        state_name: Any = None,
        expire_after: int | None = None,
    ) -> ApplicationBuilder:
        """Add a state computation over a state partition with one entity (route-6).

        Args:
            computation: a state computation.
            state: the state's class, or a builder whose `build()` returns the state.
            state_name: the partition's name; pipelines that give the same share the entity.
            expire_after: nanoseconds after its last visit at which the entity is gone (key-4).
        """
        where = self._where("to_stateful", computation)
        if state is None or state_name is None:
            raise WallarooParameterError(
                f"{where}: expected a state and its name beside the computation. "
                f"Write: .to_stateful({name_of(computation)}, STATE, STATE_NAME)"
            )
        builder = checked_at(where, state_builder_of, state)
        partition = self._declarations.checked(
            where, state_name, builder, (SINGLE_KEY,), expire_after=expire_after
        )
        return self._stateful(where, computation, partition, None)

    def to_state_partition(
        self,
        computation: kinds.AnyStateComputation[Any, State, Any],
        state: kinds.AnyState[State],
        state_name: str,
        partition_function: kinds.AnyPartitionFunction[Any, Key],
        partition_keys: list[Any] | tuple[Key, ...] | range | None = None,
        expire_after: int | None = None,
    ) -> ApplicationBuilder:
        """Add a state computation over a state partition with an entity per key.

        Args:
            computation: a state computation.
            state: the state's class, or a builder whose `build()` returns the state.
            state_name: the partition's name; pipelines that give the same share its entities.
            partition_function: maps a message to its key.
            partition_keys: a sequence of all keys; empty or `None`: an entity is made for each key
                that comes (route-3).
            expire_after: nanoseconds after its last visit at which an entity is gone (key-4).
        """
        where = self._where("to_state_partition", computation)
        route = checked_at(where, partition_function_of, partition_function)
        listed = () if partition_keys is None else checked_keys(where, partition_keys, u64=False)
        return self._keyed(where, computation, state, state_name, route, listed, expire_after)

    def to_state_partition_u64(
        self,
        computation: kinds.AnyStateComputation[Any, State, Any],
        state: kinds.AnyState[State],
        state_name: str,
        partition_function: kinds.AnyPartitionFunction[Any, int],
        partition_keys: list[int] | tuple[int, ...] | range | None = None,
        expire_after: int | None = None,
    ) -> ApplicationBuilder:
        """Add a step as `to_state_partition` does, with keys `0 <= key < 2**64` (route-5)."""
        where = self._where("to_state_partition_u64", computation)
        route = checked_at(where, partition_function_of, partition_function)
        listed = () if partition_keys is None else checked_keys(where, partition_keys, u64=True)
        return self._keyed(
            where, computation, state, state_name, route, listed, expire_after, u64=True
        )

    def to_window(
        self,
        window: WindowedAggregation[Any, K, Any],
        partition_function: kinds.AnyPartitionFunction[Any, K] | None = None,
        state_name: str | None = None,
    ) -> ApplicationBuilder:
        """Add a window step (window-1).

        Args:
            window: windows over an aggregation, such as
                ``wallaroo.range_windows(wallaroo.seconds(10)).over(AGGREGATION)``.
            partition_function: maps a message to its key; `None`: all have one key.
            state_name: the name of the windows' state; the aggregation's unless given.
        """
        where = self._where("to_window", window)
        if not isinstance(window, WindowedAggregation):
            raise WallarooParameterError(
                f"{where}: expected windows over an aggregation, not {described(window)}. Write: "
                "wallaroo.range_windows(wallaroo.seconds(10)).over(AGGREGATION)"
            )
        route = None
        if partition_function is not None:
            route = checked_at(where, partition_function_of, partition_function)
        name = window.aggregation.name if state_name is None else state_name
        if not isinstance(name, str) or not name:
            raise WallarooParameterError(
                f"{where}: a state's name is a non-empty str, not {described(name)}"
            )
        taken = [step.operation for step in self._steps if isinstance(step.operation, Windowed)]
        if any(operation.state_name == name for operation in taken):
            raise WallarooParameterError(
                f"{where}: another window step keeps its windows as {name!r}, and windows are not "
                "shared. Write: .to_window(WINDOW, PARTITION_FUNCTION, STATE_NAME) with another "
                "STATE_NAME"
            )
        return self._step(Windowed(window.windows, window.aggregation, name, route))

    def to_sink(self, sink_config: AnySink[Any]) -> ApplicationBuilder:
        """End the pipeline in a sink."""
        return self._sinks("to_sink", [sink_config])

    def to_sinks(
        self, sink_configs: list[AnySink[Any]] | tuple[AnySink[Any], ...]
    ) -> ApplicationBuilder:
        """End the pipeline in several sinks, each of which gets every message (sink-2)."""
        return self._sinks("to_sinks", sink_configs)

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
        codec = codec_in(sys._getframe(1).f_globals)
        return Application(self._name, tuple(self._nodes), self._declarations.partitions, codec)

    @property
    def _steps(self) -> list[Step]:
        return [node for node in self._nodes if isinstance(node, Step)]

    def _stateless(self, method: str, component: Any, *, parallel: bool) -> ApplicationBuilder:
        where = self._where(method, component)
        if isinstance(component, WindowedAggregation):
            raise WallarooParameterError(
                f"{where}: in this form a window step is given its partition function. Write: "
                ".to_window(WINDOW, PARTITION_FUNCTION, STATE_NAME)"
            )
        checked_at(where, partial(refuse_bare, call="to_window"), component)
        computation = checked_at(where, computation_of, component)
        return self._step(Stateless(computation, parallel))

    def _keyed(
        self,
        where: str,
        component: Any,
        state: Any,
        state_name: Any,
        route: PartitionFunction,
        listed: tuple[Key, ...],
        expire_after: int | None,
        *,
        u64: bool = False,
    ) -> ApplicationBuilder:
        builder = checked_at(where, state_builder_of, state)
        keys = listed or None  # an empty list, the published default, means any key (route-3)
        partition = self._declarations.checked(
            where, state_name, builder, keys, u64=u64, expire_after=expire_after
        )
        return self._stateful(where, component, partition, route)

    def _stateful(
        self,
        where: str,
        component: Any,
        partition: StatePartition,
        route: PartitionFunction | None,
    ) -> ApplicationBuilder:
        computation = checked_at(where, state_computation_of, component)
        if not computation.pair:
            raise WallarooParameterError(
                f"{where}: {computation.name!r} names its own state, which is the form for "
                f'pipelines. Write: @wallaroo.state_computation(name="{computation.name}") without '
                "state=, and return (output, changed) (key-3)"
            )
        step = f"step {computation.name!r} of pipeline {self._pipeline!r}"
        self._declarations.add(partition, step)
        return self._step(Stateful(computation, partition.name, route))

    def _step(self, operation: Operation) -> ApplicationBuilder:
        assert self._pipeline is not None  # `_where` has refused the call otherwise
        position = len([node for node in self._nodes if node.pipeline == self._pipeline]) - 1
        self._nodes.append(Step(self._pipeline, position, operation, (len(self._nodes) - 1,)))
        return self

    def _sinks(self, method: str, configs: Sequence[AnySink[Any]]) -> ApplicationBuilder:
        checked = checked_sinks(self._where(method, None), configs)
        assert self._pipeline is not None  # `_where` has refused the call otherwise
        origin = (len(self._nodes) - 1,)
        for index, config in enumerate(checked):
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
