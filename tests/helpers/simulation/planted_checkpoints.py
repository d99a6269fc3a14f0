"""Faults put into what keeps state and input: checkpoints, journal, outbox, recovery."""

from __future__ import annotations

import itertools
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from wallaroo_reference.checkpoints import store
from wallaroo_reference.checkpoints.collecting import Collector
from wallaroo_reference.checkpoints.head import Head
from wallaroo_reference.checkpoints.recovery import Recovery
from wallaroo_reference.checkpoints.store import Store
from wallaroo_reference.serving.checkpointing import Checkpoints
from wallaroo_reference.serving.journal import Journal
from wallaroo_reference.serving.outbox import Outbox

from simulation.planting import plant, without
from wallaroo.records import Tick
from wallaroo.transport import dead_letters, listener
from wallaroo.transport.dead_letters import DeadLetterFileError, DeadLetters
from wallaroo.transport.input_log import InputLog

SUBJECT = "checkpoint"

without(SUBJECT, "dead letters are not on disk before a checkpoint", (DeadLetters, "sync"))
without(SUBJECT, "the dead-letter file's name is not synced", (dead_letters, "sync_way_to"))
without(SUBJECT, "the state file's name is not synced", (store, "sync_directory"))


@plant(SUBJECT, "a dead letter that cannot be written is forgotten", Outbox, "_write", runs=500)
def _unwritten(right: Any, outbox: Outbox, letters: Any) -> None:
    right(outbox, letters)
    outbox._broken = False


@plant(SUBJECT, "a sync of dead letters that fails is tried again", DeadLetters, "sync", runs=500)
def _tried_again(right: Any, letters: DeadLetters) -> None:
    letters._in_doubt = False
    try:
        right(letters)
    except DeadLetterFileError as error:
        raise OSError(str(error)) from error


@plant(SUBJECT, "outputs leave before their input is on disk", Outbox, "put")
def _too_early(right: Any, outbox: Outbox, size: int, leave: Callable[[], None]) -> None:
    leave()


@plant(SUBJECT, "acknowledged before it is on disk", Journal, "when_sequenced")
def _acknowledged(right: Any, journal: Journal, close: Callable[[], None]) -> None:
    close()


@plant(SUBJECT, "an end by a kill looks orderly", listener, "linger")
def _orderly(right: Any, sock: Any, *, reset: bool) -> None:
    right(sock, reset=False)


@plant(SUBJECT, "the position is one record late", Store, "write")
def _late(right: Any, one: Store, head: Head, blobs: Any) -> None:
    right(one, _moved(head, 1), blobs)


@plant(SUBJECT, "the position is one record early", Store, "write")
def _early(right: Any, one: Store, head: Head, blobs: Any) -> None:
    right(one, _moved(head, -1), blobs)


def _moved(head: Head, by: int) -> Head:
    return replace(head, moment=replace(head.moment, sequence=head.moment.sequence + by))


@plant(SUBJECT, "position before state: they are two transactions", Store, "write", runs=500)
def _in_two(right: Any, one: Store, head: Head, blobs: Any) -> None:
    before = one.head()
    if before is not None:
        right(one, replace(before, moment=head.moment), [])
    right(one, head, blobs)


@plant(SUBJECT, "a checkpoint without one of its changed entities", Collector, "begin")
def _forgotten(right: Any, collector: Collector) -> None:
    for cells in collector._cells:
        if len(cells.changed) > 1:
            cells.changed.pop(next(iter(cells.changed)))
    right(collector)


@plant(SUBJECT, "only the last checkpoint's entities are kept", Collector, "finish")
def _only_last(right: Any, collector: Collector, next_blob: int) -> Any:
    collector.first_blob = next_blob
    return right(collector, next_blob)


@plant(SUBJECT, "open windows are not stored", Collector, "_pack", runs=500)
def _no_windows(right: Any, collector: Collector, place: int, known: Any) -> None:
    if collector._cells[place].kind == "partition":
        right(collector, place, known)


