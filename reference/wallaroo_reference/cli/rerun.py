"""``wallaroo rerun``: an application on recorded input."""

from __future__ import annotations

import argparse
import io
import logging
import pickle
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import ModuleType
from typing import IO

from wallaroo import readable
from wallaroo.cli.application import load_named_application
from wallaroo.cli.logs import application_output, results_on
from wallaroo.cli.terminal import progress_display
from wallaroo.engine import Progress
from wallaroo.errors import UsageError, WallarooError
from wallaroo.loading import MODULE_PREFIX, load_module
from wallaroo.text import escaped
from wallaroo.topology import Application
from wallaroo.transport.identity import Identity, identity_in, refuse_others
from wallaroo.transport.recording import RecordedLog
from wallaroo.transport.stored import open_stored
from wallaroo.transport.stored_state import StoredState, refusals
from wallaroo_reference.replay.feeding import Input
from wallaroo_reference.replay.rerunning import (
    Files,
    JSONLines,
    LetterFile,
    Lines,
    Rerun,
    ResultWriter,
    sink_of,
)

_log = logging.getLogger("wallaroo.reference")

_FILE_NAME = re.compile(MODULE_PREFIX.encode() + rb"\w+")  # in a pickled object

ShowProgress = Callable[[int, int, int], None]
"""Shows how many records have been processed, outputs and dead letters made."""


def rerun(options: argparse.Namespace) -> int:
    """Run the command."""
    if options.sink is not None and not options.stdout:
        raise UsageError("--sink goes with --stdout: it names the sink whose outputs are printed")
    if options.against is None and (options.all or options.comparable is not None):
        raise UsageError("--all and --comparable go with --against, which compares two versions")
    if options.against is not None:
        from wallaroo_reference.cli.against import against

        return against(options)
    with ExitStack() as up:
        writers: list[ResultWriter] = []
        results = up.enter_context(results_on(sys.stdout))
        steps = up.enter_context(application_output())
        application = load_named_application(options, placeholders=True)
        steps.know(application)
        given, refused = opened(options, application)
        for target in (options.outputs, options.dead_letters):
            if target is not None:
                _refuse_inside(target, options.directory)
        json_lines: JSONLines | None = None
        if options.stdout:
            only = None if options.sink is None else sink_of(options.sink, application)
            writers.append(Lines(up.enter_context(buffered(results)), only))
        if options.json:
            json_lines = JSONLines(up.enter_context(buffered(results)))
            begin = {"module": load_module(options.app).name, "records": given.until}
            if given.state is not None:
                begin |= {"start": given.start, "refused": refused}
            json_lines.line({"begin": begin})
            writers.append(json_lines)
        if options.outputs is not None:
            files = Files(options.outputs, list(application.sinks))
            up.callback(files.close)
            writers.append(files)
        if options.dead_letters is not None:
            letters = LetterFile(options.dead_letters)
            up.callback(letters.close)
            writers.append(letters)
        one = Rerun(application, given, on_error=options.on_error)
        show = up.enter_context(progress(options, given))
        began = time.monotonic()
        one.run(writers, lambda: show(one.records, one.made, one.letters))
        if json_lines is not None:
            json_lines.end(one)
    if not options.json:
        stream_of_report = sys.stderr if options.stdout else sys.stdout
        for line in [
            *_beginning(options, given, refused),
            *_report(one, time.monotonic() - began),
        ]:
            print(escaped(line), file=stream_of_report)
    return 0 if one.machine.ended is None and not refused else 1


def _refuse_inside(target: Path, recording: Path) -> None:
    """Refuse to write over the recording, under whatever name.

    Raises:
        UsageError: the target is in it, or a file of it.
    """
    files = [path for path in recording.rglob("*") if target.exists() and path.samefile(target)]
    if files or target.resolve().is_relative_to(recording.resolve()):
        raise UsageError(f"{target} is in the recording {recording}; write elsewhere")


def _beginning(options: argparse.Namespace, given: Input, refused: Sequence[str]) -> list[str]:
    """Return with which state a rerun has begun, and why a run would not have."""
    state = given.state
    if state is None:
        return []
    counts = Counter([entity.partition for entity in state.entities])
    entities = "".join([f", {count:,} entities of {name}" for name, count in counts.items()])
    windows = f", {len(state.windows):,} keys with open windows" if state.windows else ""
    lines = [f"refused: a run would not begin: {text}" for text in refused]
    lines.append(f"begun at record {state.position:,} of {options.state}{entities}{windows}")
    if given.start == given.until > given.log.first and options.last is None:
        lines.append("no input waits: --last N runs the last N records again")
    if again := max(0, min(state.position, given.until) - given.start):
        lines.append(f"{again:,} records, which this state has met already, are run again")
    return lines


