"""Serves applications of generated cases: all that comes of them is what a bounded run makes.

The bounded run is of what the recording holds, on an interpreter that nothing ends. So whatever a
case can have, in states, windows and branches, goes through checkpoints, crashes and restarts, and
its outputs to peers that remember.
"""

from __future__ import annotations

import contextlib
import copy
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from random import Random
from typing import Any
from unittest import mock

from wallaroo_conformance.cases.building import build
from wallaroo_conformance.cases.case import ConformanceCase, SourceSpec
from wallaroo_conformance.cases.generating import generate, longer
from wallaroo_conformance.cases.operators import (
    BUILDERS,
    MULTI_COMPUTATIONS,
    STATE_MULTI_COMPUTATIONS,
    Table,
    Trait,
    marks,
)
from wallaroo_conformance.cases.operators.aggregations import Unreadable
from wallaroo_conformance.cases.operators.marks import ENDS_THE_RUN
from wallaroo_reference.engine import ReferenceEngine

from simulation import application, stored
from simulation.checkpoints import DIRECTORY, CheckpointRun
from simulation.checks import check_state, whole_letters
from simulation.peers import Remembering, Sender
from simulation.plans import Life, Plan, Sending
from simulation.world import Broken
from wallaroo.components import generator_of
from wallaroo.config import GenSourceConfig, TCPSinkConfig, TCPSourceConfig
from wallaroo.engine import Case, Summary
from wallaroo.kafka_records import KafkaRecord
from wallaroo.operations import Stateful
from wallaroo.overriding import override
from wallaroo.records import Consumed, Frame, Record, Unportable, Value
from wallaroo.times import MILLISECOND
from wallaroo.topology import Application, Node, Sink, SinkId, Source, Step
from wallaroo.trace import (
    DeadLetter,
    Entity,
    OpenWindow,
    Trace,
    canonical_json,
    sorted_entities,
    sorted_windows,
)
from wallaroo.transport.input_log import InputLog, InputLogError
from wallaroo.transport.log_directory import read
from wallaroo.transport.log_format import LoggedRun
from wallaroo.transport.logged import from_log
from wallaroo.user_code.calls import Call, CallSite, instrument

_CASES = 400
_REWRITTEN = 1 / 3  # of the checkpoints, between two lives
_WITH_TOPICS = 1_600  # of which some read topics
RECORDED = Path("/sim/recording")
_MULTI = Table(MULTI_COMPUTATIONS, STATE_MULTI_COMPUTATIONS)
_ENDS = (b"", f"b{ENDS_THE_RUN}".encode(), f"w{ENDS_THE_RUN}".encode())
"""With one of these behind it, a message may end the run at a state or at a sink."""
_NEVER = "\0"  # in no message
_OF_THE_RUN = ("error", "where", "causes", "run")
"""What dead letters say that is not the same in another run."""
_NEVER_CUT = mock.patch.object(InputLog, "drop_before")


@cache
def with_sockets(*, generators: bool) -> tuple[ConformanceCase, ...]:
    """Return cases that do not show copies: with generators, or sockets alone."""
    served = filter(_is_served, generate(_CASES, 0, "tame", simple=0.0, kafka=False))
    return _weighted(one for one in served if generators is any(map(_generates, one.sources)))


@cache
def with_topics() -> tuple[ConformanceCase, ...]:
    """Return such cases that read topics, and perhaps have other sources too."""
    served = filter(_is_served, generate(_WITH_TOPICS, 0, "tame", simple=0.0))
    return _weighted(one for one in served if any(source.topic for source in one.sources))


def _weighted(cases: Iterable[ConformanceCase]) -> tuple[ConformanceCase, ...]:
    """Return cases, of which those that keep states stand there three times: they are few."""
    return tuple([one for case in cases for one in [case] * (3 if _keeps_states(case) else 1)])


def _keeps_states(case: ConformanceCase) -> bool:
    nodes = build(case).nodes
    return any(isinstance(one, Step) and isinstance(one.operation, Stateful) for one in nodes)


def _generates(source: SourceSpec) -> bool:
    return source.generator


def _is_served(case: ConformanceCase) -> bool:
    payloads = b" ".join([entry.payload for entry in case.inputs])
    leaves = any(BUILDERS.has(one.builder, Trait.ENDS_THE_RUN) for one in case.partitions)
    ends = leaves or ENDS_THE_RUN.encode() in payloads
    unportable = b"g" in payloads or b"i" in payloads  # what cannot be read back
    return not (case.codec or case.alters or unportable or (ends and not _can_leave_out(case)))


def _can_leave_out(case: ConformanceCase) -> bool:
    """Whether a restart can leave out a record at which user code ends the run.

    It cannot if a window fires at a later one. If the record has had outputs before, peers that
    remember have these (sink-9).
    """
    row = case.plain_row
    return row is not None and not any(one.window or one.operator in _MULTI for one in row)


