"""What one window step, or one expiring state, must give: a few plain loops over the whole log.

This shares nothing with any engine: it looks at every message and every window again for each
record. It knows cases of one source and at most one `key_by` before the step, without failures.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

from wallaroo.records import Frame, Record, Tick
from wallaroo_conformance.cases.case import ConformanceCase, WindowSpec
from wallaroo_conformance.cases.records import input_log_of

Output = tuple[int, str, str]
"""(end of the window, letter of its key, its text)."""


@dataclass
class Expected:
    """The expected outputs: lines in their order, and the number of late messages."""

    lines: list[bytes] = field(default_factory=list)
    late: int = 0


@dataclass(frozen=True)
class _Message:
    number: int
    at: int
    time: int
    key: str
    text: str
    watermark: float


def expected(case: ConformanceCase) -> Expected | None:
    """Return what a case must give; `None`: this model cannot tell."""
    row = case.plain_row
    if row is None or case.form != "pipelines" or case.codec or case.sources[0].idle_after:
        return None
    steps = [step.operator for step in row]
    keyed = steps[:1] == ["by_letter"]
    last = steps[-1:]
    if len(steps) != keyed + 1 or case.sources[0].event_time == "own_moment":
        return None
    messages = list(_messages(case, keyed=keyed))
    if last == ["remember"]:
        return _remembered(case, messages)
    window = row[-1].window
    if last != ["texts"] or window is None:
        return None
    if window.kind == "count":
        return _counted(window, messages, input_log_of(case))
    if window.late not in ("dead-letter", "drop"):
        return None
    watermarks = list(_watermarks(case))
    if window.kind == "range":
        return _ranges(window, messages, watermarks)
    return _sessions(window, messages, watermarks)


def _event_time(case: ConformanceCase, record: Record) -> int:
    if case.sources[0].event_time is None or not isinstance(record, Frame):
        return 0
    return int(record.payload.split(b" ")[1])


def _times(case: ConformanceCase) -> Iterator[tuple[int, Record]]:
    latest = 0
    for record in input_log_of(case):
        latest = max(latest, record.at)
        yield latest, record


def _watermarks(case: ConformanceCase) -> Iterator[float]:
    """Yield the watermark as each record sets it."""
    greatest = -math.inf
    for at, record in _times(case):
        if isinstance(record, Frame) and case.sources[0].event_time is not None:
            greatest = max(greatest, _event_time(case, record))
        if not isinstance(record, (Frame, Tick)):
            greatest = math.inf
        yield greatest if case.sources[0].event_time is not None else max(greatest, at)


def _messages(case: ConformanceCase, *, keyed: bool) -> Iterator[_Message]:
    marks = list(_watermarks(case))
    for number, (at, record) in enumerate(_times(case)):
        if isinstance(record, Frame):
            letter, _, text = record.payload.decode().split(" ")
            time = _event_time(case, record) if case.sources[0].event_time is not None else at
            yield _Message(number, at, time, letter if keyed else "", text, marks[number])


def _line(key: str, end: int, text: str) -> bytes:
    return f"{key or '-'} {end} {text}\n".encode()


def _ranges(window: WindowSpec, messages: list[_Message], watermarks: list[float]) -> Expected:
    """Look at every window of the grid that holds any message, for each key."""
    size, slide = window.size, window.slide or window.size
    pane = math.gcd(size, slide)
    found = Expected()
    inside: dict[tuple[int, str], list[_Message]] = {}
    for one in messages:
        starts = [k for k in range(one.time - size + 1, one.time + 1) if k % slide == 0]
        open_ones = [k for k in starts if k + size + window.delay > one.watermark]
        for start in open_ones:
            inside.setdefault((start + size, one.key), []).append(one)
        found.late += not open_ones
    fired: list[tuple[int, int, str, str]] = []
    for (end, key), members in inside.items():
        first = members[0].number
        due = [n for n in range(first + 1, len(watermarks)) if watermarks[n] >= end + window.delay]
        if due:
            ordered = sorted(members, key=lambda one: (one.time // pane, one.number))
            texts = "+".join([one.text for one in ordered])
            fired.append((due[0], end, key, f"{texts}@{end - size}-{end}"))
    found.lines = [_line(key, end, text) for _, end, key, text in sorted(fired)]
    return found


def _sessions(window: WindowSpec, messages: list[_Message], watermarks: list[float]) -> Expected:
    """Keep a list of all open sessions, each as the groups of messages that it was made from."""
    gap, delay = window.size, window.delay
    found = Expected()
    open_ones: list[list[_Message]] = []
    by_number = {one.number: one for one in messages}
    for number, watermark in enumerate(watermarks):
        due = [one for one in open_ones if _end(one, gap) + delay <= watermark]
        open_ones = [one for one in open_ones if one not in due]
        for session in sorted(due, key=lambda one: (_end(one, gap), one[0].key)):
            start, end = min(one.time for one in session), _end(session, gap)
            texts = "+".join([one.text for one in session])
            found.lines.append(_line(session[0].key, end, f"{texts}@{start}-{end}"))
        new = by_number.get(number)
        if new is None:
            continue
        met = [one for one in open_ones if one[0].key == new.key and _overlap(one, new, gap)]
        if not met and new.time + gap + delay <= watermark:
            found.late += 1
            continue
        open_ones = [one for one in open_ones if one not in met]
        # On a tie the older session comes first, and sorting keeps that order.
        parts = sorted([*met, [new]], key=lambda one: min(each.time for each in one))
        open_ones.append([message for part in parts for message in part])
    return found


def _end(session: list[_Message], gap: int) -> int:
    return max(one.time for one in session) + gap


def _overlap(session: list[_Message], new: _Message, gap: int) -> bool:
    return min(one.time for one in session) < new.time + gap and new.time < _end(session, gap)


def _counted(window: WindowSpec, messages: list[_Message], log: list[Record]) -> Expected:
    found = Expected()
    by_number = {one.number: one for one in messages}
    open_ones: dict[str, list[_Message]] = {}
    now = 0
    for number, record in enumerate(log):
        now = max(now, record.at)
        timeout = math.inf if window.timeout is None else window.timeout
        due = [key for key, members in open_ones.items() if members[0].at + timeout <= now]
        ordered = sorted(due, key=lambda key: (max(one.time for one in open_ones[key]), key))
        for key in ordered:
            found.lines.append(_count_line(open_ones.pop(key)))
        new = by_number.get(number)
        if new is not None:
            members = open_ones.setdefault(new.key, [])
            members.append(new)
            if len(members) == window.size:
                found.lines.append(_count_line(open_ones.pop(new.key)))
    return found


def _count_line(members: list[_Message]) -> bytes:
    start, end = min(one.time for one in members), max(one.time for one in members) + 1
    texts = "+".join([one.text for one in members])
    return _line(members[0].key, end, f"{texts}@{start}-{end}")


def _remembered(case: ConformanceCase, messages: list[_Message]) -> Expected:
    """Return what `remember` has seen of a key since the last pause of `expire_after`."""
    found = Expected()
    [step] = case.stateful()
    expire_after = case.partitions[step.partition].expire_after
    expire = math.inf if expire_after is None else expire_after
    frames = [(at, record) for at, record in _times(case) if isinstance(record, Frame)]
    for index, one in enumerate(messages):
        seen = [one.text]
        later = one.at
        for before in reversed(messages[:index]):
            if before.key == one.key:
                if later - before.at >= expire:
                    break
                seen.insert(0, before.text)
                later = before.at
        if len(seen) % 2:
            letter, time, _ = frames[index][1].payload.decode().split(" ")
            found.lines.append(_line(letter, int(time), "+".join(seen)))
    return found
