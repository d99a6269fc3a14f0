"""A case: one application and its input, as one value.

Frozen dataclasses over the catalogue of operators, with a canonical JSON form both ways. Indices
are taken modulo the number of items, so that a case with any part left out is still a case.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from wallaroo.engine import Isolation, OnError
from wallaroo.trace import InputLog, canonical_json

FORMAT = "wallaroo-case/1"

Shape: TypeAlias = Literal["single", "keyed", "u64"]

APPLICATION = "case"
PIPELINES = ("first", "first way", "first_way")
PARTITIONS = (
    *("north", "north sea", "north_sea"),  # drawn by chance; the tour has all
    *("North sea", "north sea ", "n\u00f6rth", "no\u0308rth", "north" * 50, f"{'north' * 50}."),
)
"""Names that make the same identifier, or are equal but for case, accents, blanks, or length."""
DRAWN_PARTITIONS = 3


@dataclass(frozen=True)
class PartitionSpec:
    """A state partition.

    Args:
        shape: `to_stateful`, `to_state_partition` or `to_state_partition_u64`.
        builder: name of its builder.
        keys: name of the list of its keys; `None`: any key. Ignored if it is `single`.
    """

    shape: Shape = "single"
    builder: str = "Notebook"
    keys: str | None = None


@dataclass(frozen=True)
class StepSpec:
    """A step.

    Args:
        operator: name of its computation.
        parallel: `to_parallel` instead of `to`; for stateless steps.
        partition: index of its state partition; for steps with state.
        route: name of its partition function; for keyed partitions.
    """

    operator: str = "identity"
    parallel: bool = False
    partition: int = 0
    route: str = "by_text"


@dataclass(frozen=True)
class PipelineSpec:
    """A pipeline; no sinks: `done()`."""

    decoder: str = "text"
    steps: tuple[StepSpec, ...] = ()
    sinks: tuple[str, ...] = ("line",)


@dataclass(frozen=True)
class Input:
    """A frame: the source it comes by, its payload, and which of the source's connections."""

    pipeline: int
    payload: bytes
    connection: int = 0


@dataclass(frozen=True)
class ConformanceCase:
    """An application and its input.

    Args:
        pipelines: one to three.
        partitions: those that steps name by index.
        inputs: frames in the order received, over all sources and connections.
        batches: sizes of the batches; the messages left after them are one more; `None`: one batch.
        number: of partitions; `None`: the engine's own choice.
        isolation: the engine's mode.
        on_error: what a dead letter does to the run.
        small: with the engine's small thresholds (`Capabilities.small`).
    """

    pipelines: tuple[PipelineSpec, ...] = (PipelineSpec(),)
    partitions: tuple[PartitionSpec, ...] = (PartitionSpec(),)
    inputs: tuple[Input, ...] = ()
    batches: tuple[int, ...] | None = None
    number: int | None = None
    isolation: Isolation = "isolated"
    on_error: OnError = "skip"
    small: bool = False

    @property
    def messages(self) -> int:
        """How many frames it has."""
        return len(self.inputs)

    @property
    def input_log(self) -> InputLog:
        """(source, payload) in the order received."""
        return [(PIPELINES[entry.pipeline], entry.payload) for entry in self.inputs]

    def partition_of(self, step: StepSpec) -> int:
        """Return the index of the partition a step with state is over."""
        return step.partition % len(self.partitions)

    def steps(self) -> Iterator[tuple[int, int, StepSpec]]:
        """Yield (pipeline's index, position, step)."""
        for index, pipeline in enumerate(self.pipelines):
            for position, step in enumerate(pipeline.steps):
                yield index, position, step

    def to_json(self) -> dict[str, Any]:
        """Return the case as JSON values; a payload is text with a character for each byte."""
        # By hand, since `dataclasses.asdict` takes longer than an engine takes for the case.
        form: dict[str, Any] = {"format": FORMAT, **vars(self)}
        form["pipelines"] = [
            {
                "decoder": pipeline.decoder,
                "steps": [{**vars(step)} for step in pipeline.steps],
                "sinks": [*pipeline.sinks],
            }
            for pipeline in self.pipelines
        ]
        form["partitions"] = [{**vars(partition)} for partition in self.partitions]
        form["batches"] = None if self.batches is None else [*self.batches]
        form["inputs"] = [
            [entry.pipeline, entry.payload.decode("latin-1"), entry.connection]
            for entry in self.inputs
        ]
        return form

    def canonical_json(self) -> str:
        """Return the case's canonical JSON text: the same for equal cases."""
        return canonical_json(self.to_json())
