"""Describes steps: as text for people, and as JSON values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from wallaroo import readable
from wallaroo.canonical import structure_or_kind
from wallaroo.judging import DeadLetterError
from wallaroo.kafka_records import KafkaRecord
from wallaroo.keys import key_to_json
from wallaroo.readable import structure_text
from wallaroo.text import counted
from wallaroo.trace import canonical_json, in_base64, output_to_json
from wallaroo.windows import CountWindows
from wallaroo_reference.isolated.copies import thaw
from wallaroo_reference.isolated.places import Place
from wallaroo_reference.isolated.watermarks import FOREVER
from wallaroo_reference.replay.explaining import Explanation, Visits
from wallaroo_reference.replay.steps import ABSENT, Step

_A_DATE = 10**17  # nanoseconds since 1970 from which a time is read as a date: the year 1973
_LONGEST = 400  # characters of a value
_SHORT = 100  # characters of a state; of a longer one only the changes are shown
_MESSAGES = 20  # of a window, that are shown in a text
_ITEMS = 20  # of a multi output


def explanation_lines(explanation: Explanation) -> list[str]:
    """Return where something comes from, as text."""
    lines = steps_lines(explanation.end.way())
    for visits in explanation.history:
        lines += ["", *visits_lines(visits, "before")]
    return lines


def steps_lines(steps: Sequence[Step]) -> list[str]:
    """Return steps as text."""
    return [line for step in steps for line in _step_lines(step)]


def steps_json(steps: Sequence[Step]) -> list[dict[str, Any]]:
    """Return steps as JSON values."""
    return [_step_json(step) for step in steps]


def explanation_json(explanation: Explanation) -> dict[str, Any]:
    """Return where something comes from, as JSON values."""
    return {
        "steps": steps_json(explanation.end.way()),
        "history": [visits_json(visits) for visits in explanation.history],
    }


def visits_lines(visits: Visits, when: str = "") -> list[str]:
    """Return visits of an entity as text; `when` says which, after the word visits."""
    name = f"{visits.partition}[{readable.ascii_key(visits.key)}]"
    shown = len(visits.last)
    some = "" if shown == visits.count else f", the last {shown} of them"
    number = "no visits" if not visits.count else f"{visits.count:,} visits"
    number = "1 visit" if visits.count == 1 else number
    lines = [f"{name}: {number}{when and ' '}{when}{some}"]
    for step in visits.last:
        record = step.way()[0]
        lines.append(f"  {step.lineage} {_record(record)}")
        lines += [f"    {line}" for line in _state_lines(step)]
    return lines


def visits_json(visits: Visits) -> dict[str, Any]:
    """Return visits of an entity as JSON values."""
    return {
        "partition": visits.partition,
        "key": key_to_json(visits.key),
        "visits": visits.count,
        "last": [{"record": _step_json(step.way()[0]), **_step_json(step)} for step in visits.last],
    }


# -- text -----------------------------------------------------------------------------------------


def _step_lines(step: Step) -> Iterator[str]:
    yield f"{step.lineage} {_title(step)}"
    for line in _what_lines(step):
        yield f"    {line}"
    if step.problem is not None:
        yield f"    dead letter: {_problem(step.problem)}"


def _title(step: Step) -> str:
    place = step.place
    match step.what:
        case "frame" | "value" | "assigned" | "tick" | "end":
            return _record(step)
        case "sink":
            assert place is not None
            assert place.sink is not None
            return f"sink {place.sink[0]}/{place.sink[1]}, encoder {_component(place)}"
        case "firing":
            assert step.firing is not None
            start, end = _time(step.firing.start), _time(step.firing.end)
            key = readable.ascii_key(step.key)
            return f"window of {_name(place)}, key {key}, from {start} to {end}"
        case "window":
            return f"windows of {_name(place)}"
        case "key":
            return f"key_by {_name(place)}"
        case "collect" | "merge" | "branch":
            return step.what
    return f"{step.what} {_name(place)}"


def _record(step: Step) -> str:
    number = step.lineage[0]
    match step.what:
        case "tick":
            return f"record {number}: time passes, it is {_time(step.at)}"
        case "assigned":
            return f"record {number}: source {step.source} reads partitions from {_time(step.at)}"
        case "end":
            return f"record {number}: source {step.source} ends at {_time(step.at)}"
        case "frame":
            came = step.came
            what, shown = "a frame", _shortened(repr(came))
            if isinstance(came, KafkaRecord):
                what = f"partition {came.partition}, offset {came.offset}"
                shown = f"{_shortened(repr(came.value))}, key {_shortened(repr(came.key))}"
            return f"record {number}: {what} of {step.source} at {_time(step.at)}: {shown}"
    return f"record {number}: a value of generator {step.source} at {_time(step.at)}"


def _what_lines(step: Step) -> Iterator[str]:
    match step.what:
        case "frame":
            if step.problem is None:
                assert step.place is not None
                gave = _shown(step.gave[0]) if step.gave else "nothing"
                yield f"decoder {_component(step.place)} gave {gave}"
        case "value":
            yield from _gave_lines(step)
        case "state computation":
            yield from _state_lines(step)
        case "firing":
            yield from _firing_lines(step)
        case "key":
            yield f"came {_shown(step.came)}"
            if step.key is not ABSENT:
                yield f"key {readable.ascii_key(step.key)}"
        case "window":
            yield f"came {_shown(step.came)}, its time is {_time(step.time)}"
        case "sink":
            yield f"came {_shown(step.came)}"
            if step.written is not None:
                yield f"wrote {_shortened(readable.output_text(step.written))}"
        case "computation":
            yield f"came {_shown(step.came)}"
            yield from _gave_lines(step)


def _state_lines(step: Step) -> Iterator[str]:
    yield f"came {_shown(step.came)}"
    if step.new_state is not ABSENT:
        assert step.place is not None
        assert step.place.stateful is not None
        name = f"{step.place.stateful.partition}[{readable.ascii_key(step.key)}]"
        before, after = _structure(step.state), _structure(step.new_state)
        if step.built:
            yield f"{name} was just built: {_text(before)}"
        elif before != after and max(len(_text(before)), len(_text(after))) <= _SHORT:
            yield f"{name} was {_text(before)}"
        if before == after:
            yield f"{name} is as before: {_text(after)}"
        elif step.built or max(len(_text(before)), len(_text(after))) <= _SHORT:
            yield f"{name} is {_text(after)}"
        else:
            yield from _change_lines(name, before, after)
    yield from _gave_lines(step)


def _change_lines(name: str, before: Any, after: Any) -> Iterator[str]:
    """Yield what is different between two long states."""
    found = list(changes(before, after))
    for way, was, now in found[:_ITEMS]:
        if was is None:
            yield f"{name}{way} is new: {_text(now)}"
        elif now is None:
            yield f"{name}{way} is gone: it was {_text(was)}"
        else:
            yield f"{name}{way} was {_text(was)}, is {_text(now)}"
    if len(found) > _ITEMS:
        yield f"and {len(found) - _ITEMS:,} more changes (--json shows all)"


def _firing_lines(step: Step) -> Iterator[str]:
    yield f"fired: {_cause_text(step)}"
    count = len(step.puts)
    stored = ", beside those that the stored state has met" if step.stored else ""
    yield f"{counted(count, 'message')} in it{stored}:"
    for put in step.puts[:_MESSAGES]:
        yield f"  {put.lineage} at {_time(put.time)}: {_shown(put.message)}"
    if count > _MESSAGES:
        yield f"  and {count - _MESSAGES:,} more (--json shows all)"
    yield from _gave_lines(step)


def _gave_lines(step: Step) -> Iterator[str]:
    if not step.gave:
        if step.problem is None:
            yield "gave nothing"
    elif step.place is not None and step.place.multi:
        yield f"gave {counted(len(step.gave), 'message')}:"
        for message in step.gave[:_ITEMS]:
            yield f"  {_shown(message)}"
        if len(step.gave) > _ITEMS:
            yield f"  and {len(step.gave) - _ITEMS:,} more (--json shows all)"
    else:
        yield f"gave {_shown(step.gave[0])}"


def _cause(step: Step) -> str:
    """Return what made a window fire: ``count``, ``late``, ``timeout`` or ``watermark``."""
    assert step.firing is not None
    if step.firing.own:
        return "late"
    if step.before is not None and step.before.what == "window":
        return "count"
    operation = None if step.place is None else step.place.operation
    windows = getattr(operation, "windows", None)
    return "timeout" if isinstance(windows, CountWindows) else "watermark"


def _cause_text(step: Step) -> str:
    record = step.way()[0]
    match _cause(step):
        case "late":
            return "its one message is late, and fires by itself"
        case "count":
            return "its last message has filled it"
        case "timeout":
            return "its timeout is over"
    said = "all sources have ended" if step.watermark == FOREVER else _time(step.watermark)
    moved = " with this record" if record.what in ("frame", "value") else ""
    return f"the watermark has passed its end{moved}: {said}"


def _name(place: Place | None) -> str:
    return "" if place is None or place.step is None else place.step


def _component(place: Place) -> str:
    return "" if place.component is None else place.component.name


def _problem(dead: DeadLetterError) -> str:
    raised = "" if dead.error_type is None else f"{dead.error_type}: "
    return f"{dead.reason}: {raised}{dead.error}"


def _structure(frozen: Any) -> Any:
    try:
        return structure_or_kind(thaw(frozen))
    except DeadLetterError as dead:  # it survived pickling once, and does not now
        return ["unportable", dead.error]


def _shown(frozen: Any) -> str:
    return _text(_structure(frozen))


def _text(structure: Any) -> str:
    return _shortened(readable.structure_text(structure))


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _time(time: float) -> str:
    """Return nanoseconds since 1970 as a date, or as seconds if they are few."""
    if time in (float("inf"), float("-inf")):
        return "the end of time" if time > 0 else "before all time"
    if time < _A_DATE:
        return f"{readable.seconds_text(int(time))} s"
    seconds, rest = divmod(int(time), 10**9)
    shown = datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S")
    return f"{shown}.{rest:09d}".rstrip("0").rstrip(".") + " UTC"


# -- JSON -----------------------------------------------------------------------------------------


def _step_json(step: Step) -> dict[str, Any]:
    place = step.place
    form: dict[str, Any] = {"what": step.what, "lineage": list(step.lineage)}
    if place is not None:
        form["pipeline"] = place.pipeline
        form["step"] = place.step
        if place.sink is not None:
            form["sink"] = place.sink[1]
    if step.source is not None:
        form["source"] = step.source
    if step.before is None:
        form["at"] = step.at
    if step.what == "frame":
        came = step.came
        if isinstance(came, KafkaRecord):
            form["partition"], form["offset"] = came.partition, came.offset
            form["record_key"], form["timestamp"] = in_base64(came.key), came.timestamp
            form["headers"] = [[name, in_base64(value)] for name, value in came.headers]
            came = came.value
        form["payload"] = in_base64(came)
    elif step.came is not ABSENT:
        form["came"] = _structure(step.came)
    if step.key is not ABSENT:
        form["key"] = key_to_json(step.key)
    if step.new_state is not ABSENT:
        assert place is not None
        assert place.stateful is not None
        form["partition"] = place.stateful.partition
        form["built"] = step.built
        form["state_before"] = _structure(step.state)
        form["state_after"] = _structure(step.new_state)
    if step.firing is not None:
        form["window"] = {
            "start": step.firing.start,
            "end": step.firing.end,
            "fired_by": _cause(step),
            "stored": step.stored,
            "messages": [
                {"lineage": list(put.lineage), "time": put.time, "came": _structure(put.message)}
                for put in step.puts
            ],
        }
    if step.what != "sink":
        form["gave"] = [_structure(message) for message in step.gave]
    if step.written is not None:
        form["written"] = output_to_json(step.written)
    if step.problem is not None:
        dead = step.problem
        form["dead_letter"] = {
            "reason": None if dead.reason is None else dead.reason.value,
            "error_type": dead.error_type,
            "error": dead.error,
        }
    return form


# -- differences -----------------------------------------------------------------------------------


def changes(before: Any, after: Any, way: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Yield (where, what was there, what is there now); `None`: it is new, or gone.

    Attributes, the values of dicts, and the items of lists that are as long as before are compared
    one by one; everything else is compared as a whole.

    Args:
        before: a structure.
        after: another.
        way: what is written before each place, as Python writes it: ``.attribute``, ``['key']``.
    """
    if before == after:
        return
    match before, after:
        case ["dict", old], ["dict", new]:
            yield from _of_pairs(old, new, lambda name: f"{way}[{structure_text(name)}]")
        case ["list", old], ["list", new] if len(old) == len(new):
            for index, (was, now) in enumerate(zip(old, new, strict=True)):
                yield from changes(was, now, f"{way}[{index}]")
        case [kind, make, arguments, old, None, None], [other, *rest, new, None, None] if (
            [kind, make, arguments] == [other, *rest] and _attributes(old) and _attributes(new)
        ):
            yield from _of_pairs(
                _attributes(old), _attributes(new), lambda name: f"{way}.{_attribute(name)}"
            )
        case _:
            yield way, before, after


def _attributes(state: Any) -> list[Any]:
    match state:
        case ["dict", pairs] | ["tuple", [None, ["dict", pairs]]]:  # the second: __slots__
            return list(pairs)
    return []


def _attribute(name: Any) -> str:
    return str(name[1]) if name[:1] == ["str"] else structure_text(name)


def _of_pairs(old: list[Any], new: list[Any], way: Any) -> Iterator[tuple[str, Any, Any]]:
    were = {canonical_json(name): (name, value) for name, value in old}
    are = {canonical_json(name): (name, value) for name, value in new}
    for identity in sorted(were.keys() | are.keys()):
        name = (were.get(identity) or are[identity])[0]
        if identity not in were:
            yield way(name), None, are[identity][1]
        elif identity not in are:
            yield way(name), were[identity][1], None
        else:
            yield from changes(were[identity][1], are[identity][1], way(name))
