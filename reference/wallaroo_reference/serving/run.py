"""The parts of a live run.

A frame meets them in this order, and each holds the next one::

    edges → inlet → (journal →) feeder → machine; its outputs: feeder → (outbox →) edges

What is in brackets is there with an input log. Beside them, checkpoints store the state, and make
room in the log.

Each part is made of finished ones. Two pairs need each other: the edges give frames to the inlet,
which ends them; and a failure that any part finds ends the run. So the inlet begins when all parts
are there, before anything is received.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from wallaroo.engine import ServeOptions
from wallaroo.metrics.silence import Silence
from wallaroo.topology import Application
from wallaroo.transport.checkpoint import say_where_it_begins
from wallaroo.transport.edges import Edges
from wallaroo.transport.input_log import FILES
from wallaroo.transport.kafka.edges import KafkaEdges
from wallaroo.transport.listener import Address
from wallaroo.transport.skipping import refuse_unskippable
from wallaroo.transport.stop_clock import StopClock
from wallaroo.transport.threads import LoopThread
from wallaroo_reference.checkpoints.on_disk import Left, OnDisk, RecordedRun
from wallaroo_reference.checkpoints.recovery import Recovery
from wallaroo_reference.compiled.measured import MeasuredCompiled
from wallaroo_reference.isolated.measured import MeasuredInterpreter
from wallaroo_reference.machine import Machine
from wallaroo_reference.options import CheckpointOptions
from wallaroo_reference.serving.durable import Durable
from wallaroo_reference.serving.feeder import Feeder, Intake
from wallaroo_reference.serving.inlet import Inlet
from wallaroo_reference.serving.outbox import Outbox
from wallaroo_reference.serving.watch import Watch


@dataclass(frozen=True)
class LiveRun:
    """The parts of a live run.

    Args:
        inlet: the engine's part between the edges.
        kafka: sources and sinks of Kafka.
        edges: sources, sinks and dead letters.
        durable: what outlives the run; `None`: nothing does.
        intake: gets from the inlet what was received: the journal or the feeder.
        feeder: feeds the machine.
        machine: processes records.
        stop: when the run has to stop.
        silence: finds partitions that get nothing.
    """

    inlet: Inlet
    kafka: KafkaEdges
    edges: Edges
    durable: Durable | None
    intake: Intake
    feeder: Feeder
    machine: Machine
    stop: StopClock
    silence: Silence


def opened_run(
    application: Application,
    machine: Machine,
    options: ServeOptions,
    asked: CheckpointOptions,
    addresses: Mapping[str, Address] | None,
    clock: Callable[[], int],
    loop: LoopThread,
) -> LiveRun:
    """Open all parts of a run; nothing is received before `Edges.open`.

    Args:
        application: what is run.
        machine: a machine for it, without state.
        options: of every engine.
        asked: whether state and input outlive the process.
        addresses: those to listen on, after a restart.
        clock: returns the time, in nanoseconds since 1970.
        loop: the thread; not yet started.

    Raises:
        WallarooError: see `wallaroo_reference.serving.server.Server`.
    """
    timed = application.time_decides
    with contextlib.ExitStack() as up:
        on_disk = _on_disk(application, asked, options.partitions)
        if on_disk is not None:
            up.callback(on_disk.close)
        left = Left()
        if isinstance(on_disk, Recovery):
            _restore(on_disk, machine, asked)
            left = on_disk.left()
        arrival = clock if on_disk is not None or timed else (lambda: 0)
        inlet = Inlet(application, arrival, lasts=asked.checkpoint is not None)
        kafka = KafkaEdges(
            application,
            left.logged_in_all,
            inlet,
            loop.post,
            accept_gaps=asked.accept_gaps,
            measured=options.metrics is not None,
            going_on=lambda: inlet.stop.requested_for() <= options.stop_timeout,
            again=left.first_offsets,
        )
        with options.interruptible():
            kafka.prepare(
                left.outputs,
                interval=asked.transaction,
                accept_repeats=asked.accept_repeats,
                on_room=inlet.sinks_have_room,
                failed=inlet.fail,
            )
        machine.topics.update(kafka.partitions)
        edges = Edges(
            *(application, options, loop, inlet, addresses, clock),
            of_kafka=kafka.sources,
            to_kafka=kafka.sinks,
            streams=left.streams,
            logged=left.logged_in_all,
        )
        if isinstance(on_disk, Recovery):
            edges.dead_letters.run = on_disk.checkpoint.born.checkpoint
        up.pop_all()  # all is open: it is closed with the parts that have it
    outbox = None if on_disk is None else Outbox(edges, machine, on_disk.log, inlet.outputs_broken)
    watch = None
    if isinstance(machine, (MeasuredCompiled, MeasuredInterpreter)):
        watch = Watch(machine, edges, None if outbox is None else outbox.made)
    feeder = Feeder(
        *(machine, edges, outbox),
        failed=inlet.fail,
        clock=clock,
        ticks=timed and not application.time_stands_still,
        topics=kafka.topics,
        ticked=inlet.receive_records,
        logged=left.logged,
        restartable=isinstance(on_disk, Recovery),
        watch=watch,
    )
    durable = None
    if on_disk is not None and outbox is not None:
        durable = Durable(
            *(on_disk, machine, feeder, outbox, edges, kafka, loop.post),
            interval=asked.checkpoint_interval,
            clock=clock,
            failed=inlet.fail,
        )
    intake: Intake = feeder if durable is None else durable.journal
    stop = StopClock(options, loop, edges, lambda: machine.sequence, lambda: intake.unprocessed)
    inlet.begin(edges, intake, feeder, stop)
    if (metrics := options.metrics) is not None:
        metrics.before_tick(lambda: kafka.copy_figures(metrics))
        if durable is not None:
            metrics.before_tick(lambda: durable.copy_figures(metrics))
    silence = Silence(application, machine.moment, lambda: machine.open_windows, options.metrics)
    return LiveRun(inlet, kafka, edges, durable, intake, feeder, machine, stop, silence)


def _on_disk(
    application: Application, asked: CheckpointOptions, partitions: int | None
) -> OnDisk | None:
    """Return the checkpoint, or the recording of a run without one; `None`: neither is wanted."""
    if asked.checkpoint is not None:
        return Recovery(
            asked.checkpoint,
            application,
            partitions=partitions,
            log_bytes=asked.log_bytes,
            record=asked.record,
            accepted=asked.accepted,
            skip=asked.skip_record,
        )
    if asked.record is not None:
        return RecordedRun(
            asked.record,
            application,
            partitions=partitions or 1,
            file_bytes=max(1, asked.log_bytes // FILES),
        )
    return None


def _restore(recovery: Recovery, machine: Machine, asked: CheckpointOptions) -> None:
    recovery.restore(machine)
    refuse_unskippable(recovery.log, recovery.position, asked.skip_record)
    assert asked.checkpoint is not None
    say_where_it_begins(asked.checkpoint, recovery.log.next_sequence)
