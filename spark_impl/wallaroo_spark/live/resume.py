"""What a restart must know and no longer finds in the input log: the file ``resume``.

Workers hold the windows, so after a restart only they know when the next one is due; and no worker
is asked before there is input. A generator continues after its last value, and a source that has
ended stays ended; but records that Spark has committed are deleted from the log. So before Spark
commits a micro-batch, this file of the checkpoint is written with what holds at the end of that
batch.
"""

from __future__ import annotations

import base64
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from wallaroo.config import GenSourceConfig
from wallaroo.topology import Application
from wallaroo.transport.checkpoint import RESTORE, CheckpointError
from wallaroo.transport.generators import LoggedSource
from wallaroo.transport.input_log import InputLog, Kind, Run
from wallaroo.transport.stamps import Stamp
from wallaroo_spark.live.checkpoint import Checkpoint
from wallaroo_spark.live.stamped import read_stamped, write_stamped

_AT_ONCE = 4 << 20  # bytes of the log that are read at once

_log = logging.getLogger("wallaroo.spark")


@dataclass(frozen=True)
class Resume:
    """What a restart must know.

    Args:
        sequence: after all records before this one.
        due: the arrival time at which time alone lets a window fire; `None`: none will.
        sources: what the log says about sources: those that have ended, and generators.
    """

    sequence: int = 0
    due: int | None = None
    sources: Mapping[str, LoggedSource] = field(default_factory=dict)

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


def after(sources: Mapping[str, LoggedSource], runs: Iterable[Run]) -> Mapping[str, LoggedSource]:
    """Return what is known about the sources after further records."""
    updated = dict(sources)
    for run in runs:
        if run.kind is Kind.END:
            updated[run.source] = replace(updated.get(run.source, LoggedSource()), ended=True)
        elif run.kind is Kind.VALUE:
            source = updated.get(run.source, LoggedSource())
            for payload in run.payloads:
                source = source.after(payload)
            updated[run.source] = source
    return updated


def at_the_end_of(log: InputLog, resume: Resume) -> Mapping[str, LoggedSource]:
    """Return what is known about the sources after a whole log.

    Raises:
        InputLogError: it cannot be read.
    """
    sources = resume.sources
    start = max(resume.sequence, log.first_sequence)
    while start < log.next_sequence:
        end = log.end_within(start, max_bytes=_AT_ONCE)
        sources = after(sources, log.runs(start, end))
        start = end
    return sources


def resume_of(checkpoint: Checkpoint, application: Application) -> Resume | None:
    """Return what a restart must know; `None`: this application needs nothing of it.

    Raises:
        CheckpointError: the file is damaged, or it is missing although Spark has committed
            something.
    """
    if not _generators(application) and not application.time_decides:
        return None
    found = read_resume(checkpoint.resume)
    if found is None:
        checkpoint.check_new(checkpoint.resume)
    return found or Resume()


def sources_to_come(logged: Mapping[str, LoggedSource], application: Application) -> set[str]:
    """Return the sources that can still give something: all but generators that have ended.

    Args:
        logged: what is known about the sources after the log.
        application: the application.
    """
    ended = {name for name, source in logged.items() if source.ended}
    generators = _generators(application)
    for name in sorted(ended - generators):
        _log.warning(
            "source %r has ended in an earlier run on this checkpoint, with standard input: "
            "whatever it receives now is too late for every window. Begin anew with an empty "
            "directory",
            name,
        )
    return set(application.sources) - (ended & generators)


def _generators(application: Application) -> set[str]:
    return {
        name
        for name, source in application.sources.items()
        if isinstance(source.config, GenSourceConfig)
    }


def read_resume(path: Path) -> Resume | None:
    """Return what a file says; `None`: there is none.

    Raises:
        CheckpointError: it is damaged, or cannot be read.
    """
    try:
        _, form = read_stamped(path)
        due = form["due"]
        sources = {
            name: LoggedSource(bool(ended), base64.b64decode(last), int(behind))
            for name, (ended, last, behind) in form["sources"].items()
        }
        return Resume(int(form["sequence"]), None if due is None else int(due), sources)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read: {error.strerror}") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CheckpointError(f"{path} is damaged. {RESTORE}") from error


def write_resume(path: Path, resume: Resume, stamp: Stamp) -> None:
    """Write the file; it is on disk when this returns.

    Raises:
        CheckpointError: it cannot be written.
    """
    form = {
        "sequence": resume.sequence,
        "due": resume.due,
        "sources": {
            name: [one.ended, base64.b64encode(one.last).decode(), one.behind]
            for name, one in resume.sources.items()
        },
    }
    try:
        write_stamped(path, stamp, form)
    except OSError as error:
        raise CheckpointError(f"{path} cannot be written: {error.strerror}") from error
