"""``wallaroo conform --app``: does an application give the same everywhere, on any input?"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import sys
import time
from collections.abc import Iterator
from functools import partial
from itertools import zip_longest
from pathlib import Path

from wallaroo.cli.application import load_named_application
from wallaroo.cli.logs import application_output
from wallaroo.components import Decoder
from wallaroo.frames import FrameParser, payload_of_line
from wallaroo.loading import load_module
from wallaroo.text import escaped
from wallaroo.topology import Application
from wallaroo.trace import InputLog
from wallaroo_conformance.cli.output import write_reports
from wallaroo_conformance.judge.results import BROKEN, KEPT
from wallaroo_conformance.portability.check import look
from wallaroo_conformance.portability.inputs import (
    PAYLOADS,
    InputError,
    Inputs,
    described_inputs,
    given_input,
    grown_inputs,
)
from wallaroo_conformance.portability.processes import PortabilityError, Subject
from wallaroo_conformance.portability.results import Look
from wallaroo_conformance.portability.showing import (
    application_form,
    application_junit,
    application_page,
    application_text,
)

_INPUTS = 300  # that are drawn at a time, by default


def check_app(options: argparse.Namespace) -> int:
    """Run the command; 0: nothing found, 1: findings."""
    with application_output():
        application = load_named_application(options, placeholders=True)
    inputs = _inputs(application, options)
    engines = list(dict.fromkeys(["compiled", *(options.engine or [])]))
    result = Look()
    with (
        Subject(options.app, options.app_arguments) as subject,
        # What the application prints is not shown, as in the processes that a `Subject` starts.
        Path(os.devnull).open("w", encoding="utf-8") as nowhere,
        contextlib.redirect_stdout(nowhere),
    ):
        for logs in rounds(inputs, options):
            result.add(look(subject, logs, inputs.smaller, engines, _tell))
    print(application_text(result, options.app, application))
    page = partial(application_page, look=result, app=options.app, application=application)
    write_reports(
        {
            options.json: lambda: json.dumps(application_form(result), indent=1) + "\n",
            options.html: lambda: page("application.html"),
            options.junit: lambda: application_junit(result, options.app),
            options.markdown: lambda: page("application.md"),
        }
    )
    return BROKEN if result.findings else KEPT


def rounds(inputs: Inputs, options: argparse.Namespace) -> Iterator[list[InputLog]]:
    """Yield inputs: once, or, if there is time and they are drawn, again and again."""
    end = None if options.budget is None else time.monotonic() + options.budget
    seed = options.seed
    while True:
        yield inputs.logs(options.cases or _INPUTS, seed)
        if end is None or time.monotonic() >= end or not inputs.drawn:
            return
        seed += 1


def _tell(what: str) -> None:
    print(escaped(f"looking: {what}"), file=sys.stderr)


def _inputs(application: Application, options: argparse.Namespace) -> Inputs:
    """Return where the inputs come from.

    Raises:
        InputError: no option says it.
        PortabilityError: a file cannot be used.
    """
    sources = [
        name
        for name, source in application.sources.items()
        if isinstance(source.config.decoder, Decoder)
    ]
    if not sources:
        raise InputError(f"{application.name!r} has no source that takes frames: nothing to vary")
    if options.samples:
        return grown_inputs(_mixed(options.samples, sources, application, "samples"))
    if options.lines or options.frames:
        kind = "lines" if options.lines else "frames"
        log = _mixed(options.lines or options.frames, sources, application, kind)
        return given_input(log)
    described = described_inputs(load_module(options.app).module, sources)
    if described is None:
        raise InputError(
            "say what its input is: --lines FILE or --frames FILE, or --samples FILE to try input "
            f"like it; or put a function {PAYLOADS}() beside the application, which returns a "
            "Hypothesis strategy of payloads"
        )
    return described


def _mixed(files: list[Path], sources: list[str], application: Application, kind: str) -> InputLog:
    """Return messages of several sources in turn.

    One file serves all sources, in turn; several files go to the sources in their order.
    """
    if len(files) == 1:
        read = payloads_of(files[0], application, sources[0], kind)
        log = [(sources[number % len(sources)], payload) for number, payload in enumerate(read)]
    elif len(files) == len(sources):
        columns = [
            [(source, payload) for payload in payloads_of(path, application, source, kind)]
            for path, source in zip(files, sources, strict=True)
        ]
        log = [entry for row in zip_longest(*columns) for entry in row if entry is not None]
    else:
        raise InputError(
            f"{len(files)} files of input for {len(sources)} sources ({', '.join(sources)}): "
            "give one for all, or one for each"
        )
    if not log:
        raise InputError(f"there is no input in {', '.join(map(str, files))}")
    return log


def _lines(given: bytes) -> list[bytes]:
    return [payload_of_line(line) for line in io.BytesIO(given)]


def payloads_of(path: Path, application: Application, source: str, kind: str) -> list[bytes]:
    """Return a file's payloads; samples are frames if the file is whole frames, else lines."""
    given = path.read_bytes()
    if kind == "lines":
        return _lines(given)
    decoder = application.sources[source].config.decoder
    assert isinstance(decoder, Decoder)  # other sources are left out
    parser = FrameParser(decoder.header_length, decoder.payload_length)
    payloads = parser.feed(given)
    whole = parser.error is None and not parser.pending
    if kind == "samples":
        samples = payloads if whole else _lines(given)
        what = "frames" if whole else "lines"
        print(escaped(f"{path}: {len(samples)} {what}"), file=sys.stderr)
        return samples
    if parser.error is not None:
        raise PortabilityError(f"{path}: {parser.error}")
    if parser.pending:
        raise PortabilityError(f"{path}: it ends inside a frame")
    return payloads
