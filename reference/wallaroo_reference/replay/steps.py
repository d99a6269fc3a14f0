"""What the interpreter does with a message, step by step: the steps that an output comes from.

`Steps` observes the interpreter, and notes each step. Each step knows the step before it, so an
output can be followed back to its record. Values are noted frozen, as the interpreter keeps them
anyway, and thawed only when they are shown; so this costs little.

A window step freezes an accumulator after each message, and after sessions merge. A frozen
accumulator here also knows the accumulators that it was made from and the message that was put in.
So the messages of a window are exactly those that its accumulators have met, whatever its kind.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, TypeAlias

from wallaroo.judging import DeadLetterError
from wallaroo.kafka_records import KafkaRecord, Output
from wallaroo.keys import Key
from wallaroo.operations import Branch, Collect, KeyBy, Merge, Windowed
from wallaroo.overriding import override
from wallaroo.records import Assigned, End, Single, Tick, Value
from wallaroo.topology import SinkId
from wallaroo.trace import Lineage, lineage_order
from wallaroo_reference.isolated.copies import Frozen, packed, thaw
from wallaroo_reference.isolated.observer import Observer
from wallaroo_reference.isolated.places import FrozenEntity, Place
from wallaroo_reference.isolated.windows import Firing

What: TypeAlias = Literal[
    "frame", "value", "assigned", "tick", "end", "computation", "state computation", "key",
    "collect", "merge", "branch", "window", "firing", "sink",
]  # fmt: skip
"""What is done: with a record, at a step, or at a sink. `window`: a window step takes a message;
`firing`: it gives the result of a window."""

ABSENT = object()
"""Stands for a value that does not exist."""


class Put(NamedTuple):
    """A message that was put into a window.

    Args:
        lineage: its lineage.
        time: its event time.
        message: the message, frozen.
    """

    lineage: Lineage
    time: int
    message: Any


@dataclass(slots=True, eq=False)
class Step:
    """What is done once with one message. Values are frozen (`isolated.copies`).

    Args:
        what: what is done.
        place: where; `None`: not at a step, since time passes or a source ends.
        lineage: the message's.
        before: the step that gave the message; `None`: it is the record's first.
        came: the message, or the frame's payload.
        source: the record's source.
        at: the record's arrival time.
        time: the message's event time.
        key: the key that it met, or that was found.
        gave: the messages that went on from here.
        state, new_state: the entity before and after.
        built: the entity was built for this message.
        problem: why the message is a dead letter.
        firing: the window.
        puts: the messages in it, in order of lineage.
        stored: there are more in it, of which the state that the run began with has the effect.
        watermark: of the window step, when a window fires.
        written: what a sink wrote.
    """

    what: What
    place: Place | None
    lineage: Lineage
    before: Step | None
    came: Any = ABSENT
    source: str | None = None
    at: int = 0
    time: int = 0
    key: Any = ABSENT
    gave: list[Any] = field(default_factory=list)
    state: Any = ABSENT
    new_state: Any = ABSENT
    built: bool = False
    problem: DeadLetterError | None = None
    firing: Firing | None = None
    puts: list[Put] = field(default_factory=list)
    stored: bool = False
    watermark: float = 0
    written: Output | None = None

    def way(self) -> list[Step]:
        """Return the steps from the record to this one."""
        steps: list[Step] = []
        step: Step | None = self
        while step is not None:
            steps.append(step)
            step = step.before
        return steps[::-1]


class Steps(Observer):
    """Notes the steps that an interpreter takes.

    Attributes:
        on_output: called with a sink and the step that has written an output to it.
        on_dead_letter: called with the step whose message has become a dead letter.
        on_visit: called with the step of each visit of a state entity, before the visit.
        on_step: called with each step when it begins.
        current: the step that is being done.
    """

    follows = True

    def __init__(self) -> None:
        self.on_output: Callable[[SinkId, Step], None] = _ignore
        self.on_dead_letter: Callable[[Step], None] = _ignore
        self.on_visit: Callable[[Step], None] = _ignore
        self.on_step: Callable[[Step], None] = _ignore
        self.current: Step | None = None
        self._thawed: list[_Accumulator] = []  # in this step, since it last froze one
        self._in_none = False  # whether no accumulator has met the step's message yet

    @override
    def record_began(
        self,
        place: Place | None,
        lineage: Lineage,
        record: bytes | KafkaRecord | Single | None,
        at: int,
    ) -> None:
        self.current = None
        if record is None or isinstance(record, (bytes, KafkaRecord)):
            assert place is not None
            step = Step("frame", place, lineage, None, record, source=place.pipeline)
        else:
            step = Step(_RECORDS[type(record)], place, lineage, None)
            step.source = None if isinstance(record, Tick) else record.source
        step.at = at
        self._begin(step)

    @override
    def began(self, place: Place, message: Any, lineage: Lineage, time: int) -> None:
        self._begin(Step(_what(place), place, lineage, self.current, message, time=time))

    @override
    def fired(self, place: Place, lineage: Lineage, firing: Firing, watermark: float) -> None:
        step = Step("firing", place, lineage, self.current, key=firing.key, watermark=watermark)
        step.firing = firing
        accumulators = _all_accumulators(firing.parts)
        puts = [one.put for one in accumulators if one.put is not None]
        step.puts = sorted(puts, key=lambda put: lineage_order(put.lineage))
        step.stored = any(one.put is None and not one.made_of for one in accumulators)
        self._begin(step)

    @override
    def gave(self, place: Place, message: Any, key: Key, time: int) -> None:
        step = self.current
        assert step is not None
        step.gave.append(message)
        step.time = time
        if step.what == "key":
            step.key = key

    @override
    def ended(self) -> None:
        assert self.current is not None
        self.current = self.current.before

    @override
    def built(self, place: Place, *_: Any) -> None:
        assert self.current is not None
        self.current.built = True

    @override
    def met(self, entity: FrozenEntity) -> None:
        step = self.current
        assert step is not None
        step.key, step.state, step.new_state = entity.key, entity.state, entity.state
        self.on_visit(step)

    @override
    def visited(self, place: Place, lineage: Lineage, entity: FrozenEntity, *_: Any) -> None:
        assert self.current is not None
        self.current.new_state = entity.state

    @override
    def encoded(
        self, place: Place, lineage: Lineage, message: Any, copy: Any, written: Output
    ) -> None:
        assert self.current is not None
        assert place.sink is not None
        self.current.written = written
        self.on_output(place.sink, self.current)

    @override
    def died(self, place: Place, lineage: Lineage, key: Key | None, dead: DeadLetterError) -> None:
        step = self.current
        assert step is not None
        step.problem = dead
        if key is not None:
            step.key = key
        if dead.reason is not None:
            self.on_dead_letter(step)

    @override
    def accumulator_freezer(self, freeze: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def frozen(value: Any) -> Any:
            if self.current is None:  # the run begins with it
                return _Accumulator(self, freeze(value), (), None)
            if (put := self._put) is None:
                return freeze(value)
            met = put if self._in_none else None
            accumulator = _Accumulator(self, freeze(value), tuple(self._thawed), met)
            self._in_none = False
            self._thawed.clear()
            return accumulator

        return frozen

    def thawed(self, accumulator: _Accumulator) -> None:
        """Note that an accumulator is used: the next one that is frozen is made from it."""
        if self._put is not None:
            self._thawed.append(accumulator)

    @property
    def _put(self) -> Put | None:
        """The message that is being put into a window, if one is."""
        step = self.current
        if step is None or step.what != "window":
            return None
        return Put(step.lineage, step.time, step.came)

    def _begin(self, step: Step) -> None:
        self.current = step
        self.on_step(step)
        self._in_none = True
        self._thawed.clear()


_RECORDS: dict[type, What] = {
    Value: "value", Assigned: "assigned", Tick: "tick", End: "end",
}  # fmt: skip
_OPERATIONS: dict[type, What] = {
    Collect: "collect", Merge: "merge", Branch: "branch", KeyBy: "key", Windowed: "window",
}  # fmt: skip


def _what(place: Place) -> What:
    """Return what is done at a step or sink."""
    if place.sink is not None:
        return "sink"
    if place.stateful is not None:
        return "state computation"
    return "computation" if place.operation is None else _OPERATIONS[type(place.operation)]


def _ignore(*_: object) -> None:
    """Do nothing."""


def _all_accumulators(parts: Sequence[Any]) -> list[_Accumulator]:
    """Return the accumulators of a window, with all that they were made of."""
    found = [part for part in parts if isinstance(part, _Accumulator)]
    for accumulator in found:
        found.extend(accumulator.made_of)
    return found


class _Accumulator(Frozen):
    """A frozen accumulator that knows the message that was put in, and what it was made of."""

    __slots__ = ("_steps", "inner", "made_of", "put")

    def __init__(
        self, steps: Steps, inner: Any, made_of: tuple[_Accumulator, ...], put: Put | None
    ) -> None:
        self._steps = steps
        self.inner = inner
        self.made_of = made_of
        self.put = put

    @override
    def thaw(self) -> Any:
        self._steps.thawed(self)
        return thaw(self.inner)

    @override
    def packed(self) -> bytes:
        return packed(self.inner)
