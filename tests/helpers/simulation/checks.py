"""What must hold: said of what peers and the disk have in the end, not of the engine's inside."""

from __future__ import annotations

import base64
import contextlib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from simulation.peers import Receiver
from simulation.world import Broken
from wallaroo.topology import SinkId
from wallaroo.trace import Entity, OpenWindow, Trace


def told(connections: Sequence[tuple[bytes, bool]], what: str) -> list[str]:
    """Return the lines that came over several connections, each once, in order (sink-3).

    Args:
        connections: what came over each, and whether it may end inside a line.
        what: for error messages.

    Raises:
        Broken: a line is cut, left out, or repeated where it must not be.
    """
    lines: list[str] = []
    places: dict[str, int] = {}
    for data, cut in connections:
        *whole, rest = data.decode().split("\n")
        if rest and not cut:
            raise Broken(f"sink-3: {what} got half an output, {rest!r}")
        at = places.get(whole[0], len(lines)) if whole else 0
        for line in whole:
            if at == len(lines):
                if line in places:
                    raise Broken(f"recover-2: {what} got {line!r} again, out of order")
                places[line] = at
                lines.append(line)
            elif lines[at] != line:
                raise Broken(f"recover-2: {what} got {line!r}, where {lines[at]!r} was before")
            at += 1
    return lines


def check_order(seen: Sequence[str]) -> None:
    """Check that each connection's messages came in order, each once (frame-5).

    Args:
        seen: ``CONNECTION.FRAME`` of the messages, in the order in which they were processed.

    Raises:
        Broken: they did not.
    """
    following: dict[str, int] = {}
    for one in seen:
        connection, _, frame = one.partition(".")
        if int(frame) != (wanted := following.get(connection, 0)):
            raise Broken(f"frame-5: {one} was processed where {connection}.{wanted} belongs")
        following[connection] = wanted + 1


def check_outputs(
    receivers: Mapping[SinkId, Receiver],
    life: int,
    made: Mapping[str, Sequence[str]],
    *,
    ended: bool,
) -> None:
    """Check what the sinks got of a life that began without state (sink-3).

    Args:
        receivers: by sink.
        life: number of the process.
        made: the outputs that it made, by pipeline.
        ended: it was stopped in order, so everything must be delivered.

    Raises:
        Broken: something else was delivered.
    """
    for sink, receiver in receivers.items():
        connections = [one for one in receiver.connections if one.life == life]
        pieces = [(bytes(one.data), one.cut or not ended) for one in connections]
        lines = told(pieces, f"sink {sink}")
        wanted = list(made.get(sink[0], ()))
        if lines != wanted[: len(lines)] or (ended and len(lines) < len(wanted)):
            raise Broken(f"sink-3: sink {sink} got {lines}, of {wanted}")


def check_dead_letters(text: bytes, wanted: Sequence[str], *, ended: bool) -> None:
    """Check what a life has added to the dead-letter file (dead-1).

    Args:
        text: what it has added.
        wanted: ``CONNECTION.FRAME`` of the messages that became dead letters.
        ended: it was stopped in order.

    Raises:
        Broken: something else was added, or half a line stayed there.
    """
    *lines, rest = text.split(b"\n")
    if rest and ended:
        raise Broken(f"dead-1: the dead-letter file ends in half a line: {rest!r}")
    found = [base64.b64decode(json.loads(one)["payload"]).split()[0].decode() for one in lines]
    if found != list(wanted[: len(found)]) or (ended and len(found) < len(wanted)):
        raise Broken(f"dead-1: the dead-letter file has {found}, of {list(wanted)}")


def check_state(entities: Sequence[Entity], windows: Sequence[OpenWindow], wanted: Trace) -> None:
    """Check what an engine holds (recover-1).

    Raises:
        Broken: a bounded run has something else in the end.
    """
    if entities != wanted.entities:
        raise Broken(f"recover-1: the state entities are {entities}, not {wanted.entities}")
    if windows != wanted.windows:
        raise Broken(f"recover-1: the open windows are {windows}, not {wanted.windows}")


def whole_letters(letters: bytes) -> Iterator[dict[str, Any]]:
    """Yield the letters in the dead-letter file; what a crash has cut is none."""
    for line in letters.split(b"\n"):
        with contextlib.suppress(ValueError):
            yield json.loads(line)