class Counting:
    """A generator whose values are numbered, and take their time; some cannot be read back.

    Args:
        most: how many there are.
        portable: every so many can be read back.

    Attributes:
        over: it has given them all.
    """

    def __init__(self, most: int, portable: int) -> None:
        self.over = False
        self._most = most
        self._portable = portable

    def initial_value(self) -> Any:
        """Return the first value."""
        return self._value(0)

    def apply(self, last: Any) -> Any:
        """Return the value behind another."""
        return self._value(last[1] + 1)

    def portable(self) -> list[int | None]:
        """Return the numbers of all values; `None` for those that cannot be read back."""
        found = [number % self._portable == self._portable - 1 for number in range(self._most)]
        return [number if portable else None for number, portable in enumerate(found)]

    def _value(self, number: int) -> Any:
        application.pass_time(0.003)
        self.over = number == self._most
        if self.over:
            return None
        value = ["abc"[number % 3], number, f"{number}"]
        return Unreadable(value) if self.portable()[number] is None else value


def changed(built: Application, change: Callable[[Any], Mapping[str, Any]]) -> Application:
    """Return an application, of whose sources and sinks something is changed."""
    nodes: list[Node] = []
    for node in built.nodes:
        if isinstance(node, Sink | Source):
            config = copy.copy(node.config)
            for name, value in change(config).items():
                object.__setattr__(config, name, value)  # it is frozen
            nodes.append(replace(node, config=config))
        else:
            nodes.append(node)
    return replace(built, nodes=tuple(nodes))


