"""``wallaroo rerun``: an application on recorded input."""

from __future__ import annotations

import argparse
import io
import logging
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO

from wallaroo import readable
from wallaroo.cli.application import load_named_application
from wallaroo.cli.logs import application_output, results_on
from wallaroo.cli.terminal import progress_display
from wallaroo.engine import Progress
from wallaroo.errors import UsageError
from wallaroo.loading import load_module
from wallaroo.text import escaped
from wallaroo.transport.recording import RecordedLog
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

ShowProgress = Callable[[int, int, int], None]
"""Shows how many records have been processed, outputs and dead letters made."""


def rerun(options: argparse.Namespace) -> int:
    """Run the command."""
    if options.sink is not None and not options.stdout:
        raise UsageError("--sink goes with --stdout: it names the sink whose outputs are printed")
    if options.against is not None:
        from wallaroo_reference.cli.against import against

        return against(options)
    began = time.monotonic()
    with ExitStack() as up:
        writers: list[ResultWriter] = []
        results = up.enter_context(results_on(sys.stdout))
        steps = up.enter_context(application_output())
        application = load_named_application(options, placeholders=True)
        steps.know(application)
        log, until = opened(options)
        for target in (options.outputs, options.dead_letters):
            if target is not None:
                _refuse_inside(target, options.directory)
        json_lines: JSONLines | None = None
        if options.stdout:
            only = None if options.sink is None else sink_of(options.sink, application)
            writers.append(Lines(up.enter_context(buffered(results)), only))
        if options.json:
            json_lines = JSONLines(up.enter_context(buffered(results)))
            json_lines.line({"begin": {"module": load_module(options.app).name, "records": until}})
            writers.append(json_lines)
        if options.outputs is not None:
            files = Files(options.outputs, list(application.sinks))
            up.callback(files.close)
            writers.append(files)
        if options.dead_letters is not None:
            letters = LetterFile(options.dead_letters)
            up.callback(letters.close)
            writers.append(letters)
        one = Rerun(application, log, until=until, on_error=options.on_error)
        show = up.enter_context(progress(options, until))
        one.run(writers, lambda: show(one.records, one.made, one.letters))
        if json_lines is not None:
            json_lines.end(one)
    if not options.json:
        stream_of_report = sys.stderr if options.stdout else sys.stdout
        for line in _report(one, time.monotonic() - began):
            print(escaped(line), file=stream_of_report)
    return 0 if one.machine.ended is None else 1


def _refuse_inside(target: Path, recording: Path) -> None:
    """Refuse to write over the recording, under whatever name.

    Raises:
        UsageError: the target is in it, or a file of it.
    """
    files = [path for path in recording.rglob("*") if target.exists() and path.samefile(target)]
    if files or target.resolve().is_relative_to(recording.resolve()):
        raise UsageError(f"{target} is in the recording {recording}; write elsewhere")


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
            lines.append(f"    {number:,} {reason}: {place}")
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


def opened(options: argparse.Namespace) -> tuple[RecordedLog, int]:
    """Return the recording, and the number of the first record that is left out.

    Raises:
        WallarooError: it cannot be read.
    """
    log = RecordedLog(options.directory)
    if log.torn is not None:
        _log.warning(
            "the end of the input log is cut off, as by a crash; record %d is the last: %s",
            log.following - 1,
            log.torn,
        )
    until = log.following if options.until is None else min(options.until, log.following)
    return log, until


@contextmanager
def buffered(results: IO[bytes]) -> Iterator[IO[bytes]]:
    """Yield a buffer before an unbuffered stream, which stays open."""
    stream = io.BufferedWriter(results)
    try:
        yield stream
    finally:
        stream.detach()


@contextmanager
def progress(options: argparse.Namespace, until: int) -> Iterator[ShowProgress]:
    """Yield a function that shows the progress; it may be called as often as wanted."""
    with progress_display(options.progress, sys.stderr) as show:
        shown = time.monotonic()

        def update(records: int, outputs: int, letters: int) -> None:
            nonlocal shown
            now = time.monotonic()
            if now - shown >= show.interval:
                shown = now
                percent = round(100 * records / max(1, until), 1)
                show(Progress(records, outputs, 0, letters, {"percent": percent}))

        yield update
