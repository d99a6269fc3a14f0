"""An application step by step: what came to each step, what it gave, its entity before and after.

`Recorder` is the reference interpreter, unchanged in what it does, that writes down what it is
doing. The rules for it are in `wallaroo_reference.isolated.interpreter`.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any

from wallaroo_reference.dead_letter import DeadLetterError
from wallaroo_reference.isolated.copies import thaw
from wallaroo_reference.isolated.interpreter import Interpreter
from wallaroo_reference.isolated.windows import Firing, WindowStep
from wallaroo_reference.places import FrozenEntity, Place

from wallaroo import readable
from wallaroo.canonical import structure_or_kind
from wallaroo.keys import Key
from wallaroo.records import End, Frame, Record, Tick, Value
from wallaroo.testing import Session
from wallaroo.topology import Application, Source
from wallaroo.trace import Lineage, Trace, sorted_entities

_A_DATE = 10**17  # nanoseconds since 1970 from which a time is read as a date: the year 1973

MOST = 2000
"""Steps that are written down; a run that is longer is cut off."""


@dataclass
class Moment:
    """What one step did with one message.

    Args:
        node: the step's number in `Application.nodes`; -1: none, time passed.
        what: what happens here, in a few words.
        lineage: the message's.
        time: arrival time of the record, as text.
        watermark: of a window step, as text; else ``""``.
        came: what came to it.
        key: the message's key, where it has one.
        gave: what it gave, one text for each.
        before: the entity or the open windows of the key before.
        after: and after.
        problem: why the message is a dead letter.
        entities: all entities after it.
        windows: all open windows after it.
    """

    node: int
    what: str
    lineage: Lineage
    time: str
    watermark: str = ""
    came: str = ""
    key: str = ""
    gave: list[str] = field(default_factory=list)
    before: str = ""
    after: str = ""
    problem: str = ""
    entities: list[str] = field(default_factory=list)
    windows: list[str] = field(default_factory=list)


class TooLongError(Exception):
    """There are more than `MOST` steps."""


class Recorder(Interpreter):
    """The reference interpreter, which writes down each step that it does."""

    def __init__(
        self, application: Application, *, partitions: int = 1, on_error: str = "skip"
    ) -> None:
        super().__init__(application, partitions=partitions, on_error=on_error, thorough=True)
        self.moments: list[Moment] = []
        self._current: dict[int, Moment] = {}  # by id of the place
        self._numbers: dict[int, int] = {}
        for number, node in enumerate(application.nodes):
            if isinstance(node, Source):
                self._number(application, number, self._places[node.pipeline][0])

    def _number(self, application: Application, number: int, place: Place) -> None:
        self._numbers[id(place)] = number
        for consumer, behind in zip(application.consumers[number], place.consumers, strict=True):
            self._number(application, consumer, behind)

    def close(self) -> None:
        """Note what the last step has left behind."""
        if self.moments:
            last = self.moments[-1]
            entities = sorted_entities(self.entities())
            last.entities = [readable.entity_line(entity) for entity in entities]
            last.windows = [readable.window_line(window) for window in self.windows()]

    def _begin_moment(
        self, place: Place | None, what: str, lineage: Lineage, came: Any = None
    ) -> Moment:
        self.close()
        if len(self.moments) >= MOST:
            raise TooLongError
        moment = Moment(
            node=-1 if place is None else self._numbers[id(place)],
            what=what,
            lineage=lineage,
            time=_time(self._watermarks.now),
            came="" if came is None else _shown(came),
        )
        self.moments.append(moment)
        if place is not None:
            self._current[id(place)] = moment
        return moment

    # -- what the interpreter does, written down --------------------------------------------------

    def _decode(self, place: Place, payload: bytes, lineage: Lineage) -> None:
        self._begin_moment(place, "a frame comes, and is decoded", lineage, payload)
        super()._decode(place, payload, lineage)

    def _generate(self, record: Any, lineage: Lineage) -> None:
        place, _ = self._places[record.source]
        self._begin_moment(place, "a generator gives a message", lineage)
        super()._generate(record, lineage)

    def _compute(self, place: Place, message: Any, lineage: Lineage) -> None:
        self._begin_moment(place, "a computation is called", lineage, thaw(message))
        super()._compute(place, message, lineage)

    def _compute_with_state(self, place: Place, *rest: Any) -> None:
        _, message, lineage = rest
        moment = self._begin_moment(place, "a state computation is called", lineage, thaw(message))
        moment.before = "no entity yet"
        super()._compute_with_state(place, *rest)

    def _build(self, place: Place, *rest: Any) -> FrozenEntity:
        entity = super()._build(place, *rest)
        self._current[id(place)].before = f"just built: {_state(entity)}"
        self._current[id(place)].after = _state(entity)
        return entity

    def _visit(self, place: Place, entity: FrozenEntity, message: Any, lineage: Lineage) -> Any:
        moment = self._current[id(place)]
        moment.key = readable.ascii_key(entity.key)
        if not moment.after:
            moment.before = moment.after = _state(entity)
        output = super()._visit(place, entity, message, lineage)
        moment.after = _state(entity)
        return output

    def _put_into_window(
        self, place: Place, operation: Any, message: Any, lineage: Lineage
    ) -> None:
        moment = self._begin_moment(place, "a window takes the message", lineage, thaw(message))
        moment.before = self._windows_of(place)
        moment.watermark = self._watermark(place)
        super()._put_into_window(place, operation, message, lineage)
        moment.after = self._windows_of(place)

    def _fire(self, place: Place, step: WindowStep, firing: Firing, lineage: Lineage) -> None:
        bounds = f"{_time(firing.start)} to {_time(firing.end)}"
        moment = self._begin_moment(place, f"the window from {bounds} fires", lineage)
        moment.key = readable.ascii_key(firing.key)
        moment.watermark = self._watermark(place)
        super()._fire(place, step, firing, lineage)

    def _key_by(self, place: Place, operation: Any, message: Any, lineage: Lineage) -> None:
        self._begin_moment(place, "the message's key is found", lineage, thaw(message))
        super()._key_by(place, operation, message, lineage)

    def _encode(self, place: Place, message: Any, lineage: Lineage) -> None:
        moment = self._begin_moment(place, "a message is encoded, and sent", lineage, thaw(message))
        assert place.sink is not None
        sent = len(self.outputs[place.sink])
        super()._encode(place, message, lineage)
        moment.gave = [repr(output) for output in self.outputs[place.sink][sent:]]

    def _follow(self, place: Place, message: Any, lineage: Lineage) -> None:
        moment = self._current.get(id(place))
        if moment is not None and place.sink is None:
            moment.gave.append(_shown(thaw(message)))
            if place.operation is not None:
                moment.key = readable.ascii_key(self._context.key)
        super()._follow(place, message, lineage)

    def take(self, record: Value | Tick | End) -> None:
        """Process a record that is no frame."""
        if not isinstance(record, Value):
            what = f"the source {record.source} ends" if isinstance(record, End) else "time passes"
            moment = self._begin_moment(None, what, (self.sequence,))
            moment.time = _time(record.at)
        super().take(record)

    def _add_dead_letter(
        self, place: Place, lineage: Lineage, key: Key | None, dead: DeadLetterError
    ) -> None:
        moment = self._current[id(place)]
        moment.problem = f"{dead.reason}: {dead.error_type or ''} {dead.error}".strip()
        moment.key = "" if key is None else readable.ascii_key(key)
        super()._add_dead_letter(place, lineage, key, dead)

    def _windows_of(self, place: Place) -> str:
        step, _ = self._windows[place]
        bounds = [f"{_time(one.start)} to {_time(one.end)}" for one in step.open()]
        return f"open: {', '.join(bounds)}" if bounds else "no window is open"

    def _watermark(self, place: Place) -> str:
        return _time(self._windows[place][0].watermark)


class Watched(Session):
    """A session whose steps are written down."""

    def __init__(self, application: Application) -> None:
        super().__init__(application)
        self.recorder = Recorder(application)
        self._stepper = _Stepper(self.recorder)

    def moments(self) -> list[dict[str, Any]]:
        """Return the steps so far, for a page."""
        self.recorder.close()
        return [asdict(moment) for moment in self.recorder.moments]


class _Stepper:
    """A recorder that takes records: `wallaroo.engine.Stepper`."""

    def __init__(self, machine: Recorder) -> None:
        self._machine = machine

    def take(self, record: Record) -> None:
        if isinstance(record, Frame):
            self._machine.feed(record.source, [record.payload], record.at)
        else:
            self._machine.take(record)

    def due(self) -> int | None:
        return self._machine.due()

    def trace(self) -> Trace:
        raise NotImplementedError  # nobody asks a watched session for its result


def _shown(value: Any) -> str:
    text = repr(value)
    if " object at 0x" in text:  # a class without a repr: its attributes say more
        text = readable.structure_text(structure_or_kind(value))
    return text if len(text) <= 400 else f"{text[:400]}…"


def _state(entity: FrozenEntity) -> str:
    return readable.structure_text(structure_or_kind(thaw(entity.state)))


def _time(time: float) -> str:
    if time in (float("inf"), float("-inf")):
        return "∞" if time > 0 else "none"
    if time >= _A_DATE:
        return datetime.fromtimestamp(time / 10**9, UTC).strftime("%Y-%m-%d %H:%M:%S")
    return f"{readable.seconds_text(int(time))} s"
