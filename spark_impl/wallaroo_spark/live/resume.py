"""What a restart must know and no longer finds in the input log: the file ``resume``.

Workers hold the windows, so after a restart only they know when the next one is due; and no worker
is asked before there is input. A generator continues after its last value, and a source that has
ended stays ended; but records that Spark has committed are deleted from the log. A sink whose peer
remembers goes on with the next byte of its stream (sink-9). So before Spark commits a micro-batch,
this file of the checkpoint is written with what holds at the end of that batch.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from wallaroo.config import GenSourceConfig, TCPSinkConfig
from wallaroo.json_fields import a_number, by_sink
from wallaroo.kafka import KafkaSourceConfig
from wallaroo.topology import Application, SinkId
from wallaroo.transport.logged import LoggedSource, TopicPosition
from wallaroo.transport.resumption import Stream
from wallaroo.transport.stamps import Stamp
from wallaroo_spark.live.checkpoint import Checkpoint
from wallaroo_spark.live.stamped import read_part, write_part

_GO_ON = (GenSourceConfig, KafkaSourceConfig)  # sources that go on behind what the log has of them

_log = logging.getLogger("wallaroo.spark")


@dataclass(frozen=True)
class Resume:
    """What a restart must know.

    Args:
        sequence: after all records before this one.
        due: the arrival time at which time alone lets a window fire; `None`: none will.
        sources: what the log says about sources: those that have ended, and generators.
        streams: of each sink whose peer remembers.
        before: how many bytes these had before the micro-batch, which Spark may not have committed.
    """

    sequence: int = 0
    due: int | None = None
    sources: Mapping[str, LoggedSource] = field(default_factory=dict)
    streams: Mapping[SinkId, Stream] = field(default_factory=dict)
    before: Mapping[SinkId, int] = field(default_factory=dict)

    def streams_at(self, committed: int) -> Mapping[SinkId, Stream]:
        """Return the streams as they were after the micro-batches that Spark has committed.

        Args:
            committed: number of the first record that is not committed.
        """
        if self.sequence <= committed:
            return self.streams
        return {
            sink: stream.up_to(self.before.get(sink, 0)) for sink, stream in self.streams.items()
        }

    def same(self, other: Resume) -> bool:
        """Whether `other` says the same, apart from the sequence."""
        return replace(self, sequence=other.sequence) == other


class ResumeFile:
    """The file of a run, written before Spark commits a micro-batch.

    Args:
        path: the file.
        last: what it says.
        stamp: the run's.
    """

    def __init__(self, path: Path, last: Resume, stamp: Stamp) -> None:
        self.last = last
        self._path = path
        self._stamp = stamp

    def note(self, now: Resume) -> None:
        """Write what a restart must know, if it has changed.

        Raises:
            CheckpointError: it cannot be written.
        """
        if not self.last.sequence or not now.same(self.last):
            write_resume(self._path, now, self._stamp)
            self.last = now


def resume_of(checkpoint: Checkpoint, application: Application) -> Resume | None:
    """Return what a restart must know; `None`: this application needs nothing of it.

    Raises:
        CheckpointError: the file is damaged, or it is missing although Spark has committed
            something.
    """
    needed = bool(_named(application, _GO_ON)) or application.time_decides
    remembered = any(
        isinstance(sink.config, TCPSinkConfig) and sink.config.resume
        for sink in application.sinks.values()
    )
    found = read_resume(checkpoint.resume)
    if found is None and needed:  # else no earlier run may have had a sink whose peer remembers
        checkpoint.check_new(checkpoint.resume)
    if not (needed or remembered or (found is not None and found.streams)):
        return None
    return found or Resume()


def positions_in(logged: Mapping[str, LoggedSource]) -> dict[str, TopicPosition]:
    """Return where Kafka sources stand."""
    return {name: one.position for name, one in logged.items() if one.position is not None}


def sources_to_come(logged: Mapping[str, LoggedSource], application: Application) -> set[str]:
    """Return the sources that can still give something.

    That is all but generators and Kafka sources that have ended.

    Args:
        logged: what is known about the sources after the log.
        application: the application.
    """
    ended = {name for name, source in logged.items() if source.ended}
    over = _named(application, _GO_ON)
    for name in sorted(ended - over):
        _log.warning(
            "source %r has ended in an earlier run on this checkpoint, with standard input: "
            "whatever it receives now is too late for every window. Begin anew with an empty "
            "directory",
            name,
        )
    to_come = set(application.sources) - (ended & over)
    if not to_come:
        _log.warning("every source has ended in an earlier run: nothing more is received")
    return to_come


def _named(application: Application, kinds: tuple[type, ...]) -> set[str]:
    return {
        name for name, source in application.sources.items() if isinstance(source.config, kinds)
    }


def read_resume(path: Path) -> Resume | None:
    """Return what a file says; `None`: there is none.

    Raises:
        CheckpointError: it is damaged, or cannot be read.
    """
    return read_part(path, _resume)


def _resume(form: Any) -> Resume:
    due = form["due"]
    sources = {name: LoggedSource.from_form(*one) for name, one in form["sources"].items()}
    streams = form.get("streams", ())  # earlier releases wrote none
    return Resume(
        int(form["sequence"]),
        None if due is None else int(due),
        sources,
        by_sink(lambda _, *one: Stream.from_form(*one), streams),
        by_sink(lambda before, *_: a_number(before), streams),
    )


def write_resume(path: Path, resume: Resume, stamp: Stamp) -> None:
    """Write the file; it is on disk when this returns.

    Raises:
        CheckpointError: it cannot be written.
    """
    form = {
        "sequence": resume.sequence,
        "due": resume.due,
        "sources": {name: one.form for name, one in resume.sources.items()},
        "streams": [
            [*sink, resume.before.get(sink, one.end), *one.form]
            for sink, one in resume.streams.items()
        ],
    }
    write_part(path, stamp, form)
