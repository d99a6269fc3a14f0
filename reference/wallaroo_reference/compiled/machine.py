"""The compiled path: `trusting` mode, a function generated from the topology.

For each source one function takes a batch of payloads and runs the pipeline as nested loops, as one
would write it by hand: no object per message, no copy, no calls but the user's. All checks that the
rules require are made, in ways that cost little on the usual path:

- a ``try`` that does not raise costs almost nothing, and one in each loop is enough: the line that
  raised shows which call failed;
- a lineage is computed only when it is needed, from what the loops' iterators have left;
- a key that was seen before was judged then, so for a key of exact type a dictionary lookup is
  enough.

``wallaroo graph APP --compiled`` prints the source.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial
from typing import Any, Literal, NoReturn, cast

from wallaroo.aggregations import WindowBounds
from wallaroo.canonical import structure_or_kind
from wallaroo.copying import copies_by
from wallaroo.findings import Finding
from wallaroo.judging import DeadLetterError, items_of, judged_key, pair_of, written_of
from wallaroo.keys import SINGLE_KEY, Key, identity, partition_number
from wallaroo.records import Assigned, End, Single, Tick, Unportable, Unused, Value
from wallaroo.times import BadTimeError, refuse_ahead
from wallaroo.topology import Application, SinkId
from wallaroo.trace import (
    DeadLetter,
    Ended,
    Entity,
    Lineage,
    OpenWindow,
    Reason,
)
from wallaroo.windowing.kinds import windowed
from wallaroo.windows import RangeWindows
from wallaroo_reference.cells import Cells, Moment
from wallaroo_reference.compiled.clocks import Times
from wallaroo_reference.compiled.codegen import Program, link
from wallaroo_reference.compiled.codegen_text import Spot
from wallaroo_reference.compiled.entities import Entities
from wallaroo_reference.compiled.failing import dead_letter_at, line_that_raised, lineage_in
from wallaroo_reference.compiled.keyed_windows import KeyedWindows
from wallaroo_reference.compiled.ranges import RangePanes
from wallaroo_reference.compiled.windows import Own, StepWindows, key_of
from wallaroo_reference.meter import Meter, TooMuchOutputError, partitions_said
from wallaroo_reference.user_calls import dead_letter_from

_MISSING = object()

Feed = Callable[[Sequence[bytes], int], None]


class Compiled:
    """An application, running in `trusting` mode; see `wallaroo_reference.machine.Machine`.

    Args:
        application: what to run.
        partitions: number of partitions, for the entities' partition numbers (route-4).
        on_error: ``stop`` ends the run at the first dead letter (dead-4).
        keeps: note what changes, for checkpoints (`wallaroo_reference.cells`).
    """

    def __init__(
        self,
        application: Application,
        *,
        partitions: int = 1,
        on_error: str = "skip",
        keeps: bool = False,
    ) -> None:
        self.sequence = 0
        self.outputs: dict[SinkId, list[Any]] = {sink: [] for sink in application.sinks}
        self.dead_letters: list[DeadLetter] = []
        self.ended: Ended | None = None
        self.meter = Meter(self.outputs.values())
        self.topics = partitions_said(application)
        self._partitions = partitions
        self._stop_on_error = on_error == "stop"
        self.stores = {part.name: Entities(part) for part in application.partitions}
        self._expiring = [
            store for store in self.stores.values() if store.partition.expire_after is not None
        ]
        self._own = copies_by(application.codec).copied
        self._times = Times(application)
        self._windows = {
            index: _windows_of(application, index, self._times, self._own)
            for index in application.window_steps
        }
        self._times.steps += self._windows.values()
        self._time_decides = application.time_decides
        self._source: str | None = None  # of the record that is processed
        self._start = 0  # the sequence number of the first record that was fed with it
        self._keeps = keeps
        if keeps:
            copies = copies_by(application.codec)
            loads = copies.loads  # a restart calls it for each of a million cells
            for store in self.stores.values():
                store.keep(copies.dumps, lambda _, data: loads(data))
            for step in self._windows.values():
                step.keep(copies)
        program = Program(application, keeps=keeps)
        self._spots = program.spots
        names = self.names(program)
        link(program, application.name, names)
        self._feeds = {source: names[name] for source, name in program.functions.items()}
        self._fires: list[Callable[..., None]] = [names[f"fire_{index}"] for index in self._windows]

    @property
    def findings(self) -> Sequence[Finding]:
        """None: `trusting` mode does not look for findings."""
        return ()

    @property
    def late(self) -> Mapping[tuple[str, str], int]:
        """Late messages by (step, ``dropped`` or ``partly``) (window-6)."""
        return {
            (step.name, what): number
            for step in self._windows.values()
            for what, number in step.late.items()
        }

    def feed(
        self, source: str, payloads: Sequence[Any], at: int = 0, partition: int | None = None
    ) -> None:
        """Process frames of one source, or records of Kafka; see `Machine.feed`."""
        if self.ended is not None or not payloads:
            return
        self._run(source, payloads, at, partition)

    def take(self, record: Single) -> None:
        """Process a record by itself; see `Machine.take`."""
        if self.ended is not None:
            return
        if isinstance(record, Unused):  # kafka-1
            self.sequence += record.numbers
            return
        value = record.value if isinstance(record, Value) else None
        if isinstance(record, Value) and not isinstance(value, Unportable):
            self._run(record.source, [value], record.at)
            return
        self._source = None if isinstance(record, Tick) else record.source
        if self._time_decides:
            self._arrive(record.at, record.source if isinstance(record, Value) else None)
        self._start = self.sequence
        lineage = (self.sequence,)
        self.meter.begin([record], self.sequence)
        self.sequence += 1
        with contextlib.suppress(_Stop):
            if isinstance(record, End):
                self._times.end(record.source, record.partition)
            elif isinstance(record, Assigned):
                partitions = [number for number, _, _ in record.partitions]
                self._times.assign(record.source, partitions)
            self.turns(lineage)
            if isinstance(record, Tick):
                return
            if isinstance(value, Unportable):
                dead = DeadLetterError(Reason.UNPORTABLE, value.error)
                self._add(_generator(record.source), lineage, dead, None, None)
            elif isinstance(record, End) and record.error_type is not None:
                reason = None if record.ends_run else Reason.RAISED
                dead = DeadLetterError(reason, record.error, record.error_type)
                self._add(_generator(record.source), lineage, dead, None, None)

    def due(self) -> int | None:
        """Return when time alone makes something due; see `Machine.due`."""
        for step in self._windows.values():
            step.settle()
        times = [self._times.next_arrival(step) for step in self._windows.values()]
        return min([at for at in times if at is not None], default=None)

    @property
    def open_windows(self) -> int:
        """The number of windows that are open now."""
        return sum([1 for step in self._windows.values() for _ in step.open()])

    def windows(self) -> list[OpenWindow]:
        """Return the windows that are open now (window-11)."""
        windows = []
        for step in self._windows.values():
            for key, start, end, _, parts, _, _ in step.open():
                try:
                    value = step.combined(parts, len(parts)) if len(parts) > 1 else parts[0]
                    shown = structure_or_kind(value)
                except (Exception, SystemExit) as error:  # noqa: BLE001 - user code's is shown
                    kind = error.error_type if isinstance(error, DeadLetterError) else None
                    value, shown = None, {"combine raised": kind or type(error).__name__}
                windows.append(OpenWindow(step.name, key, start, end, shown, value))
        return windows

    def entities(self) -> list[Entity]:
        """Return the state entities as they are now."""
        entities = []
        for name, store in self.stores.items():
            for key_identity, state in store.entities.items():
                key = key_of(key_identity)
                number = partition_number(key, self._partitions)
                structure = structure_or_kind(state)
                entities.append(Entity(name, key, number, structure, partial(_itself, state)))
        return entities

    # -- checkpoints: see `wallaroo_reference.cells` -----------------------------------------------

    def cells(self) -> list[Cells]:
        """Return the stores, and the windows of each step."""
        return [*self.stores.values(), *self._windows.values()]

    def moment(self) -> Moment:
        """Return the machine's position and times, between two records."""
        times = self._times
        times.catch_up()
        watermarks = [step.watermark for step in self._windows.values()]
        return Moment(self.sequence, times.now, times.first, times.moments(), watermarks)

    def go_on_from(self, moment: Moment) -> None:
        """Continue from the moment of the machine whose cells have been unpacked here."""
        self.sequence = moment.sequence
        self._times.go_on_from(moment.now, moment.first, moment.sources)
        for store in self.stores.values():
            store.go_on_from(moment.now)
        for step, watermark in zip(self._windows.values(), moment.watermarks, strict=True):
            step.watermark = watermark
            step.go_on()

    # -- a record -----------------------------------------------------------------------------

    def _run(
        self, source: str, records: Sequence[Any], at: int, partition: int | None = None
    ) -> None:
        """Process payloads or values of one source that have arrived at one time."""
        self._source = source
        if self._time_decides:
            self._arrive(at, source, partition)
            self._times.begin()
        start = self._start = self.sequence
        self.meter.begin(records, start)
        with contextlib.suppress(_Stop):
            self._feeds[source](records, start)
        self.sequence = start + len(records)

    def _arrive(self, at: int, frames_of: str | None, partition: int | None = None) -> None:
        self._times.arrive(at, frames_of, partition)
        for store in self._expiring:
            store.expire_by(self._times.now)

    def names(self, program: Program) -> dict[str, Any]:
        """Return what generated functions refer to: this machine's outputs, entities, windows."""
        names: dict[str, Any] = {
            "__name__": __name__,  # in tracebacks, its frames are the engine's
            "fail": self.fail,
            "turns": self.turns,
            "portions": self.meter.portions,
            "topics": self.topics,
            "times": self._times,
            "enter": self._enter,
            "entered": self._entered,
            "judge": judged_key,
            "own": self._own,
            "time_of": _time_of,
            "refuse_ahead": _refuse_ahead,
            "items_of": lambda result: items_of(result, self.meter.most),
            "pair_of": pair_of,
            "written_of": written_of,
            "utf8": str.encode,
            "MISSING": _MISSING,
            "WindowBounds": WindowBounds,
            **program.calls,
        }
        for index, clock in enumerate(self._times.clocks.values()):
            names[f"clock_{index}"] = clock
        for index, store in enumerate(self.stores.values()):
            names[f"store_{index}"], names[f"states_{index}"] = store, store.entities
            names[f"visits_{index}"], names[f"changed_{index}"] = store.visits, store.changed
        for index, step in self._windows.items():
            names[f"take_{index}"], names[f"combined_{index}"] = step.take, step.combined
            if isinstance(step, RangePanes):
                names[f"panes_{index}"], names[f"changed_at_{index}"] = step.panes, step.changed
        for index, outputs in enumerate(self.outputs.values()):
            names[f"outputs_{index}"] = outputs
        return names

    # -- what generated code calls off the usual path ---------------------------------------------

    def fail(self, names: Mapping[str, Any]) -> None:
        """Add a dead letter, or end the run (dead-1, dead-3, dead-4).

        Args:
            names: the variables of the generated function that caught the current exception.
        """
        spot = self._spots[line_that_raised() - 1]
        error = sys.exception()
        assert error is not None
        # The run is over, perhaps in a function that this one has called; or there is a bug here.
        if spot is None or type(error) is _Stop:
            raise  # noqa: PLE0704 - what the caller is handling
        if type(error) is TooMuchOutputError:
            self._end("exit", spot, lineage_in(spot, names), TooMuchOutputError.__name__)
        # By type: an object may say of itself that it is of another class.
        is_dead = issubclass(type(error), DeadLetterError)
        dead = cast(DeadLetterError, error) if is_dead else dead_letter_from(error, spot.reason)
        lineage = lineage_in(spot, names)
        if spot.source and self._windows and self._times.is_waiting():
            self.turns(lineage)
        key = None
        if spot.key is not None and dead.reason is not Reason.BAD_KEY:
            key = names.get(spot.key, SINGLE_KEY)
        if self._keeps and spot.partition and dead.reason is not Reason.BAD_KEY:
            # It may be half changed, or just built.
            self.stores[spot.partition].touch(identity(SINGLE_KEY if key is None else key))
        self._add(spot, lineage, dead, key, names["payload"])

    def lineage_at(self, line: int, names: Mapping[str, Any]) -> Lineage | None:
        """Return the lineage of a message at a line of the generated code that calls user code.

        Args:
            line: its number.
            names: the variables of the line's function.
        """
        spot = self._spots[line - 1]
        return None if spot is None else lineage_in(spot, names)

    def turns(self, lineage: Lineage, time: int | None = None) -> None:
        """Let the window steps fire what is due, in the order of their calls (time-4).

        Args:
            lineage: the record's.
            time: the event time of its message, which has not moved the source's time yet.
        """
        if lineage[0] != self._start:
            self._times.catch_up()
        if time is not None:
            self._times.reach(time)

        steps, fires = list(self._windows.values()), self._fires

        def fire(number: int) -> None:
            for index, firing in enumerate(steps[number].due()):
                fires[number](None, (*lineage, number - len(steps), index), *firing)

        self._times.turn(fire)

    def _enter(self, store: Entities, key: Any) -> Any:
        return store.enter(key, self._times.now)

    def _entered(self, store: Entities, key: Any) -> tuple[Any, Hashable]:
        return store.entered(key, self._times.now)

    def _add(
        self,
        spot: Spot,
        lineage: Lineage,
        dead: DeadLetterError,
        key: Key | None,
        payload: bytes | None,
    ) -> None:
        """Add a dead letter; with `--on-error stop` the run ends here."""
        if dead.reason is None:
            self._end("exit", spot, lineage, dead.error_type)
            return
        self.dead_letters.append(dead_letter_at(spot, self._source, lineage, dead, key, payload))
        if self._stop_on_error:
            self._end("on-error", spot, lineage, None)

    def _end(
        self,
        kind: Literal["on-error", "exit"],
        spot: Spot,
        lineage: Lineage,
        error_type: str | None,
    ) -> None:
        self.ended = Ended(kind, spot.pipeline, spot.step, lineage, error_type, spot.sink)
        raise _Stop


def _windows_of(application: Application, index: int, times: Times, own: Own) -> StepWindows:
    """Return the windows of the step at a node, none of them open yet."""
    operation = windowed(application, index)
    kind = RangePanes if isinstance(operation.windows, RangeWindows) else KeyedWindows
    return kind(operation, application.ways[index], times, own)


def _generator(source: str) -> Spot:
    return Spot(source, None, -1, None, Reason.RAISED, ())


def _time_of(judged: Callable[[Any], int], result: Any) -> int:
    """Return what an `event_time` function gave, if it is not a usual one (time-2)."""
    try:
        return judged(result)
    except BadTimeError as error:
        raise DeadLetterError(Reason.BAD_TIME, str(error)) from None


def _refuse_ahead(time: int, max_ahead: int) -> NoReturn:
    try:
        refuse_ahead(time, max_ahead)
    except BadTimeError as error:
        raise DeadLetterError(Reason.BAD_TIME, str(error)) from None


def _itself(state: Any) -> Any:
    return state


class _Stop(Exception):  # noqa: N818 - control flow
    """The run is over."""