class CaseRun(CheckpointRun):
    """A run of a plan, with an application of a case and its payloads.

    Attributes:
        case: the case.
        partitions: number of partitions; `None`: the engine's own.
    """

    partitions: int | None = None

    def __init__(self, plan: Plan) -> None:
        super().__init__(plan)
        chance = self.world.chance("case")
        # Times of arrival are a fraction of a millisecond apart, event times nanoseconds; a life
        # takes a second.
        unit = chance.choice((1, MILLISECOND, MILLISECOND, 1000 * MILLISECOND))
        self.case = longer(chance.choice(self.cases(chance)), unit)
        case = self.case
        payloads = [entry.payload for entry in case.inputs if entry.what == "frame"] or [b"a 1 m"]
        self._values = Counting(chance.choice((3, 12, 60)), chance.choice((1, 2, 5, 100)))
        self._speed = chance.choice((0.0, 0.0, 0.002))
        self._distinct = chance.random() < 1 / 2  # no two frames are alike
        self._mends = chance.random() < 1 / 3 or not _can_leave_out(case)
        self._ends = chance.choice(_ENDS)
        self.application = self.slowed(self.served(build(case)))
        self._recorded = chance.random() < 3 / 4
        self.fixed = {"record": RECORDED if self._recorded else None, "skip_record": []}
        if not self._recorded:  # the log is never cut, and may say which offsets were read
            self.fixed["log_bytes"] = 1 << 30
        kind = self.kind

        def made(*given: Any, **how: Any) -> Any:
            self._made = kind(*given, **how)
            return self._made

        self.kind = made  # it is called, and nothing else
        configs = [node.config for node in self.application.nodes if isinstance(node, Source)]
        addresses = [(one.host, one.port) for one in configs if isinstance(one, TCPSourceConfig)]
        self.senders = [
            Sender(
                self.world,
                self.machine.network,
                one,
                addresses[one.source % len(addresses)],
                self._payloads(payloads, one),
                self.sender_ended,
            )
            for one in (plan.sendings if addresses else ())
        ]
        sinks = [node for node in self.application.nodes if isinstance(node, Sink)]
        self.kept = {
            sink.id: Remembering(
                self.world,
                self.machine.network,
                (sink.config.host, sink.config.port),
                [one for one in plan.troubles if one.sink % len(sinks) == number],
            )
            for number, sink in enumerate(sinks)
            if isinstance(sink.config, TCPSinkConfig)
        }

    def _payloads(self, payloads: Sequence[bytes], plan: Sending) -> list[bytes]:
        """Return the payloads of a sender."""
        chance = self.world.chance("payloads", plan.number)
        drawn = [self.ending(chance, one) for one in chance.choices(payloads, k=len(plan.frames))]
        if not self._distinct:
            return drawn
        return [_named(one, f"~{plan.number}.{index}") for index, one in enumerate(drawn)]

    def ending(self, chance: Random, payload: bytes) -> bytes:
        """Return a payload, perhaps as one at which user code ends the run."""
        return payload + self._ends * (chance.random() < 1 / 8) if self._ends else payload

    def cases(self, chance: Random) -> Sequence[ConformanceCase]:
        """Return the cases, one of which is served."""
        return with_sockets(generators=chance.random() < 1 / 3)

    def served(self, built: Application) -> Application:
        """Return the application with generators that give something, and peers that remember."""
        return changed(built, self.changed)

    def judged(self) -> Application:
        """Return the application, as a bounded run needs it."""
        return self.application

    def changed(self, config: Any) -> dict[str, Any]:
        """Return what is changed of the configuration of a source or a sink."""
        if isinstance(config, GenSourceConfig):
            return {"generator": generator_of(self._values)}
        return {"resume": True} if isinstance(config, TCPSinkConfig) else {}

    @contextlib.contextmanager
    @override
    def around(self) -> Iterator[None]:
        never = contextlib.nullcontext() if self._recorded else _NEVER_CUT
        with super().around(), never, mock.patch.object(marks, "ENDS_THE_RUN", ENDS_THE_RUN):
            yield

    @override
    def live(self, life: Life) -> Summary | None:
        self._asked, self._ends_now = self.left_out, marks.ENDS_THE_RUN
        return super().live(life)

    @override
    def goes_on(self, summary: Summary | None) -> bool:
        """Mend the user code that has ended the process, or leave out that record from now on."""
        problem = (summary and summary.problem) or ""
        if self._mends and "SystemExit" in problem and self._ends_now != _NEVER:
            marks.ENDS_THE_RUN = _NEVER  # `around` puts it back
            return True
        asked = re.search(r"--skip-record (\d+)", problem)
        if asked is None or int(asked[1]) in self._asked:
            return super().goes_on(summary)
        self.fixed["skip_record"] = sorted({*self.fixed["skip_record"], int(asked[1])})
        return True

    @override
    def waiting(self) -> Sequence[object]:
        """Return what is not at its end: connections, and generators."""
        sources = self.application.sources.values()
        generates = any(isinstance(source.config, GenSourceConfig) for source in sources)
        return [*super().waiting(), *["a generator"] * (generates and not self._values.over)]

    def slowed(self, application: Application) -> Application:
        """Return the application with encoders that may take their time."""
        return instrument(application, self._slowly)

    def _slowly(self, site: CallSite, call: Call) -> Call:
        """Return a call that may take its time."""
        if site.method != "encode" or not self._speed:
            return call

        def slow(*given: Any) -> Any:
            application.pass_time(self._speed)
            return call(*given)

        return slow

    @override
    def check_end(self) -> None:
        """Check what peers, the disk and the last machine have."""
        log = self.recorded()
        case = self.case_of(log)
        wanted = ReferenceEngine().run(case)
        if wanted.findings and not self.isolated:
            return  # trusting mode is not promised to such an application
        self.check_outputs(wanted.outputs)
        letters = self.letters_of(wanted.dead_letters, log)
        self._check_letters([_compared(letter.to_json()) for letter in letters])
        if (times := [one.at for one in log]) != sorted(times):
            raise Broken(f"time-1: records arrived at {times}")
        check_state(*self.held(case), wanted)
        self.check_sources(log)

    def _check_letters(self, due: Sequence[str]) -> None:
        """Check that all dead letters are in the files, or that the oldest were deleted."""
        written = self.letters()
        found = {_compared(letter) for letter in whole_letters(written)}
        missing = [letter for letter in due if letter not in found]
        cut = self.letter_bytes < 1 << 30
        if found - {*due} or (missing and not cut) or missing != [*due[: len(missing)]]:
            raise Broken(f"dead-1: {missing} are missing, and there are {found - {*due}}")
        longest = max(map(len, written.split(b"\n")))
        if len(written) > self.letter_bytes + longest:
            raise Broken(f"dead-1: {len(written)} bytes are kept, not {self.letter_bytes}")

    @override
    def check(self, life: Life, summary: Summary | None, *, last: bool) -> None:
        super().check(life, summary, last=last)
        self.check_stored()
        chance = self.world.chance("rewritten", self.world.life)
        if chance.random() < _REWRITTEN and not (last or self._recorded):
            with self.machine.looked_at():  # a recording would be of the log that was
                stored.rewrite(self.machine.disk, chance)

    def check_stored(self) -> None:
        """Check that the stored state is that of one run to its position (recover-1)."""
        with self.machine.looked_at():
            position = self.stored_position()
        try:
            log = self.recorded()
        except InputLogError:
            return  # the next start mends a recording
        if position > len(log):
            raise Broken(f"recover-1: a state is stored at {position}, of {len(log)} records")
        case = self.case_of(log[:position])
        wanted = ReferenceEngine().run(case)
        if position and (self.isolated or not wanted.findings):
            with self.machine.looked_at():
                self.check_state(case, wanted)

    def stored_position(self) -> int:
        """Return where the stored state stands; 0: there is none."""
        return stored.position()

    def check_state(self, _case: Case, wanted: Trace) -> None:
        """Check the stored state."""
        stored.check(wanted, self.partitions)

    def held(self, _case: Case) -> tuple[Sequence[Entity], Sequence[OpenWindow]]:
        """Return what the last process held in the end."""
        return sorted_entities(self._made.entities()), sorted_windows(self._made.windows())

    def case_of(self, log: Sequence[Record]) -> Case:
        """Return the case of a bounded run of a log."""
        return Case(
            instrument(self.judged(), _refusing),
            [_left_out(one) if number in self.left_out else one for number, one in enumerate(log)],
            partitions=self.partitions,
            isolation="isolated",
            options={"thorough": True},
        )

    @property
    def left_out(self) -> Sequence[int]:
        """The numbers of the records that restarts leave out."""
        numbers: list[int] = self.fixed["skip_record"]
        return numbers

    def check_outputs(self, wanted: Mapping[SinkId, Sequence[Any]]) -> None:
        """Check what peers have got."""
        for sink, peer in self.kept.items():
            made = b"".join(wanted[sink])
            if peer.kept != made:
                raise Broken(f"sink-9: {sink} has {bytes(peer.kept)!r}, not {made!r}")

    def check_sources(self, log: Sequence[Record]) -> None:
        """Check that the input log has all that its sources have given."""
        if self._distinct:
            self._check_frames([one.payload for one in log if isinstance(one, Frame)])
        for name, source in self.application.sources.items():
            given = [one.value for one in log if isinstance(one, Value) and one.source == name]
            numbers = [None if isinstance(one, Unportable) else one[1] for one in given]
            if isinstance(source.config, GenSourceConfig) and numbers != self._values.portable():
                raise Broken(f"graph-4: {name} has given {numbers}, not {self._values.portable()}")

    def _check_frames(self, taken: Sequence[bytes]) -> None:
        for sender in self.senders:
            sent = sender.payloads
            found = [one for one in taken if one in {*sent}]
            if found != sent[: len(found)]:
                raise Broken(f"frame-5: of {sent} the log has {found}")
            if sender.told is not None and len(found) < sender.told:
                raise Broken(f"frame-4: of {sent} {sender.told} are safe, and {found} are there")
        if missing := {*self.promised} - {*taken}:
            raise Broken(f"stop-1: {missing} had arrived before a stop with exit 0 and are lost")

    def letters_of(self, letters: Sequence[DeadLetter], _log: Sequence[Record]) -> list[DeadLetter]:
        """Return dead letters of a bounded run as those of a live one."""
        return [*letters]

    def recorded(self) -> list[Record]:
        """Return all records of the input log."""
        with self.machine.looked_at():
            runs = self.logged()
        return [record for run in runs for record in self.records_of(run)]

    def logged(self) -> list[LoggedRun]:
        """Return the runs of all records that were logged."""
        return self.runs_of(RECORDED if self._recorded else DIRECTORY)

    def runs_of(self, directory: Path) -> list[LoggedRun]:
        """Return the runs of the input log in a directory."""
        files, _ = read(directory / "input")
        return [run for file in files for run in file.runs(0, sys.maxsize)]

    def records_of(self, run: LoggedRun) -> list[Record]:
        """Return the records of a run."""
        records = run.records()
        return [from_log(one).made if isinstance(one, Value) else one for one in records]


