"""Which facts a timed case meets."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from itertools import pairwise, zip_longest
from typing import Any

from wallaroo.keys import BadKeyError, encode_key
from wallaroo.operations import Windowed
from wallaroo.records import End, Frame, Record, Tick, Value
from wallaroo.times import TIME_END, BadTimeError, event_time_from
from wallaroo.topology import Application, Sink, Step
from wallaroo.trace import DeadLetter, Reason
from wallaroo.windows import CountWindows, LateDataPolicy, RangeWindows, SessionWindows
from wallaroo_conformance.cases.operators import EVENT_TIMES, KEYS, STATEFUL, Trait
from wallaroo_conformance.cases.operators.aggregations import AGGREGATIONS
from wallaroo_conformance.judge.fact import Fact, Facts
from wallaroo_conformance.judge.facts import ENDS, appearance
from wallaroo_conformance.judge.observing import is_false
from wallaroo_conformance.judge.timed_observing import RAISED, TimedCall, TimedObservation

_TODAY = 1 << 53  # from here on, floats leave out numbers
_LAST = 64  # nanoseconds; no case has longer windows


def facts_of_timed(observation: TimedObservation) -> Facts:
    """Return the facts of a timed case."""
    facts = {Fact.TIMED}
    _run_facts(observation, facts)
    _graph_facts(observation, facts)
    _key_facts(observation, facts)
    _source_facts(observation, facts)
    _call_facts(observation, facts)
    _order_facts(observation, facts)
    _lateness_facts(observation, facts)
    for letter in observation.trace.dead_letters:
        _letter_facts(letter, facts)
    return frozenset(facts)


def _run_facts(observation: TimedObservation, facts: set[Fact]) -> None:
    case, trace = observation.case, observation.trace
    if case.batches is not None and case.batches[0] < len(case.input_log):
        facts.add(Fact.SEVERAL_BATCHES)
    if trace.ended is not None:
        facts.add(ENDS[trace.ended.kind])
    if case.codec:
        facts.add(Fact.CODEC)
    ends = zip(observation.application.nodes, observation.application.consumers, strict=True)
    if any(not consumers and not isinstance(node, Sink) for node, consumers in ends):
        facts.add(Fact.DONE)
    if trace.windows:
        facts.add(Fact.WINDOWS_OPEN)
    for _, what in trace.late:
        facts |= {Fact.LATE_DROPPED, Fact.LATE} if what == "dropped" else {Fact.LATE_PARTLY}
    log = case.input_log
    if len({record.at for record in log if isinstance(record, Frame)}) > 1:
        facts.add(Fact.SEVERAL_ARRIVALS)
    if len([record for record in log if not isinstance(record, End)]) > 1:
        facts.add(Fact.TIME_WENT_ON)
    if any(isinstance(record, Value) for record in log):
        facts.add(Fact.GENERATED)
    if any(isinstance(record, Tick) for record in log):
        facts.add(Fact.TICKED)
    if any(one.at > other.at for one, other in pairwise(log)):
        facts.add(Fact.CLOCK_BACK)
    if any(isinstance(record, End) for record in log):
        facts.add(Fact.SOURCE_ENDED)
    if any(isinstance(record, End) and record.error_type and not record.ends_run for record in log):
        facts.add(Fact.GENERATOR_FAILED)


def _graph_facts(observation: TimedObservation, facts: set[Fact]) -> None:
    application = observation.application
    sources = [set(ways) for ways in application.ways]
    windowed = set(application.window_steps)
    for index, node in enumerate(application.nodes):
        if len(application.consumers[index]) > 1:
            facts.add(Fact.BRANCHED)
        if not isinstance(node, Step):
            continue
        if node.name == "merge":
            facts.add(Fact.MERGED)
            sides = [sources[origin] for origin in node.inputs]
            if sides[0] & sides[1]:
                facts.add(Fact.MERGED_WITH_ITSELF)
        if node.name == "collect":
            facts.add(Fact.COLLECTED)
        if _is_met(node) and _key_is_taken(application, index):
            facts.add(Fact.KEY_TAKEN)
        if index in windowed:
            if len(sources[index]) > 1:
                facts.add(Fact.SEVERAL_WAYS)
            for name in sources[index]:
                config = application.sources[name].config
                if config.idle_after is not None and config.event_time is not None:
                    facts.add(Fact.IDLE)
                if config.event_time is None:
                    facts.add(Fact.ARRIVAL_TIME)
            if _behind(application, index) & windowed:
                facts.add(Fact.CHAINED)
            if any(application.ways[index].values()):
                facts.add(Fact.DELAYED_WAY)


def _is_met(step: Step) -> bool:
    """Whether messages meet something at a step: a state entity or a window."""
    return isinstance(step.operation, Windowed) or _operator(step) in STATEFUL


def _key_is_taken(application: Application, index: int) -> bool:
    """Whether a key is found and then taken by collect on the way to a step."""
    ways = [application.nodes[number] for number in _behind(application, index)]
    names = [_operator(node) for node in ways if isinstance(node, Step)]
    return "collect" in names and any(name in KEYS for name in names)


def _operator(step: Step) -> str:
    return step.name.split()[0]


def _behind(application: Application, index: int) -> set[int]:
    """Return the nodes that lead to a node."""
    found: set[int] = set()
    rest = [index]
    while rest:
        for origin in getattr(application.nodes[rest.pop()], "inputs", ()):
            if origin not in found:
                found.add(origin)
                rest.append(origin)
    return found


def _key_facts(observation: TimedObservation, facts: set[Fact]) -> None:
    found: dict[bytes, Any] = {}
    for call in observation.calls:
        if call.role == "partition function" and call.result is not RAISED:
            with contextlib.suppress(BadKeyError):
                found[encode_key(call.result)] = call.result
    if len({appearance(key) for key in found.values()}) < len(found):
        facts.add(Fact.KEYS_ALIKE)


def _source_facts(observation: TimedObservation, facts: set[Fact]) -> None:
    for call in observation.calls:
        if call.role != "event time":
            continue
        facts.add(Fact.EVENT_TIME_RAISES if call.result is RAISED else Fact.EVENT_TIME)
        function = call.user.config.event_time.component
        if EVENT_TIMES.has(function.__name__, Trait.ALTERS_MESSAGE):
            facts.add(Fact.EVENT_TIME_ALTERS)
        if isinstance(call.result, datetime):
            facts.add(Fact.EVENT_MOMENT)
        if type(call.result) is int and call.result == 0:
            facts.add(Fact.TIME_ZERO)
        if type(call.result) is int and TIME_END - _LAST <= call.result < TIME_END:
            facts.add(Fact.TIME_LAST)


def _call_facts(observation: TimedObservation, facts: set[Fact]) -> None:
    application = observation.application
    shared = Counter([getattr(step.operation, "partition", "") for step in application.steps])
    expiring = {one.name for one in application.partitions if one.expire_after is not None}
    built = 0
    for call in observation.calls:
        if call.role == "builder":
            built += 1
            continue
        if call.role == "decoder" and call.result is not None and is_false(call.result):
            facts.add(Fact.DECODER_GIVES_FALSY)
        if not isinstance(call.user, Step):
            continue
        operation = call.user.operation
        if call.role == "partition function" and call.user.name.split()[0] in KEYS:
            facts.add(Fact.KEY_EXTRACTOR_LETTER if call.result is RAISED else Fact.KEY_STAYED)
            if KEYS.has(call.user.name.split()[0], Trait.ALTERS_MESSAGE):
                facts.add(Fact.EXTRACTOR_ALTERS)
        elif call.role == "computation" and call.user.name.split()[0] in STATEFUL:
            if not operation.computation.pair:  # type: ignore[union-attr]  # it has state
                facts.add(Fact.OWN_STATE)
            if shared[operation.partition] > 1:  # type: ignore[union-attr]  # it has state
                facts.add(Fact.STATE_NAMED)
            if operation.partition in expiring:  # type: ignore[union-attr]
                facts.add(Fact.EXPIRING)
            if not operation.keyed and operation.route is None:  # type: ignore[union-attr]
                facts.add(Fact.ONE_KEY)
        elif call.role == "computation":
            facts.add(Fact.COMPUTED)
        elif isinstance(operation, Windowed):
            _window_facts(call, operation, facts)
    if expiring and built > len(observation.trace.entities):
        facts.add(Fact.EXPIRED)


def _window_facts(call: TimedCall, operation: Windowed, facts: set[Fact]) -> None:
    windows = operation.windows
    if call.result is not None and is_false(call.result):
        facts.add(Fact.AGGREGATION_FALSY)
    if call.role == "update":
        facts.add(Fact.WINDOWED)
        if call.result is RAISED:
            facts.add(Fact.UPDATE_RAISED)
            if call.arguments[1]:
                facts.add(Fact.UPDATE_RAISED_WITHIN)
        if not operation.keyed and operation.route is None:
            facts.add(Fact.ONE_KEY)
        if getattr(windows, "late", None) is LateDataPolicy.PLACE_IN_OLDEST_WINDOW:
            facts.add(Fact.LATE_PLACED)
        if getattr(windows, "delay", 0):
            facts.add(Fact.DELAYED)
        if isinstance(windows, CountWindows):
            facts.add(Fact.COUNTING)
    elif call.role == "combine":
        session = isinstance(windows, SessionWindows)
        facts.add(Fact.SESSIONS_COMBINED if session else Fact.PANES_COMBINED)
        if call.result is RAISED:
            facts.add(Fact.COMBINE_RAISED)
    elif call.role == "output":
        _firing_facts(call, windows, facts)


def _firing_facts(call: TimedCall, windows: Any, facts: set[Fact]) -> None:
    facts.add(Fact.FIRED)
    if call.result is None:
        facts.add(Fact.WINDOW_GIVES_NONE)
    elif call.result is RAISED:
        facts.add(Fact.OUTPUT_RAISED)
    bounds = call.arguments[2] if len(call.arguments) > 2 else None
    if getattr(windows, "late", None) is LateDataPolicy.FIRE_PER_MESSAGE and (
        bounds is None or bounds.end == bounds.start + 1
    ):
        facts |= {Fact.LATE_FIRED, Fact.LATE}
    if isinstance(windows, RangeWindows):
        facts.add(Fact.FIRED_RANGE)
        if bounds is not None and bounds.start >= _TODAY:
            facts.add(Fact.LARGE_TIMES_FIRED)
        if windows.slide != windows.range:
            facts.add(Fact.FIRED_SLIDING)
            if AGGREGATIONS.has(call.user.name.split()[0], Trait.ALTERS_PANES):
                facts.add(Fact.PANES_ALTERED)
    elif isinstance(windows, SessionWindows):
        facts.add(Fact.FIRED_SESSION)
    elif isinstance(windows, CountWindows):
        facts.add(Fact.FIRED_COUNT)
        if windows.timeout is not None:
            facts.add(Fact.FIRED_BY_TIMEOUT)


def _order_facts(observation: TimedObservation, facts: set[Fact]) -> None:
    """Note what fired in one turn: several windows, or windows before a record's own message."""
    fired: list[tuple[str, Any]] = []  # since the last record or message at a window
    by_itself = iter(_followed_by_frames(observation.case.input_log))
    in_frame = alone = lost = False
    taken: Counter[str] = Counter()  # messages at a count window's step since one fired
    updated = ""  # the step whose update was the call before
    for call in observation.calls:
        if call.role == "output" and (most := _count_until_timeout(call.user)):
            name = call.user.name
            if taken[name] > 1 and (updated != name or taken[name] < most):
                facts.add(Fact.TIMEOUT_OF_SEVERAL)
            taken[name] = 0
        updated = call.user.name if call.role == "update" else ""
        if updated:
            taken[updated] += 1
        if call.role == "decoder":
            fired, in_frame = [], True
            alone = next(by_itself)
            lost = alone and (call.result is None or call.result is RAISED)
        elif call.role == "event time":
            lost = alone and call.result is RAISED
        elif call.role == "output":
            if lost:
                facts.add(Fact.FIRED_BY_LOST)
            this = call.user.name, call.arguments[0]
            if fired:
                facts.add(Fact.ONE_KEY_DUE if fired[-1] == this else Fact.DUE_TOGETHER)
            fired.append(this)
        elif call.role == "update":
            if fired and in_frame:
                facts.add(Fact.FIRED_BEFORE_OWN)
            fired = []


