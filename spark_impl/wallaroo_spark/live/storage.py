"""What a live run keeps on the disk, opened before anything else: checkpoint, recording, log."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from wallaroo.kafka import KafkaSourceConfig
from wallaroo.topology import Application
from wallaroo.transport.changed_topology import (
    Accepted,
    accept_topology,
    held_edges,
    positions_of,
)
from wallaroo.transport.checkpoint import INPUT
from wallaroo.transport.identity import CheckpointError
from wallaroo.transport.input_log import InputLog
from wallaroo.transport.log_directory import Admit, LogEnds, read
from wallaroo.transport.logged import LoggedSource, at_the_end_of
from wallaroo.transport.old_states import FreshStates
from wallaroo.transport.private import make_private
from wallaroo.transport.recording import Recording
from wallaroo.transport.stamps import Stamp
from wallaroo_spark.jvm.pickling import states_of_main
from wallaroo_spark.jvm.temporary import temporary_parent
from wallaroo_spark.live.checkpoint import ENGINE, RESUME, STAMP, Checkpoint
from wallaroo_spark.live.layout import LAYOUT, read_layout, write_layout
from wallaroo_spark.live.new_part import write_part
from wallaroo_spark.live.offset_log import Log
from wallaroo_spark.live.options import SparkOptions
from wallaroo_spark.live.remote import Remote
from wallaroo_spark.live.resume import (
    Resume,
    ResumeFile,
    read_resume,
    resume_of,
    write_resume,
)
from wallaroo_spark.live.spark_part import settle, url_of
from wallaroo_spark.live.stamped import write_stamped
from wallaroo_spark.live.stored import StoredOnSpark

_log = logging.getLogger("wallaroo.spark")


class Storage(NamedTuple):
    """What a run keeps on the disk.

    Args:
        checkpoint: the checkpoint.
        log: the input log.
        resume: what a restart must know; `None`: there is none, or it needs nothing.
        logged: what the log says about sources.
    """

    checkpoint: Checkpoint
    log: Log
    resume: ResumeFile | None
    logged: Mapping[str, LoggedSource]


def check_place(directory: Path, application: Application) -> None:
    """Refuse a user's checkpoint that would be removed; warn of one that others cannot read.

    Raises:
        CheckpointError: it is in a run's temporary directory.
    """
    if parent := temporary_parent(directory):
        raise CheckpointError(
            f"the checkpoint {directory} is in {parent}, the temporary directory of a run, "
            "which is removed when nobody uses it. Move it elsewhere, and name its new place"
        )
    for partition, builder in states_of_main(application):
        _log.warning(
            "state partition %r: its builder, %s, is defined in the main program, so a later "
            "run can read the checkpoint only if its main program defines the states alike; to "
            "be safe put them into a module, and import them from it",
            partition,
            builder,
        )


@contextlib.contextmanager
def opened(
    directory: Path,
    application: Application,
    options: SparkOptions,
    partitions: int | None,
    remote: Remote | None = None,
) -> Iterator[Storage]:
    """Open what a run keeps, and close it at the end.

    Args:
        directory: the checkpoint's.
        application: what is run.
        options: the run's.
        partitions: number of partitions that was asked for; `None`: see `Checkpoint`.
        remote: the checkpoint is at this URL.

    Raises:
        CheckpointError: the checkpoint cannot be used.
        InputLogError: the input log cannot be used.
    """
    with contextlib.ExitStack() as up:
        checkpoint = up.enter_context(
            contextlib.closing(
                Checkpoint(
                    directory,
                    application,
                    partitions=partitions,
                    default_partitions=options.default_partitions,
                    offsets_only=_reads_topics_only(application) and options.record is None,
                    remote=remote,
                )
            )
        )
        stored = StoredOnSpark(directory)
        changed = not checkpoint.identity.has_topology_of(application)
        if changed:
            checkpoint.refuse_at_url("the application's topology has changed since")
            _accept_topology(checkpoint, application, stored, options.accepted)
        _refuse_old_states(checkpoint, application, stored, accepted=options.accepted.old_states)
        place, kept = checkpoint.input_log, None
        if options.record is not None:
            kept = options.record / INPUT
            if options.checkpoint is None:
                place = kept  # the temporary directory may be on another file system

        def admit(log: LogEnds) -> Stamp:
            checkpoint.check_input(log)
            if options.record is not None:
                recording = Recording(
                    options.record,
                    checkpoint.identity,
                    application,
                    checkpoint=None if options.checkpoint is None else directory,
                    accepted=options.accepted,
                )
                up.callback(recording.close)
            if changed:
                _change_topology(checkpoint, application, stored)
            return checkpoint.begin_run()

        log = _opened_log(checkpoint, place, kept, options, admit)
        up.callback(log.close)
        if isinstance(log, InputLog):
            log.sources = frozenset(application.sources)
        checkpoint.begin()
        last = resume_of(checkpoint, application)
        if last is None:
            yield Storage(checkpoint, log, None, {})
            return
        logged = at_the_end_of(log, last.sequence, last.sources, options.skip_record)
        for source in logged.values():
            source.value()  # refused now, if it cannot be read back
        resume = None
        if options.checkpoint is not None:  # else nobody goes on from here
            resume = ResumeFile(checkpoint.resume, last, checkpoint.born)
        yield Storage(checkpoint, log, resume, logged)


def _opened_log(
    checkpoint: Checkpoint, place: Path, kept: Path | None, options: SparkOptions, admit: Admit
) -> Log:
    """Open the log of a run: the input log, or Spark's own log where that has all there is."""
    if not checkpoint.offsets_only:
        return InputLog.open(place, options.log_bytes, recording=kept, admit=admit)
    log = checkpoint.offset_log(outlives=options.checkpoint is not None)
    admit(LogEnds(log.first_sequence, log.next_sequence))
    return log


