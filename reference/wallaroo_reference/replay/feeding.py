"""A recorded input log, record by record, into a machine."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

from wallaroo.errors import WallarooError
from wallaroo.records import Frame, Record, Value
from wallaroo.topology import Application
from wallaroo.transport.blocks import Kind
from wallaroo.transport.generators import decoded
from wallaroo.transport.log_records import Run
from wallaroo.transport.recording import RecordedLog
from wallaroo_reference.machine import Machine

_PICKLE = b"\x80"  # what the reference engine logs of a value: its pickle alone, which begins so


def feed(
    application: Application, log: RecordedLog, machine: Machine, *, until: int, at_once: int = 1
) -> Iterator[int]:
    """Feed a machine with a log; yield the number of the next record after each step.

    Args:
        application: what the machine runs.
        log: the log.
        machine: the machine; whoever asks for steps takes its outputs and dead letters.
        until: the number of the first record that is left out.
        at_once: most frames of a step.

    Raises:
        WallarooError: the application has no source of that name, or a value cannot be read.
    """
    sources = application.sources
    for run in log.runs(until):
        if run.source and run.source not in sources:
            raise _no_source(application, run)
        if run.kind is not Kind.FRAME:
            for number, record in enumerate(run.records(), run.first):
                machine.take(_decoded(record, number))
                yield number + 1
                if machine.ended is not None:
                    return
            continue
        for start in range(0, len(run.payloads), at_once):
            some: Sequence[bytes] = run.payloads[start : start + at_once]
            machine.feed(run.source, some, run.at)
            yield run.first + start + len(some)
            if machine.ended is not None:
                return


class Unportable:
    """What stands for a generator's value that could not be pickled when it was logged.

    Args:
        why: what hindered it.
    """

    def __init__(self, why: str) -> None:
        self.why = why

    def __reduce__(self) -> NoReturn:
        raise TypeError(self.why)


def _decoded(record: Record, number: int) -> Any:
    """Return a record of the log with its value as the generator made it."""
    assert not isinstance(record, Frame)
    if not isinstance(record, Value):
        return record
    data: bytes = record.value
    blob, hindered = (data, None) if data.startswith(_PICKLE) else decoded(data)
    if hindered is not None:
        return Value(record.source, Unportable(hindered), record.at)
    try:
        value = pickle.loads(blob)  # noqa: S301 - from a directory that only its owner can write
    except Exception as error:
        raise WallarooError(
            f"record {number}: the value of generator {record.source} cannot be read by this code: "
            f"{type(error).__name__}: {error}. Put back what was moved, renamed or removed"
        ) from error
    return Value(record.source, value, record.at)


def _no_source(application: Application, run: Run) -> WallarooError:
    known = ", ".join(map(repr, application.sources))
    return WallarooError(
        f"record {run.first} is of source {run.source!r}, and application {application.name!r} has "
        f"{known} only. Run the application that was recorded, or one whose sources have its names"
    )
