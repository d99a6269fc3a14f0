"""A recorded input log, record by record, into a machine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from wallaroo.config import GenSourceConfig
from wallaroo.errors import WallarooError
from wallaroo.records import Frame, Value
from wallaroo.topology import Application
from wallaroo.trace import Ended
from wallaroo.transport.generators import from_log
from wallaroo.transport.log_format import Kind, Run
from wallaroo.transport.recording import RecordedLog
from wallaroo_reference.machine import Machine
from wallaroo_reference.serving.feeder import MOST_OF_A_MESSAGE


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
        KeyboardInterrupt: Ctrl-C came while user code ran.
    """
    machine.meter.most = MOST_OF_A_MESSAGE  # as in a live run
    sources = application.sources
    for run in log.runs(until):
        if run.source and run.source not in sources:
            raise _no_source(application, run)
        generated = run.source and isinstance(sources[run.source].config, GenSourceConfig)
        if run.kind is Kind.VALUE and not generated:
            raise WallarooError(  # it is pickled, and only a generator's may run code here
                f"record {run.first} is a generator's value, and source {run.source!r} is no "
                f"generator in application {application.name!r}. Run the application that was "
                "recorded; if this is it, the recording is damaged or was changed"
            )
        if run.kind is not Kind.FRAME:
            for number, record in enumerate(run.records(), run.first):
                assert not isinstance(record, Frame)
                machine.take(from_log(record) if isinstance(record, Value) else record)
                yield number + 1
                if machine.ended is not None:
                    _let_ctrl_c_through(machine.ended)
                    return
            continue
        for start in range(0, len(run.payloads), at_once):
            some: Sequence[bytes] = run.payloads[start : start + at_once]
            machine.feed(run.source, some, run.at)
            yield run.first + start + len(some)
            if machine.ended is not None:
                _let_ctrl_c_through(machine.ended)
                return


def _let_ctrl_c_through(ended: Ended) -> None:
    """Raise `KeyboardInterrupt` if it came while user code ran, which ended the run (dead-3)."""
    if ended.error_type == KeyboardInterrupt.__name__:
        raise KeyboardInterrupt(f"in {ended.where}")


def _no_source(application: Application, run: Run) -> WallarooError:
    names = ", ".join(map(repr, application.sources))
    return WallarooError(
        f"record {run.first} is of source {run.source!r}, and application {application.name!r} has "
        f"{names} only. Run the application that was recorded, or one whose sources have its names"
    )
