"""``wallaroo conform --app``: is an application portable?"""

from __future__ import annotations

import argparse
import json
import sys
from itertools import zip_longest
from pathlib import Path

from wallaroo.cli.application import load_named_application
from wallaroo.frames import FrameParser
from wallaroo.topology import Application
from wallaroo.trace import InputLog
from wallaroo_conformance.judge.results import BROKEN, KEPT
from wallaroo_conformance.portability.check import (
    AppFinding,
    PortabilityError,
    Subject,
    look,
)


def check_app(options: argparse.Namespace) -> int:
    """Run the command; 0: nothing found, 1: findings."""
    application = load_named_application(options, placeholders=True)
    subject = Subject(options.app, options.app_arguments, _input(application, options))
    engines = list(dict.fromkeys(["compiled", *(options.engine or [])]))
    findings = look(subject, engines, _tell)
    for finding in findings:
        print(_shown(finding))
    if options.json is not None:
        options.json.write_text(json.dumps(_form(findings), indent=1) + "\n", encoding="utf-8")
        print(f"wrote {options.json}")
    messages = len(subject.log)
    print(f"{options.app}: {len(findings) or 'no'} findings, on {messages} messages of input")
    return BROKEN if findings else KEPT


def _tell(what: str) -> None:
    print(f"looking: {what}", file=sys.stderr)


def _input(application: Application, options: argparse.Namespace) -> InputLog:
    """Return the input: messages of several sources in turn.

    One file serves all sources, in turn; several files go to the sources in their order.
    """
    sources = list(application.sources)
    files: list[Path] = options.lines or options.frames or []
    if not files:
        raise PortabilityError("say what its input is: --lines FILE or --frames FILE")
    if len(files) == 1:
        read = _payloads(files[0], application, sources[0], lines=bool(options.lines))
        return [(sources[number % len(sources)], one) for number, one in enumerate(read)]
    if len(files) != len(sources):
        raise PortabilityError(
            f"{len(files)} files of input for {len(sources)} sources ({', '.join(sources)}): "
            "give one for all, or one for each"
        )
    columns = [
        [(source, one) for one in _payloads(path, application, source, lines=bool(options.lines))]
        for path, source in zip(files, sources, strict=True)
    ]
    return [entry for row in zip_longest(*columns) for entry in row if entry is not None]


def _payloads(path: Path, application: Application, source: str, *, lines: bool) -> list[bytes]:
    if lines:
        return path.read_bytes().splitlines()
    decoder = application.sources[source].config.decoder
    assert decoder is not None  # a generator has no frames to make
    parser = FrameParser(decoder.header_length, decoder.payload_length)
    payloads = parser.feed(path.read_bytes())
    if parser.error is not None:
        raise PortabilityError(f"{path}: {parser.error}")
    if parser.pending:
        raise PortabilityError(f"{path}: it ends inside a frame")
    return payloads


def _shown(finding: AppFinding) -> str:
    key = f", key {finding.key}" if finding.key else ""
    lines = [f"{finding.kind}: step {finding.step!r}{key}", f"  {finding.text}"]
    if finding.log:
        lines.append("  smallest input:")
        lines += [f"    {source}  {payload!r}" for source, payload in finding.log]
    return "\n".join(lines)


def _form(findings: list[AppFinding]) -> dict[str, object]:
    return {
        "format": "wallaroo-app-findings/1",
        "findings": [
            {
                "kind": finding.kind,
                "step": finding.step,
                "key": finding.key,
                "text": finding.text,
                "input": [[source, payload.decode("latin-1")] for source, payload in finding.log],
            }
            for finding in findings
        ],
        "footer": {"findings": len(findings)},
    }
