"""What the interpreter does with a message, step by step: the steps that an output comes from.

`Watched` is the interpreter: it processes messages in the same way, and notes each step. Each step
knows the step before it, so an output can be followed back to its record. Values are noted frozen,
as the interpreter keeps them anyway, and thawed only when they are shown; so watching costs little.

A window step freezes an accumulator after each message, and after sessions merge. A frozen
accumulator here also knows the accumulators that it was made from and the message that was put in.
So the messages of a window are exactly those that its accumulators have met, whatever its kind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, TypeAlias

from wallaroo.judging import DeadLetterError
from wallaroo.keys import Key
from wallaroo.operations import Branch, Collect, KeyBy, Merge, Windowed
from wallaroo.records import End, Tick, Value
from wallaroo.topology import Application, SinkId
from wallaroo.trace import Lineage, lineage_order
from wallaroo_reference.isolated.copies import Frozen, packed, thaw
from wallaroo_reference.isolated.interpreter import Interpreter
from wallaroo_reference.isolated.places import FrozenEntity, Place
from wallaroo_reference.isolated.windows import Firing, WindowStep

What: TypeAlias = Literal[
    "frame", "value", "tick", "end", "computation", "state computation", "key", "collect", "merge",
    "branch", "window", "firing", "sink",
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
        watermark: of the window step.
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
    watermark: float = 0
    written: bytes | None = None

    def way(self) -> list[Step]:
        """Return the steps from the record to this one."""
        steps: list[Step] = []
        step: Step | None = self
        while step is not None:
            steps.append(step)
            step = step.before
        return steps[::-1]


class Watched(Interpreter):
    """The interpreter, which reports what it does.

    Args:
        application: what to run.
        partitions: number of partitions.
        on_error: ``stop`` ends the run at the first dead letter.
        thorough: look for findings at every call.

    Attributes:
        on_output: called with a sink and the step that has written an output to it.
        on_dead_letter: called with the step whose message has become a dead letter.
        on_visit: called with the step of each visit of a state entity.
        on_step: called with each step when it begins.
    """

    def __init__(
        self,
        application: Application,
        *,
        partitions: int,
        on_error: str,
        thorough: bool = False,
    ) -> None:
        super().__init__(application, partitions=partitions, on_error=on_error, thorough=thorough)
        self.on_output: Callable[[SinkId, Step], None] = _ignore
        self.on_dead_letter: Callable[[Step], None] = _ignore
        self.on_visit: Callable[[Step], None] = _ignore
        self.on_step: Callable[[Step], None] = _ignore
        self._last: Step | None = None  # the step that is being done
        self._at = 0  # arrival time of the frames that are being fed
        self._panes = Panes(self._freeze)
        for step, _ in self._windows.values():
            step._freeze = self._panes.freeze

    # -- records ---------------------------------------------------------------------------------

    def feed(self, source: str, payloads: Sequence[bytes], at: int = 0) -> None:
        """Process frames of one source; see `Machine.feed`."""
        self._at = at
        super().feed(source, payloads, at)

    def take(self, record: Value | Tick | End) -> None:
        """Process a record that is not a frame; see `Machine.take`."""
        self._last = None
        if isinstance(record, Value):
            super().take(record)
            return
        what: What = "tick" if isinstance(record, Tick) else "end"
        with self._step(what, None, (self.sequence,)) as step:
            step.at = record.at
            step.source = record.source if isinstance(record, End) else None
            super().take(record)

    def _decode(self, place: Place, payload: bytes, lineage: Lineage) -> None:
        self._last = None
        with self._step("frame", place, lineage, payload) as step:
            step.source, step.at = self._source, self._at
            super()._decode(place, payload, lineage)

    def _generate(self, record: Value, lineage: Lineage) -> None:
        place, _ = self._places[record.source]
        with self._step("value", place, lineage) as step:
            step.source, step.at = record.source, record.at
            super()._generate(record, lineage)

    # -- steps -----------------------------------------------------------------------------------

    def _follow(self, place: Place, message: Any, lineage: Lineage) -> None:
        last = self._last
        if last is not None and last.place is place:
            last.gave.append(message)
            last.time = self._context.time
            if last.what == "key":
                last.key = self._context.key
        super()._follow(place, message, lineage)

    def _compute(self, place: Place, message: Any, lineage: Lineage) -> None:
        with self._step("computation", place, lineage, message):
            super()._compute(place, message, lineage)

    def _compute_with_state(self, place: Place, *rest: Any) -> None:
        _, message, lineage = rest
        with self._step("state computation", place, lineage, message):
            super()._compute_with_state(place, *rest)

    def _build(self, place: Place, *rest: Any) -> FrozenEntity:
        entity = super()._build(place, *rest)
        if self._last is not None:
            self._last.built = True
        return entity

    def _visit(self, place: Place, entity: FrozenEntity, message: Any, lineage: Lineage) -> Any:
        step = self._last
        assert step is not None
        step.key, step.state = entity.key, entity.state
        try:
            return super()._visit(place, entity, message, lineage)
        finally:
            step.new_state = entity.state
            self.on_visit(step)

    def _key_by(self, place: Place, operation: KeyBy, message: Any, lineage: Lineage) -> None:
        with self._step("key", place, lineage, message):
            super()._key_by(place, operation, message, lineage)

    def _pass_on(self, place: Place, operation: Any, message: Any, lineage: Lineage) -> None:
        what = _PASSED.get(type(operation))  # the others report their own steps
        with nullcontext() if what is None else self._step(what, place, lineage, message):
            super()._pass_on(place, operation, message, lineage)

    def _put_into_window(
        self, place: Place, operation: Windowed, message: Any, lineage: Lineage
    ) -> None:
        put = Put(lineage, self._context.time, message)
        with self._step("window", place, lineage, message) as step, self._panes.putting(put):
            step.watermark = self._windows[place][0].watermark
            super()._put_into_window(place, operation, message, lineage)

    def _fire(self, place: Place, step: WindowStep, firing: Firing, lineage: Lineage) -> None:
        with self._step("firing", place, lineage) as fired, self._panes.putting(None):
            fired.firing, fired.key, fired.watermark = firing, firing.key, step.watermark
            fired.puts = self._panes.puts(firing.parts)
            super()._fire(place, step, firing, lineage)

    def _encode(self, place: Place, message: Any, lineage: Lineage) -> None:
        sink = place.sink
        assert sink is not None
        outputs = self.outputs[sink]
        before = len(outputs)
        with self._step("sink", place, lineage, message) as step:
            super()._encode(place, message, lineage)
            if len(outputs) > before:
                step.written = outputs[-1]
                self.on_output(sink, step)

    def _add_dead_letter(
        self, place: Place, lineage: Lineage, key: Key | None, dead: DeadLetterError
    ) -> None:
        step = self._last
        if step is not None:
            step.problem = dead
            if key is not None:
                step.key = key
            if dead.reason is not None:
                self.on_dead_letter(step)
        super()._add_dead_letter(place, lineage, key, dead)

    @contextmanager
    def _step(
        self, what: What, place: Place | None, lineage: Lineage, came: Any = ABSENT
    ) -> Iterator[Step]:
        before = self._last
        step = self._last = Step(what, place, lineage, before, came, time=self._context.time)
        self.on_step(step)
        try:
            yield step
        finally:
            self._last = before


_PASSED: dict[type, What] = {Collect: "collect", Merge: "merge", Branch: "branch"}


def _ignore(*_: object) -> None:
    """Do nothing."""


# -- accumulators that know what is in them --------------------------------------------------------


class Panes:
    """Freezes the accumulators of window steps, and knows what is in them.

    Args:
        freeze: freezes a value.
    """

    def __init__(self, freeze: Callable[[Any], Any]) -> None:
        self._freeze = freeze
        self._put: Put | None = None  # the message that is being put in
        self._in_none = False  # whether no accumulator has met it yet
        self.thawed: list[_Pane] = []

    @contextmanager
    def putting(self, put: Put | None) -> Iterator[None]:
        """Inside the block, what is frozen is an accumulator that has met this message.

        Args:
            put: the message; `None`: what is frozen is not an accumulator, but what a window gives.
        """
        before = self._put
        self._put, self._in_none = put, True
        self.thawed.clear()
        try:
            yield
        finally:
            self._put = before
            self.thawed.clear()

    def freeze(self, value: Any) -> Any:
        """Return a value frozen; an accumulator with what is in it."""
        frozen = self._freeze(value)
        if self._put is None:
            return frozen
        pane = _Pane(self, frozen, tuple(self.thawed), self._put if self._in_none else None)
        self._in_none = False
        self.thawed.clear()
        return pane

    @property
    def watching(self) -> bool:
        """Whether a message is being put in."""
        return self._put is not None

    def puts(self, parts: Sequence[Any]) -> list[Put]:
        """Return the messages in accumulators, in order of lineage."""
        puts: list[Put] = []
        todo = [part for part in parts if isinstance(part, _Pane)]
        while todo:
            pane = todo.pop()
            if pane.put is not None:
                puts.append(pane.put)
            todo.extend(pane.made_of)
        return sorted(puts, key=lambda put: lineage_order(put.lineage))


class _Pane(Frozen):
    """A frozen accumulator that knows what is in it."""

    __slots__ = ("_panes", "inner", "made_of", "put")

    def __init__(
        self, panes: Panes, inner: Any, made_of: tuple[_Pane, ...], put: Put | None
    ) -> None:
        self._panes = panes
        self.inner = inner
        self.made_of = made_of
        self.put = put

    def thaw(self) -> Any:
        """Return a copy of the accumulator."""
        if self._panes.watching:
            self._panes.thawed.append(self)
        return thaw(self.inner)

    def packed(self) -> bytes:
        """Return the accumulator as bytes."""
        return packed(self.inner)
