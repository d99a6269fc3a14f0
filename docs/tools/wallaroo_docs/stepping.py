"""An application step by step: what came to each step, what it gave, its entity before and after.

`Recorder` observes the reference interpreter, and writes down each step
(`wallaroo_reference.replay.steps`).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any

from wallaroo_reference.isolated.copies import thaw
from wallaroo_reference.isolated.interpreter import Interpreter
from wallaroo_reference.machine import process
from wallaroo_reference.replay.steps import ABSENT, Step, Steps

from wallaroo import readable
from wallaroo.canonical import structure_or_kind
from wallaroo.overriding import override
from wallaroo.records import Record
from wallaroo.testing import Session
from wallaroo.topology import Application
from wallaroo.trace import Lineage, Trace, sorted_entities

_A_DATE = 10**17  # nanoseconds since 1970 from which a time is read as a date: the year 1973

MOST = 2000
"""Steps that are written down; a longer run ends there."""


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


class Recorder(Steps):
    """Writes down each step of an interpreter, which `observe` gives.

    Args:
        application: what that runs.
    """

    def __init__(self, application: Application) -> None:
        super().__init__()
        self._moments: list[tuple[Step, Moment]] = []
        self._numbers = {
            (node.pipeline, application.position(node), getattr(node, "id", None)): number
            for number, node in enumerate(application.nodes)
        }
        self._window_steps = application.window_steps
        self.on_step = self._begin_moment

    def observe(self, machine: Interpreter) -> None:
        """Observe this interpreter, which has this as its observer."""
        self._machine = machine

    def moments(self) -> list[Moment]:
        """Return the steps so far."""
        self._close()
        for step, moment in self._moments:
            _complete(moment, step)
        return [moment for _, moment in self._moments]

    @override
    def ended(self) -> None:
        step = self.current
        if step is not None and step.what == "window":
            moment = next(moment for noted, moment in reversed(self._moments) if noted is step)
            moment.after = self._windows_of(step)
        super().ended()

    def _close(self) -> None:
        """Note what the last step has left behind."""
        if self._moments:
            _, last = self._moments[-1]
            entities = sorted_entities(self._machine.entities())
            last.entities = [readable.entity_line(entity) for entity in entities]
            last.windows = [readable.window_line(window) for window in self._machine.windows()]

    def _begin_moment(self, step: Step) -> None:
        if step.what not in _WHAT:
            return  # it passes the message on unchanged
        self._close()
        if len(self._moments) >= MOST:
            raise TooLongError
        place, now = step.place, self._machine.moment()
        node = -1
        if place is not None:
            node = self._numbers[place.pipeline, place.position, place.sink]
        moment = Moment(node, "", step.lineage, _time(now.now))
        if step.what in ("tick", "end"):
            moment.time = _time(step.at)
        if step.what == "window":
            step.watermark = now.watermarks[self._window_steps.index(node)]
            moment.before = self._windows_of(step)
        self._moments.append((step, moment))

    def _windows_of(self, step: Step) -> str:
        assert step.place is not None
        bounds = [
            f"{_time(one.start)} to {_time(one.end)}"
            for one in self._machine.windows()
            if one.step == step.place.step
        ]
        return f"open: {', '.join(bounds)}" if bounds else "no window is open"


_WHAT = {
    "frame": "a frame comes, and is decoded",
    "value": "a generator gives a message",
    "tick": "time passes",
    "end": "the source {step.source} ends",
    "computation": "a computation is called",
    "state computation": "a state computation is called",
    "key": "the message's key is found",
    "window": "a window takes the message",
    "firing": "the window from {start} to {end} fires",
    "sink": "a message is encoded, and sent",
}


def _complete(moment: Moment, step: Step) -> None:
    """Write down a step that is done."""
    firing = step.firing
    bounds = {} if firing is None else {"start": _time(firing.start), "end": _time(firing.end)}
    moment.what = _WHAT[step.what].format(step=step, **bounds)
    moment.came = "" if step.came is ABSENT else _shown(thaw(step.came))
    moment.gave = [_shown(thaw(message)) for message in step.gave]
    if step.written is not None:
        moment.gave = [repr(step.written)]
    if step.key is not ABSENT:
        moment.key = readable.ascii_key(step.key)
    if step.what in ("window", "firing"):
        moment.watermark = _time(step.watermark)
    if step.what == "state computation":
        moment.before = "no entity yet"
        if step.new_state is not ABSENT:
            state = _state(step.state)
            moment.before = f"just built: {state}" if step.built else state
            moment.after = _state(step.new_state)
    if step.problem is not None:
        dead = step.problem
        moment.problem = f"{dead.reason}: {dead.error_type or ''} {dead.error}".strip()


class Playing(Session):
    """A session whose steps are written down."""

    def __init__(self, application: Application) -> None:
        super().__init__(application)
        self.recorder = Recorder(application)
        machine = Interpreter(application, observer=self.recorder)
        self.recorder.observe(machine)
        self._stepper = _Stepper(machine, application)

    def moments(self) -> list[dict[str, Any]]:
        """Return the steps so far, for a page."""
        return [asdict(moment) for moment in self.recorder.moments()]


class _Stepper:
    """An interpreter that takes records: `wallaroo.engine.Stepper`."""

    def __init__(self, machine: Interpreter, application: Application) -> None:
        self._machine = machine
        self._sources = application.sources

    def take(self, record: Record) -> None:
        process(self._machine, self._sources, [record])

    def due(self) -> int | None:
        return self._machine.due()

    def trace(self) -> Trace:
        raise NotImplementedError  # the result of such a session is never used


def _shown(value: Any) -> str:
    text = repr(value)
    if " object at 0x" in text:  # a class without a repr: its attributes say more
        text = readable.structure_text(structure_or_kind(value))
    return text if len(text) <= 400 else f"{text[:400]}…"


def _state(frozen: Any) -> str:
    return readable.structure_text(structure_or_kind(thaw(frozen)))


def _time(time: float) -> str:
    if time in (float("inf"), float("-inf")):
        return "∞" if time > 0 else "none"
    if time >= _A_DATE:
        return datetime.fromtimestamp(time / 10**9, UTC).strftime("%Y-%m-%d %H:%M:%S")
    return f"{readable.seconds_text(int(time))} s"
