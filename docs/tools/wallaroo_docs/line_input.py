"""Input as lines of text, as a reader types it: each line is a message.

Two kinds of line are commands instead: ``> wait 10 s`` lets time pass, ``> end`` ends all sources.
If the application has several sources, a line begins with the name of one: ``orders: 5 apples``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TypeAlias

import wallaroo
from wallaroo.config import GenSourceConfig
from wallaroo.errors import WallarooParameterError
from wallaroo.testing import Session
from wallaroo.topology import Application


@dataclass(frozen=True)
class Send:
    """A message's payload comes from a source."""

    source: str
    payload: bytes


@dataclass(frozen=True)
class Wait:
    """Time passes, in nanoseconds."""

    time: int


@dataclass(frozen=True)
class Generate:
    """A generator source gives all that it gives."""

    source: str


@dataclass(frozen=True)
class EndAll:
    """All sources end."""


Event: TypeAlias = Send | Wait | Generate | EndAll

_UNITS = {
    "ms": wallaroo.milliseconds,
    "s": wallaroo.seconds,
    "min": wallaroo.minutes,
    "h": wallaroo.hours,
    "d": wallaroo.days,
}
_COMMAND = re.compile(r"> *(?:(?P<end>end)|wait +(?P<count>[0-9.]+) *(?P<unit>ms|s|min|h|d)) *")


def events(application: Application, text: str) -> list[Event]:
    """Return the events for the application, in order; generators give their values at the end.

    Raises:
        WallarooParameterError: a line has no meaning.
    """
    found: list[Event] = []
    for number, line in enumerate(text.removesuffix("\n").split("\n") if text else [], 1):
        if not line.startswith(">"):
            found.append(_message(application, line, number))
            continue
        command = _COMMAND.fullmatch(line)
        if command is None:
            raise WallarooParameterError(
                f"line {number} of the input, {line!r}: after > comes a command. "
                "Write: > wait 10 s (ms, s, min, h, d) or: > end"
            )
        if command["end"]:
            found.append(EndAll())
        else:
            found.append(Wait(_UNITS[command["unit"]](float(command["count"]))))
    if not any(isinstance(event, EndAll) for event in found):
        generators = [
            Generate(name)
            for name, source in application.sources.items()
            if isinstance(source.config, GenSourceConfig)
        ]
        found += [*generators, EndAll()]
    return found


def play(session: Session, event: Event) -> None:
    """Apply one event."""
    match event:
        case Send(source, payload):
            session.send(source, payload)
        case Wait(time):
            session.advance(time)
        case Generate(source):
            session.generate(source)
        case EndAll():
            session.end()


def payloads_of(happened: list[Event]) -> list[tuple[str, bytes | tuple[int, bytes]]]:
    """Return what is sent as `wallaroo.testing.run` takes it; with times, if any passes."""
    sent: list[tuple[str, bytes | tuple[int, bytes]]] = []
    timed = any(isinstance(event, Wait) for event in happened)
    now = 0
    for event in happened:
        if isinstance(event, Wait):
            now += event.time
        elif isinstance(event, Send):
            sent.append((event.source, (now, event.payload) if timed else event.payload))
    return sent


def _message(application: Application, line: str, number: int) -> Send:
    sources = [
        name
        for name, source in application.sources.items()
        if not isinstance(source.config, GenSourceConfig)
    ]
    if len(sources) == 1:
        return Send(sources[0], line.encode())
    name, colon, rest = line.partition(":")
    if not colon or name not in sources:
        written = " or ".join(f"{source}: {line or 'a message'}" for source in sources)
        raise WallarooParameterError(
            f"line {number} of the input, {line!r}: the application has {len(sources)} sources "
            f"that take messages. Write: {written or '> end'}"
        )
    return Send(name, rest.removeprefix(" ").encode())
