"""What must hold: said of what peers and the disk have in the end, not of the engine's inside."""

from __future__ import annotations

import base64
import contextlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

from simulation.peers import Receiver
from simulation.world import Broken
from wallaroo.topology import SinkId


class Sent(Protocol):
    """What somebody has sent."""

    @property
    def payloads(self) -> Sequence[bytes]:
        """In order."""

    @property
    def told(self) -> int | None:
        """How many of them are safe, as the sender has been told; `None`: it has not."""


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


def check_all(
    numbered: Sequence[str],
    windows: Sequence[str],
    of_each: int,
    letters: bytes,
    senders: Sequence[Sent],
    promised: Sequence[str] = (),
) -> None:
    """Check what there is in the end of a run with a checkpoint (recover-1, frame-4, frame-5).

    Args:
        numbered: the outputs of the pipelines that number their messages.
        windows: those of windows.
        of_each: how many windows a message is in.
        letters: the dead-letter file.
        senders: what was sent, and what the senders were told.
        promised: ``CONNECTION.FRAME`` of what had arrived before a stop that ended in order.

    Raises:
        Broken: a message was lost or doubled.
    """
    taken = _numbered(numbered)
    fired = Counter([one for line in windows for one in line.split()[2:]])
    if wrong := sorted([one for one, count in fired.items() if count != of_each]):
        raise Broken(f"recover-1: {wrong} were not in {of_each} windows")
    taken += fired
    dead = failed(letters)
    doubled = sorted([one for one, count in Counter([*taken, *dead]).items() if count > 1])
    if doubled:
        raise Broken(f"recover-1: {doubled} had their effect more than once")
    there = {*taken, *dead}
    if missing := sorted(set(promised) - there):
        raise Broken(f"stop-1: {missing} had arrived before a stop with exit 0 and are lost")
    for sender in senders:
        ids = [payload.decode().split()[0] for payload in sender.payloads]
        fates = [one in there for one in ids]
        count = sum(fates)
        if not all(fates[:count]):
            raise Broken(f"frame-5: of {ids} only {sorted(there.intersection(ids))} were processed")
        if sender.told is not None and count < sender.told:
            raise Broken(
                f"recover-1: a sender was told that {ids[: sender.told]} are safe; "
                f"{ids[count:]} are lost"
            )


def _numbered(lines: Sequence[str]) -> list[str]:
    """Check the numbers that the state gave, and return the messages in their order."""
    by_number = sorted([(int(line.split()[0]), line.split()) for line in lines])
    numbers = [number for number, _ in by_number]
    if numbers != list(range(1, len(numbers) + 1)):
        raise Broken(f"recover-1: the messages are numbered {numbers}")
    counts: Counter[str] = Counter()
    following: dict[str, int] = {}
    for _, words in by_number:
        key, count = words[2], int(words[-1])
        counts[key] += 1
        if counts[key] != count:
            raise Broken(f"recover-1: key {key} was counted {count} times, not {counts[key]}")
        connection, _, frame = words[1].partition(".")
        if int(frame) < following.get(connection, 0):
            raise Broken(f"frame-5: {words[1]} was processed after one that was sent later")
        following[connection] = int(frame)
    return [words[1] for _, words in by_number]


def failed(letters: bytes) -> list[str]:
    """Return the messages in the dead-letter file, each once."""
    payloads = [base64.b64decode(letter["payload"]) for letter in whole_letters(letters)]
    return list(dict.fromkeys([payload.split()[0].decode() for payload in payloads]))


def whole_letters(letters: bytes) -> Iterator[dict[str, Any]]:
    """Yield the letters in the dead-letter file; what a crash has cut is none."""
    for line in letters.split(b"\n"):
        with contextlib.suppress(ValueError):
            yield json.loads(line)