def _followed_by_frames(log: Sequence[Record]) -> list[bool]:
    """Return for each frame of a log whether the calls behind it can only be its own.

    The calls do not show where a tick, an end or a generator's value begins.
    """
    return [
        other is None or isinstance(other, Frame)
        for one, other in zip_longest(log, log[1:])
        if isinstance(one, Frame)
    ]


def _lateness_facts(observation: TimedObservation, facts: set[Fact]) -> None:
    """Note messages at edges, and those in time because a session is open that they overlap.

    Where late messages are dead letters, a message is in time if `update` is called for it.
    """
    application = observation.application
    steps = {
        application.nodes[index].name  # type: ignore[union-attr]  # a window step
        for index in application.window_steps
        if _has_time_of_one_source(application, index)
    }
    windowed = [getattr(step.operation, "windows", None) for step in application.steps]
    slides = [windows.slide for windows in windowed if isinstance(windows, RangeWindows)]
    greatest: dict[str, int] = {}  # event time of each source
    source, time = "", 0  # of the record's message
    for call in observation.calls:
        if call.role == "event time":
            with contextlib.suppress(BadTimeError):  # also of what it raised
                source, time = call.user.pipeline, event_time_from(call.result)
                if time >= max(greatest.values(), default=0) and any(
                    time % slide == 0 for slide in slides
                ):
                    facts.add(Fact.AT_EDGE)
                greatest[source] = max(time, greatest.get(source, 0))
        elif call.role == "update" and call.result is not RAISED and call.user.name in steps:
            windows = call.user.operation.windows
            if not isinstance(windows, SessionWindows):
                continue
            if windows.late is LateDataPolicy.DEAD_LETTER:
                watermark = greatest[source] - windows.delay
                if time + windows.gap <= watermark:
                    facts.add(Fact.IN_TIME_BY_SESSION)


