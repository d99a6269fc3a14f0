"""``wallaroo conform --app``: is an application portable?"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from wallaroo.errors import WallarooError
from wallaroo.frames import FrameParser
from wallaroo.loading import load_application
from wallaroo.topology import Application
from wallaroo.trace import InputLog
from wallaroo_conformance.portability.check import (
    AppFinding,
    PortabilityError,
    Subject,
    look,
)
from wallaroo_conformance.report import BROKEN, INCOMPLETE, KEPT


def check_app(options: argparse.Namespace) -> int:
    """Run the command; 0: nothing found, 1: findings, 2: it could not be run."""
    try:
        application = load_application(options.app, options.app_arguments, placeholders=True)
        subject = Subject(options.app, options.app_arguments, _input(application, options))
        engines = list(dict.fromkeys(["compiled", *(options.engine or [])]))
        findings = look(subject, engines, _tell)
    except (WallarooError, OSError) as error:
        print(f"wallaroo conform: {error}", file=sys.stderr)
        return INCOMPLETE
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
    """Return the input in the file; with several sources, messages are dealt in turn."""
    sources = list(application.sources)
    if options.lines is not None:
        text = options.lines.read_bytes()
        return [
            (sources[number % len(sources)], line) for number, line in enumerate(text.splitlines())
        ]
    if options.frames is None:
        raise PortabilityError("say what its input is: --lines FILE or --frames FILE")
    return _frames(options.frames, application, sources)


def _frames(path: Path, application: Application, sources: list[str]) -> InputLog:
    decoder = application.sources[sources[0]].config.decoder
    parser = FrameParser(decoder.header_length, decoder.payload_length)
    payloads = parser.feed(path.read_bytes())
    if parser.error is not None:
        raise PortabilityError(f"{path}: {parser.error}")
    if parser.pending:
        raise PortabilityError(f"{path}: it ends inside a frame")
    return [(sources[number % len(sources)], payload) for number, payload in enumerate(payloads)]


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
