"""Records that a restart leaves out: ``--skip-record N`` makes dead letters of them.

A message that ends the run ends every restart from the checkpoint too, since it is in the input
log. So its payload is marked as it is read from there, or from the topic that the log names. What
is marked is not decoded, but becomes a dead letter, with its payload.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import replace
from typing import Any, Protocol

from wallaroo.errors import UsageError
from wallaroo.kafka_records import KafkaRecord, KafkaRun
from wallaroo.records import Consumed
from wallaroo.topology import Application
from wallaroo.trace import Lineage
from wallaroo.transport.input_log import LoggedRun, RecordKind
from wallaroo.user_code.calls import CallSite, instrument

MESSAGES = (RecordKind.FRAME, RecordKind.VALUE, RecordKind.OFFSETS, RecordKind.CONSUMED)
"""The kinds of records that hold messages."""


class SkippedRecordError(Exception):
    """The record is left out, as the user wants."""


class SkippedPayload(bytes):
    """A frame's payload, a generator's value as it is logged, a record's value: it is left out.

    Attributes:
        why: the text of the dead letter.
    """

    why: str

    def __new__(cls, payload: bytes, number: int) -> SkippedPayload:
        """Mark the payload of the record of this number."""
        made = super().__new__(cls, payload)
        made.why = f"it is left out, as --skip-record {number} says"
        return made


class _SkippedMessage:
    """A record as Kafka's client gives it, whose value is marked."""

    def __init__(self, message: Any, number: int) -> None:
        self._message = message
        self._value = SkippedPayload(message.value() or b"", number)

    def value(self) -> bytes:
        return self._value

    def __getattr__(self, name: str) -> Any:
        return getattr(self._message, name)


class Readable(Protocol):
    """A log: numbers of its first record and of the next one, and what is between."""

    @property
    def first_sequence(self) -> int:
        """Number of its first record."""

    @property
    def next_sequence(self) -> int:
        """Number of the next record."""

    def end_within(
        self, from_sequence: int, *, max_bytes: int, max_records: int | None = None
    ) -> int:
        """Return where a part of this size ends that begins there."""

    def runs(self, from_sequence: int, to_sequence: int) -> list[LoggedRun]:
        """Return records in runs."""


def refuse_unskippable(log: Readable, position: int, numbers: Collection[int]) -> None:
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
            (run,) = log.runs(number, number + 1)
            if run.kind not in MESSAGES:
                raise UsageError(
                    f"--skip-record {number}: this record is no message, but of the kind "
                    f"{run.kind.name.lower()}"
                )


def skipped(runs: Iterable[LoggedRun], numbers: Collection[int]) -> Iterator[LoggedRun]:
    """Yield runs of a log, in which the records of these numbers stand alone and are marked."""
    wanted = sorted({*numbers})
    for run in runs:
        start = run.first
        end = start + len(run.payloads)
        here = [number for number in wanted if start <= number < end]
        for number in here if run.kind in (RecordKind.FRAME, RecordKind.VALUE) else ():
            if number > start:
                yield run.part(start, number)
            alone = run.part(number, number + 1)
            yield alone._replace(payloads=[SkippedPayload(alone.payloads[0], number)])
            start = number + 1
        if start < end:
            yield run.part(start, end)


def skipped_consumed(run: LoggedRun, numbers: Collection[int]) -> list[KafkaRecord]:
    """Return the records of a topic that a run of a log holds whole.

    Args:
        run: the run, of the kind `RecordKind.CONSUMED`.
        numbers: the records that are left out; they are marked.
    """
    records = [one.record for one in run.records() if isinstance(one, Consumed)]
    return [
        replace(one, value=SkippedPayload(one.value or b"", number)) if number in numbers else one
        for number, one in enumerate(records, run.first)
    ]


def skipped_of_topic(first: int, run: KafkaRun, numbers: Collection[int]) -> KafkaRun:
    """Return what was read of a partition, in which the records of these numbers are marked.

    Args:
        first: the number of the first offset.
        run: what was read.
        numbers: the records that are left out.
    """
    here = {number - first + run.first: number for number in numbers}
    if not any(run.first <= offset <= run.last for offset in here):
        return run
    messages = [
        _SkippedMessage(message, here[message.offset()]) if message.offset() in here else message
        for message in run.messages
    ]
    return run._replace(messages=messages)


def skipping(application: Application) -> Application:
    """Return the application with decoders that refuse what is marked."""

    def around(site: CallSite, call: Callable[..., Any]) -> Callable[..., Any]:
        if site.method != "decode":
            return call

        def decode(payload: bytes | KafkaRecord) -> Any:
            value = payload.value if isinstance(payload, KafkaRecord) else payload
            if type(value) is SkippedPayload:
                raise SkippedRecordError(value.why)
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