def _report(one: Rerun, seconds: float) -> list[str]:
    """Return what a rerun did, in numbers."""
    machine = one.machine
    rate = one.records / seconds if seconds else 0
    lines = [f"{one.records:,} records in {seconds:.1f} s, {rate:,.0f} records/s"]
    for (pipeline, index), number in one.outputs.items():
        lines.append(f"  {pipeline}/{index}: {number:,} outputs")
    if one.letters:
        lines.append(f"  dead letters: {one.letters:,}")
        for (pipeline, step, reason), number in sorted(one.dead_letters.items(), key=str):
            place = pipeline if step is None else f"{pipeline}, {step}"
            letter = one.first_letters[pipeline, step, reason]
            raised = "" if letter.error_type is None else f"{letter.error_type}: "
            lines.append(f"    {number:,} {reason}: {place}")
            lines.append(
                f"      first at record {letter.lineage[0]:,}: {raised}{letter.error:.300}"
            )
    for cells in machine.cells():
        if cells.kind == "partition":
            lines.append(f"  entities of {cells.name}: {cells.count():,}")
    if machine.open_windows:
        lines.append(f"  open windows: {machine.open_windows:,}")
    lines += [f"  late: {line}" for line in readable.late_lines(machine.late)]
    for finding in machine.findings:
        first, *others = readable.finding_lines(finding)
        lines += [f"  finding: {first}", *[f"  {line}" for line in others]]
    if machine.ended is not None:
        lines.append(f"  ended early: {readable.ended_line(machine.ended)}")
    return lines


def opened(options: argparse.Namespace, application: Application) -> tuple[Input, list[str]]:
    """Return the recording with the state to begin with, and why a run would refuse that.

    Raises:
        WallarooError: it cannot be read, or the state is not of this recording.
    """
    if options.last is not None and options.state is None:
        raise UsageError("--last goes with --from: it runs records from a stored state on")
    log = RecordedLog(options.directory, whole=options.state is None)
    if log.torn is not None:
        _log.warning(
            "the end of the input log is cut off, as by a crash; record %d is the last: %s",
            log.following - 1,
            log.torn,
        )
    until = log.following if options.until is None else min(options.until, log.following)
    if options.state is None:
        return Input(log, 0, until, skip=options.skip_record), []
    state = _stored(options.state, log.identity)
    _take_classes(state, sys.modules[load_module(options.app).name])
    if not log.first <= state.position <= log.following:
        raise WallarooError(
            f"the state of {options.state} is at record {state.position:,}, and "
            f"{options.directory} holds the records {log.first:,} to {log.following - 1:,}. Take "
            "the recording of the run that wrote this checkpoint"
        )
    start = state.position
    if options.last is not None:
        start = max(log.first, until - options.last)
    given = Input(log, min(start, until), until, state, options.skip_record)
    return given, refusals(options.state, application, state)


def _take_classes(state: StoredState, module: ModuleType) -> None:
    """Let the classes of stored objects be those of this file, if it has had another name."""
    for entity in state.entities:
        for name in _FILE_NAME.findall(entity.state):
            sys.modules.setdefault(name.decode(), module)
    for windows in state.windows:
        for name in _FILE_NAME.findall(pickle.dumps(windows.form)):
            sys.modules.setdefault(name.decode(), module)


def _stored(directory: Path, recorded: Identity) -> StoredState:
    """Return the state of a checkpoint, of any engine."""
    identity = identity_in(directory)
    if identity.recording:
        raise UsageError(f"{directory} is a recording, which holds no state: --from a checkpoint")
    if identity.stamp.checkpoint != recorded.stamp.checkpoint:
        raise UsageError(
            f"{directory} is not a checkpoint of the recorded runs: it holds {identity.stamp}, and "
            f"the input is of checkpoint {recorded.stamp.checkpoint[:8]}"
        )
    stored = open_stored(directory, identity.engine)
    refuse_others(directory, identity, stored.stamps())
    return stored.state()


@contextmanager
def buffered(results: IO[bytes]) -> Iterator[IO[bytes]]:
    """Yield a buffer before an unbuffered stream, which stays open."""
    stream = io.BufferedWriter(results)
    try:
        yield stream
    finally:
        stream.detach()


@contextmanager
def progress(options: argparse.Namespace, given: Input) -> Iterator[ShowProgress]:
    """Yield a function that shows the progress; it may be called as often as wanted."""
    with progress_display(options.progress, sys.stderr) as show:
        shown = time.monotonic()

        def update(records: int, outputs: int, letters: int) -> None:
            nonlocal shown
            now = time.monotonic()
            if now - shown >= show.interval:
                shown = now
                percent = round(100 * records / max(1, given.until - given.start), 1)
                show(Progress(records, outputs, 0, letters, {"percent": percent}))

        yield update
