"""A recorded input log, record by record, into a machine that may begin with stored state."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from wallaroo.config import GenSourceConfig
from wallaroo.errors import WallarooError
from wallaroo.kafka import KafkaSourceConfig
from wallaroo.records import Consumed, Frame, Value
from wallaroo.topology import Application
from wallaroo.trace import Ended
from wallaroo.transport.log_format import LoggedRun, RecordKind
from wallaroo.transport.logged import from_log
from wallaroo.transport.old_states import Place
from wallaroo.transport.recording import RecordedLog
from wallaroo.transport.skipping import skipped, skipped_consumed, skipping
from wallaroo.transport.stored_state import StoredState
from wallaroo_reference.cells import Moment, UnpackError
from wallaroo_reference.checkpoints.head import moment_in, places_in
from wallaroo_reference.checkpoints.stored import cells_in, heads_in
from wallaroo_reference.isolated.interpreter import Interpreter
from wallaroo_reference.isolated.observer import Observer
from wallaroo_reference.machine import Machine
from wallaroo_reference.serving.feeder import MOST_OF_A_MESSAGE


@dataclass(frozen=True)
class Input:
    """What an application is run on.

    Args:
        log: the recorded log.
        start: number of the first record.
        until: number of the first record that is left out.
        state: what the application begins with; `None`: with nothing, at record 0.
        skip: numbers of records that are left out (`wallaroo.transport.skipping`).
    """

    log: RecordedLog
    start: int
    until: int
    state: StoredState | None = None
    skip: Collection[int] = ()

    def interpreter(
        self, application: Application, *, on_error: str, observer: Observer | None = None
    ) -> Interpreter:
        """Return the machine that runs the application, with its state.

        Raises:
            WallarooError: the state cannot be read by the application's code.
        """
        machine = Interpreter(
            skipping(application) if self.skip else application,
            partitions=self.log.identity.partitions,
            on_error=on_error,
            keeps=self.state is not None,
            observer=observer,
        )
        if self.state is not None:
            _restore(machine, self.state, application.sources)
            machine.sequence = self.start
        return machine


def _restore(machine: Interpreter, state: StoredState, sources: Collection[str]) -> None:
    """Put stored state into a fresh machine; what has no place there is left out.

    Args:
        machine: the machine.
        state: the state.
        sources: the names of the machine's sources.

    Raises:
        WallarooError: it cannot be read by this code.
    """
    places = places_in(machine, heads_in(state))
    for part, found in zip(places, cells_in(state), strict=True):
        if part is None:
            continue
        try:
            part.unpack(found)
        except UnpackError as error:
            raise WallarooError(
                f"the stored state cannot be read by this code: "
                f"{Place(part.name, part.shape)}, key {error.key!r:.80}: {error}. "
                "Put back what was moved, renamed or removed, or change the states with wallaroo "
                "checkpoint DIR --migrate"
            ) from error
    was = Moment(state.position, state.now, state.first, state.sources, state.watermarks)
    machine.go_on_from(moment_in(machine, sources, was, places[len(state.partitions) :]))


def feed(
    application: Application, given: Input, machine: Machine, *, at_once: int = 1
) -> Iterator[int]:
    """Feed a machine with a log; yield the number of the next record after each step.

    Args:
        application: what the machine runs.
        given: the log.
        machine: the machine; whoever asks for steps takes its outputs and dead letters.
        at_once: most frames of a step.

    Raises:
        WallarooError: the application has no source of that name, or a value cannot be read.
        KeyboardInterrupt: Ctrl-C came while user code ran.
    """
    machine.meter.most = MOST_OF_A_MESSAGE  # as in a live run
    sources = application.sources
    for run in skipped(given.log.runs(given.start, given.until), given.skip):
        if run.source and run.source not in sources:
            if given.state is None:
                raise _no_source(application, run)
            run = run.as_ticks  # noqa: PLW2901 - as for a run that has accepted another topology
        generated = run.source and isinstance(sources[run.source].config, GenSourceConfig)
        if run.kind is RecordKind.VALUE and not generated:
            raise WallarooError(  # it is pickled, and only a generator's may run code here
                f"record {run.first} is a generator's value, and source {run.source!r} is no "
                f"generator in application {application.name!r}. Run the application that was "
                "recorded; if this is it, the recording is damaged or was changed"
            )
        if run.kind is RecordKind.OFFSETS:
            raise WallarooError(
                f"record {run.first} and those after it stand in the topic of source "
                f"{run.source!r}, and not in this log: record a run with --record (kafka-2)"
            )
        payloads, partition = _contents(application, run, given.skip)
        if payloads is None:
            for number, record in enumerate(run.records(), run.first):
                assert not isinstance(record, (Frame, Consumed))
                machine.take(from_log(record).made if isinstance(record, Value) else record)
                yield number + 1
                if machine.ended is not None:
                    _let_ctrl_c_through(machine.ended)
                    return
            continue
        for start in range(0, len(payloads), at_once):
            some = payloads[start : start + at_once]
            machine.feed(run.source, some, run.at, partition)
            yield run.first + start + len(some)
            if machine.ended is not None:
                _let_ctrl_c_through(machine.ended)
                return


def _contents(
    application: Application, run: LoggedRun, skip: Collection[int]
) -> tuple[Sequence[Any] | None, int | None]:
    """Return what a machine is fed of a run, and the partition; `None`: single records."""
    if run.kind is RecordKind.FRAME:
        return list(run.payloads), None
    if run.kind is not RecordKind.CONSUMED:
        return None, None
    records = skipped_consumed(run, skip)
    config = application.sources[run.source].config
    whole = isinstance(config, KafkaSourceConfig) and config.whole
    return records if whole else [one.value for one in records], records[0].partition


def _let_ctrl_c_through(ended: Ended) -> None:
    """Raise `KeyboardInterrupt` if it came while user code ran, which ended the run (dead-3)."""
    if ended.error_type == KeyboardInterrupt.__name__:
        raise KeyboardInterrupt(f"in {ended.where}")


def _no_source(application: Application, run: LoggedRun) -> WallarooError:
    names = ", ".join(map(repr, application.sources))
    return WallarooError(
        f"record {run.first} is of source {run.source!r}, and application {application.name!r} has "
        f"{names} only. Run the application that was recorded, or one whose sources have its names"
    )