def _reads_topics_only(application: Application) -> bool:
    sources = application.sources.values()
    return all(isinstance(source.config, KafkaSourceConfig) for source in sources)


def _accept_topology(
    checkpoint: Checkpoint, application: Application, stored: StoredOnSpark, accepted: Accepted
) -> None:
    """Log what is kept, new and dropped, and refuse it unless the user has accepted it.

    Raises:
        CheckpointError: the user has not.
    """
    resume, directory = read_resume(checkpoint.resume) or Resume(), checkpoint.directory
    edges = held_edges(
        checkpoint.identity,
        checkpoint.input_log,
        checkpoint.position,
        {},
        positions_of(resume.sources),
    )
    held = [*stored.state().held, *edges]
    accept_topology(directory, checkpoint.identity, application, held, accepted)


def _change_topology(
    checkpoint: Checkpoint, application: Application, stored: StoredOnSpark
) -> None:
    """Make the checkpoint one of an application with another topology.

    Spark's stateful operators, and the ids under which they hold values, follow from the
    application's plan. Where that has changed, Spark's part is written anew.

    Raises:
        WallarooError: it cannot be written.
    """
    checkpoint.refuse_unfinished()
    stamp, state = checkpoint.born, stored.state()
    resume = read_resume(checkpoint.resume) or Resume(checkpoint.position)
    with checkpoint.replaced() as new:
        # A tick at once lets each window step say when it is due.
        due = 0 if application.window_steps and checkpoint.position else None
        sources = {name: one for name, one in resume.sources.items() if name in application.sources}
        write_resume(new / RESUME, replace(resume, due=due, sources=sources), stamp)
        write_layout(new / LAYOUT, checkpoint.layout, stamp)
        before = read_layout(checkpoint.directory / LAYOUT) if checkpoint.position else None
        if before is None or not before.stores_as(checkpoint.layout):
            make_private(new / ENGINE)
            if before is not None:
                files, _ = read(checkpoint.input_log)
                if not state.now and files:
                    state = replace(state, now=files[-1].latest_at)
                write_part(
                    new / ENGINE,
                    state,
                    checkpoint.layout,
                    checkpoint.partitions,
                    coded=checkpoint.identity.coded,
                )
                settle(new / ENGINE, url_of(checkpoint.spark))
            write_stamped(new / ENGINE / STAMP, stamp, None)


def _refuse_old_states(
    checkpoint: Checkpoint, application: Application, stored: StoredOnSpark, *, accepted: bool
) -> None:
    """Refuse states, and accumulators, that this application would build otherwise.

    They are in files that only Spark can read. So they are read only if the application builds them
    otherwise than the run that wrote the layout.

    Raises:
        CheckpointError: there are some, and the user has not accepted them.
    """
    try:
        before = read_layout(checkpoint.directory / LAYOUT).fresh
    except CheckpointError:  # it is damaged, or missing: a run died at its start
        before = {}
    if before == checkpoint.layout.fresh or checkpoint.position == 0:
        return
    if accepted:  # the next run is to be asked again, so the file goes on saying what was
        checkpoint.layout = replace(checkpoint.layout, fresh=before)
        return
    checkpoint.refuse_at_url(
        "the application builds its states otherwise than the last run, which --accept-old-states "
        "accepts"
    )
    FreshStates(application).refuse_old(checkpoint.directory, stored.state().places.items())