def _has_time_of_one_source(application: Application, index: int) -> bool:
    """Whether a window step's watermark is the greatest event time of one source."""
    names = list(application.ways[index])
    windowed = set(application.window_steps)
    return (
        len(names) == 1
        and application.sources[names[0]].config.event_time is not None
        and not _behind(application, index) & windowed
    )


def _count_until_timeout(step: Step) -> int:
    """Return the number of messages on which a step's windows fire; 0 if they have no timeout."""
    windows = getattr(step.operation, "windows", None)
    if isinstance(windows, CountWindows) and windows.timeout is not None:
        return windows.count
    return 0


_REASONS = {
    Reason.LATE: Fact.LATE_LETTER,
    Reason.BAD_TIME: Fact.BAD_TIME_LETTER,
    Reason.UNPORTABLE: Fact.CODEC_REFUSES,
    Reason.BAD_KEY: Fact.KEY_EXTRACTOR_LETTER,
}


def _letter_facts(letter: DeadLetter, facts: set[Fact]) -> None:
    facts.add(Fact.TIMED_LETTER)
    if letter.source not in (None, letter.pipeline):  # of what a tick made due there is none
        facts.add(Fact.LETTER_OF_ANOTHER_SOURCE)
    if letter.reason in _REASONS:
        facts.add(_REASONS[letter.reason])
    if letter.reason is Reason.LATE:
        facts.add(Fact.LATE)
    if letter.reason is Reason.BAD_KEY:
        facts.add(Fact.BAD_KEY)