@plant(SUBJECT, "a checkpoint does not wait for its outputs", Outbox, "delivered", runs=500)
def _not_waiting(right: Any, outbox: Outbox, *arguments: Any) -> bool:
    return True


@plant(SUBJECT, "the log is cut before the checkpoint is stored", Checkpoints, "_write", runs=500)
def _cut_first(right: Any, checkpoints: Checkpoints, made: Any) -> int:
    log = checkpoints._recovery.log
    log.sync()
    log.drop_before(made.moment.sequence)
    return right(checkpoints, made)


@plant(
    SUBJECT,
    "the log is cut behind what is on disk, not behind the position",
    InputLog,
    "drop_before",
    runs=500,
)
def _cut_more(right: Any, log: InputLog, sequence: int) -> None:
    right(log, log.durable_sequence)


@plant(SUBJECT, "a log that was not cut before a kill stays full", Checkpoints, "_begin", runs=500)
def _stays_full(right: Any, checkpoints: Checkpoints) -> None:
    if checkpoints._machine.sequence != checkpoints._position or checkpoints._over:
        right(checkpoints)


@plant(SUBJECT, "a checkpoint that fails counts as stored", Store, "write")
def _stored(right: Any, one: Store, head: Head, blobs: Any) -> None:
    try:
        right(one, head, blobs)
    except sqlite3.Error:
        return


@plant(SUBJECT, "SQLite does not sync", store, "_prepare")
def _lazy(right: Any, database: Any) -> None:
    right(database)
    database.execute("PRAGMA synchronous=OFF")


@plant(SUBJECT, "the log is replayed twice", Recovery, "later")
def _twice(right: Any, recovery: Recovery) -> Iterator[Any]:
    return itertools.chain(right(recovery), right(recovery))


@plant(SUBJECT, "the replay leaves out its first record", Recovery, "later")
def _first(right: Any, recovery: Recovery) -> Iterator[Any]:
    return itertools.islice(right(recovery), 1, None)


@plant(SUBJECT, "replayed frames arrive anew", Recovery, "later", runs=500)
def _anew(right: Any, recovery: Recovery) -> Iterator[Any]:
    for entry in right(recovery):
        if isinstance(entry, tuple):
            yield (*entry[:2], entry[2] + 20_000_000)
        else:
            yield replace(entry, at=entry.at + 20_000_000)


@plant(SUBJECT, "frames do not get the log's time", Journal, "receive", runs=500)
def _own_time(right: Any, journal: Journal, source: str, payloads: Any, at: int) -> None:
    receive = journal._feeder.receive
    journal._feeder.receive = lambda source, payloads, _: receive(source, payloads, at)
    right(journal, source, payloads, at)


@plant(SUBJECT, "ticks are not logged", Journal, "receive_records")
def _ticks(right: Any, journal: Journal, records: Sequence[Any]) -> None:
    if all(isinstance(one, Tick) for one in records):
        journal._feeder.receive_records(records)
    else:
        right(journal, records)


@plant(SUBJECT, "what a full disk refuses is forgotten", Journal, "_logged")
def _dropped(right: Any, journal: Journal, entry: Any) -> bool:
    return right(journal, entry) or True


@plant(
    SUBJECT, "what comes later overtakes what a full disk refused", Journal, "_receive", runs=500
)
def _overtakes(right: Any, journal: Journal, entry: Any) -> None:
    if not journal._over and not journal._logged(entry):
        journal._waiting.append(entry)  # and reading goes on
        journal._retry_later()


@plant(SUBJECT, "a sync that fails counts as done", Journal, "_synced", runs=500)
def _failed_sync(right: Any, journal: Journal, result: Any) -> None:
    if isinstance(result, Exception):
        journal._log._broken = None
        result = journal._log._durable = journal._log.next_sequence
    right(journal, result)