class _LeftOut(bytes):
    """The payload of a frame, or the value of a topic's record, that is left out."""


class SkippedRecordError(Exception):
    """The record is left out."""


def _left_out(record: Record) -> Record:
    """Return a record as one that is left out."""
    if isinstance(record, Value):
        return replace(record, value=Unportable("it is left out"))
    if isinstance(record, Consumed):
        value = _LeftOut(record.record.value or b"")
        return replace(record, record=replace(record.record, value=value))
    assert isinstance(record, Frame), f"{record} cannot end a run"
    return replace(record, payload=_LeftOut(record.payload))


def _refusing(site: CallSite, call: Call) -> Call:
    """Return a decoder that refuses what is left out."""
    if site.method != "decode":
        return call

    def decode(given: bytes | KafkaRecord) -> Any:
        if isinstance(given.value if isinstance(given, KafkaRecord) else given, _LeftOut):
            raise SkippedRecordError
        return call(given)

    return decode


def _named(payload: bytes, name: str) -> bytes:
    """Return a payload with a name in its text; one without a text has it in its letter."""
    letter, blank, rest = payload.partition(b" ")
    if rest.endswith(b" "):
        return letter + name.encode() + blank + rest
    return payload + name.encode()


def _compared(letter: dict[str, Any]) -> str:
    return canonical_json({name: letter[name] for name in letter if name not in _OF_THE_RUN})
