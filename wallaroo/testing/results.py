"""What a run did, in the form that tests need."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from wallaroo.errors import WallarooError
from wallaroo.findings import Finding
from wallaroo.keys import Key, show_key
from wallaroo.readable import trace_text
from wallaroo.topology import Application, SinkId
from wallaroo.trace import DeadLetter, Entity, OpenWindow, Trace
from wallaroo.user_code.failure import describe_error


class EntityError(WallarooError):
    """A state entity cannot be read back in this process; says which, why, and what to use."""


@dataclass(frozen=True, repr=False)
class Result:
    """What a run did, in the form that tests need.

    Args:
        outputs: for each sink, (pipeline, index), its outputs in order: bytes, of a Kafka sink with
            value, key, partition, headers and timestamp (`wallaroo.testing.Produced`).
        dead_letters: the dead letters, in order.
        structures: for each state partition its entities by key, as canonical structure
            (`wallaroo.canonical`), the form in which engines are compared.
        findings: the findings of `isolated` mode about the application.
        trace: the whole trace, as conformance compares it.
    """

    outputs: dict[SinkId, list[Any]]
    dead_letters: list[DeadLetter]
    structures: dict[str, dict[Key, Any]]
    findings: list[Finding]
    trace: Trace

    def __repr__(self) -> str:
        return trace_text(self.trace)

    @cached_property
    def entities(self) -> dict[str, dict[Key, Any]]:
        """For each state partition its entities by key, as objects of the application's classes.

        Raises:
            EntityError: one of them cannot be read back in this process.
        """
        entities: dict[str, dict[Key, Any]] = {name: {} for name in self.structures}
        for entity in self.trace.entities:
            entities[entity.partition][entity.key] = _loaded(entity)
        return entities

    @property
    def open_windows(self) -> list[OpenWindow]:
        """The windows open at the end, by step, key and start (window-11)."""
        return list(self.trace.windows)

    @property
    def output(self) -> list[Any]:
        """The outputs of the application's only sink.

        Raises:
            ValueError: it has none, or several.
        """
        if len(self.outputs) != 1:
            raise ValueError(f"the application has {len(self.outputs)} sinks: use outputs[SINK]")
        return next(iter(self.outputs.values()))


def result_of(application: Application, trace: Trace) -> Result:
    """Return a run's trace in the form that tests need."""
    structures: dict[str, dict[Key, Any]] = {name: {} for name in application.partition}
    for entity in trace.entities:
        structures[entity.partition][entity.key] = entity.state
    return Result(
        outputs={sink: list(trace.outputs.get(sink, ())) for sink in application.sinks},
        dead_letters=list(trace.dead_letters),
        structures=structures,
        findings=list(trace.findings),
        trace=trace,
    )


def _loaded(entity: Entity) -> Any:
    which = f"entity {show_key(entity.key)} of state partition {entity.partition!r}"
    if entity.load is None:
        raise EntityError(f"{which}: this engine gives no objects. Use result.structures")
    try:
        return entity.load()
    except Exception as error:
        raise EntityError(
            f"{which} cannot be unpickled in this process: "
            f"{type(error).__name__}: {describe_error(error)}. Use result.structures, which has "
            "its contents"
        ) from error
