"""What the interpreter tells an observer while it runs: one is given to each interpreter.

`findings.FindingsObserver` looks for faults of the application, `replay.steps.Steps` notes each
step. Nothing that an observer does changes a result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from wallaroo.components import Component
from wallaroo.findings import Finding
from wallaroo.judging import DeadLetterError
from wallaroo.kafka_records import KafkaRecord, Output
from wallaroo.keys import Key
from wallaroo.records import Single
from wallaroo.trace import Lineage
from wallaroo_reference.isolated.places import FrozenEntity, Place


class Observer:
    """An observer that does nothing. Messages and states are frozen where nothing else is said.

    Attributes:
        follows: it wants to be told of each message's way, which costs time.
        findings: what it has found wrong with the application.
    """

    follows = False
    findings: Sequence[Finding] = ()

    # -- a message's way: what begins inside a step, before its `ended`, comes from that step.
    #    `began`, `gave` and `ended` are told only to those that `follows` ------------------------

    def record_began(
        self,
        place: Place | None,
        lineage: Lineage,
        record: bytes | KafkaRecord | Single | None,
        at: int,
    ) -> None:
        """A record is processed: a frame's payload, a record of Kafka (as fed), or another.

        `place` is that of the source, if a message may begin there.
        """

    def began(self, place: Place, message: Any, lineage: Lineage, time: int) -> None:
        """A message with this event time comes to a step or sink."""

    def fired(self, place: Place, lineage: Lineage, firing: Any, watermark: float) -> None:
        """A window of a step fires: a `windows.Firing`."""

    def gave(self, place: Place, message: Any, key: Key, time: int) -> None:
        """A source or step gives a message, which has this key and event time."""

    def ended(self) -> None:
        """What `began` or `fired` last is complete, with all that came from it."""

    def accumulator_freezer(self, freeze: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """Return the function that freezes accumulators, and what windows give."""
        return freeze

    # -- calls of user code, after each ------------------------------------------------------------

    def decoded(self, place: Place, lineage: Lineage) -> None:
        """A decoder has returned a message."""

    def computed(self, place: Place, lineage: Lineage, result: Any) -> None:
        """A computation has returned `result`; of a multi one, the list of its items."""

    def routed(self, place: Place, lineage: Lineage, message: Any, copy: Any) -> None:
        """What finds a key has read `copy`, its copy of the frozen `message`."""

    def timed(self, place: Place, lineage: Lineage, message: Any, copy: Any) -> None:
        """A source's event-time function has read `copy`, its copy of the frozen `message`."""

    def built(
        self, place: Place, lineage: Lineage, key: Key, builder: Component, state: Any
    ) -> None:
        """A builder has returned `state`, which is not frozen yet."""

    def met(self, entity: FrozenEntity) -> None:
        """A state computation is called with this entity."""

    def visited(
        self,
        place: Place,
        lineage: Lineage,
        entity: FrozenEntity,
        message: Any,
        state: Any,
        given: Any,
    ) -> None:
        """A state computation has succeeded; `given` is its output, or its list of outputs."""

    def unchanged(self, place: Place, lineage: Lineage, entity: FrozenEntity, state: Any) -> None:
        """A state computation has said ``changed=False``; `state` is its copy after the call."""

    def failed(
        self,
        place: Place,
        lineage: Lineage,
        entity: FrozenEntity,
        state: Any,
        dead: DeadLetterError,
    ) -> None:
        """A state computation has failed; `state` is its copy after the call."""

    def accumulated(self, place: Place, lineage: Lineage, key: Key, accumulator: Any) -> None:
        """An aggregation has begun a window's accumulator, which is not copied yet."""

    def encoded(
        self, place: Place, lineage: Lineage, message: Any, copy: Any, written: Output
    ) -> None:
        """An encoder has read `copy`, its copy of the frozen `message`, and `written` is sent."""

    def died(self, place: Place, lineage: Lineage, key: Key | None, dead: DeadLetterError) -> None:
        """A message becomes a dead letter, or ends the run (`dead.reason` is `None`)."""
