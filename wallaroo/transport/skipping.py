"""Records that a restart leaves out: ``--skip-record N`` makes dead letters of them.

A message that ends the run ends every restart from the checkpoint too, since it is in the input
log. So its payload is marked as it is read from there. What is marked is not decoded, but becomes a
dead letter, with its payload.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any

from wallaroo.errors import UsageError
from wallaroo.records import Frame, Value
from wallaroo.topology import Application
from wallaroo.trace import Lineage
from wallaroo.transport.input_log import InputLog, Kind, Run
from wallaroo.user_code.calls import CallSite, instrument


class SkippedRecordError(Exception):
    """The record is left out, as the user wants."""


class SkippedPayload(bytes):
    """The payload of a frame, or a generator's value as it is logged, that is left out.

    Attributes:
        why: the text of the dead letter.
    """

    why: str


def refuse_unskippable(log: InputLog, position: int, numbers: Collection[int]) -> None:
    """Refuse numbers of records that cannot be left out; those before `position` are done with.

    Args:
        log: the checkpoint's input log.
        position: the number of the first record whose effect is not in the stored state.
        numbers: the records.

    Raises:
        UsageError: there is no such record in the log yet, or it holds no message.
    """
    for number in sorted(numbers):
        if number >= log.next_sequence:
            raise UsageError(
                f"--skip-record {number}: the input log ends before record {log.next_sequence}"
            )
        if number >= max(position, log.first_sequence):
            (record,) = log.read(number, number + 1)
            if not isinstance(record, (Frame, Value)):
                raise UsageError(
                    f"--skip-record {number}: this record is no message, but a "
                    f"{type(record).__name__}"
                )


def skipped(runs: Iterable[Run], numbers: Collection[int]) -> Iterator[Run]:
    """Yield runs of a log, in which the records of these numbers stand alone and are marked."""
    for run in runs:
        start = run.first
        end = start + len(run.payloads)
        here = [number for number in sorted(numbers) if start <= number < end]
        for number in here if run.kind in (Kind.FRAME, Kind.VALUE) else ():
            if number > start:
                yield _part(run, start, number)
            alone = _part(run, number, number + 1)
            payload = SkippedPayload(alone.payloads[0])
            payload.why = f"it is left out, as --skip-record {number} says"
            yield alone._replace(payloads=[payload])
            start = number + 1
        if start < end:
            yield _part(run, start, end)


def _part(run: Run, start: int, end: int) -> Run:
    payloads = run.payloads[start - run.first : end - run.first]
    return run._replace(first=start, payloads=payloads)


def skipping(application: Application) -> Application:
    """Return the application with decoders that refuse what is marked."""

    def around(site: CallSite, call: Callable[..., Any]) -> Callable[..., Any]:
        if site.method != "decode":
            return call

        def decode(payload: bytes) -> Any:
            if type(payload) is SkippedPayload:
                raise SkippedRecordError(payload.why)
            return call(payload)

        return decode

    return instrument(application, around)


def way_past(lineage: Lineage) -> str:
    """Return how a restart gets past the message that has ended a run; empty: there is no way."""
    if len(lineage) > 1 and lineage[1] < 0:  # a window has fired, and does so at a later record too
        return ""
    return (
        f". A restart from the checkpoint meets it again: change the code, or leave this message "
        f"out with --skip-record {lineage[0]}, which makes a dead letter of it"
    )
