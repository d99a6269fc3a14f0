"""What a step does: a closed union that every engine interprets for itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from wallaroo.aggregations import AggregationRecord
from wallaroo.components import Computation, PartitionFunction, StateComputation
from wallaroo.windows import Windows


@dataclass(frozen=True)
class Stateless:
    """A stateless step; `parallel` allows an engine to run it in any order (compute-3)."""

    computation: Computation
    parallel: bool

    @property
    def name(self) -> str:
        """The computation's name."""
        return self.computation.name


@dataclass(frozen=True)
class Stateful:
    """A step over a state partition.

    `route` finds a message's key. Where it is `None`, the key is the message's own if `keyed`
    (key-1), else `wallaroo.keys.SINGLE_KEY` (route-6, key-2).
    """

    computation: StateComputation
    partition: str
    route: PartitionFunction | None
    keyed: bool = False

    @property
    def name(self) -> str:
        """The computation's name."""
        return self.computation.name


@dataclass(frozen=True)
class Windowed:
    """A window step (window-1); `route` and `keyed` as for `Stateful`.

    `state_name` is the name under which its windows are kept: in the builder's form as given there,
    else the aggregation's.
    """

    windows: Windows
    aggregation: AggregationRecord
    state_name: str
    route: PartitionFunction | None
    keyed: bool = False

    @property
    def name(self) -> str:
        """The aggregation's name."""
        return self.aggregation.name


@dataclass(frozen=True)
class KeyBy:
    """Finds a message's key, which stays with it and with all that is made of it (key-1)."""

    route: PartitionFunction

    @property
    def name(self) -> str:
        """The key extractor's name."""
        return self.route.name


@dataclass(frozen=True)
class Collect:
    """Gives every message the key `wallaroo.keys.SINGLE_KEY` (key-2)."""

    name = "collect"


@dataclass(frozen=True)
class Merge:
    """The union of two pipelines' messages (graph-3)."""

    name = "merge"


@dataclass(frozen=True)
class Branch:
    """One branch of a pipeline that is used more than once; its number is in the lineage (graph-2).

    Args:
        number: which branch, in the order of the calls, from 0.
    """

    number: int

    @property
    def name(self) -> str:
        """``branch`` and the number."""
        return f"branch {self.number}"


Operation: TypeAlias = Stateless | Stateful | Windowed | KeyBy | Collect | Merge | Branch
