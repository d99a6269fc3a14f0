"""``wallaroo explain``: where an output, a dead letter or an entity comes from."""

from __future__ import annotations

import argparse
import json
import sys
from contextlib import ExitStack

from wallaroo.cli.application import load_named_application
from wallaroo.cli.arguments import key_of, literal_key
from wallaroo.cli.logs import application_output, results_on
from wallaroo.errors import UsageError
from wallaroo.keys import SINGLE_KEY, Key
from wallaroo.readable import output_text
from wallaroo.text import escaped
from wallaroo.topology import Application, SinkId
from wallaroo_reference.cli.rerun import opened, progress
from wallaroo_reference.replay.describing import (
    explanation_json,
    explanation_lines,
    steps_json,
    steps_lines,
    visits_json,
    visits_lines,
)
from wallaroo_reference.replay.explaining import Explanation, Replayed
from wallaroo_reference.replay.rerunning import sink_of


def explain(options: argparse.Namespace) -> int:
    """Run the command."""
    if options.sink is not None and options.output is None:
        raise UsageError("--sink goes with --output: it names the sink of the output")
    with ExitStack() as up:
        up.enter_context(results_on(sys.stdout))
        steps = up.enter_context(application_output())
        application = load_named_application(options, placeholders=True)
        steps.know(application)
        given, _ = opened(options, application)
        show = up.enter_context(progress(options, given))
        replayed = Replayed(
            application,
            given,
            options.on_error,
            lambda number: show(number - given.start, 0, 0),
        )
        if options.entity is not None:
            partition, key = _entity(options)
            visits = replayed.entity(partition, key, max(1, options.visits))
            form, lines = visits_json(visits), visits_lines(visits)
        elif options.record is not None:
            done = replayed.record(options.record)
            form, lines = {"steps": steps_json(done)}, steps_lines(done)
        elif options.dead_letter is not None:
            explanation = replayed.dead_letter(options.dead_letter, options.visits)
            form = {"dead_letter": options.dead_letter, **explanation_json(explanation)}
            lines = [f"dead letter {options.dead_letter}:", *explanation_lines(explanation)]
        else:
            sink = _sink(options.sink, application)
            explanation = replayed.output(sink, options.output, options.visits)
            name = f"{sink[0]}/{sink[1]}"
            form = {"sink": name, "output": options.output, **explanation_json(explanation)}
            lines = [_title(name, options.output, explanation), *explanation_lines(explanation)]
    if options.json:
        print(json.dumps(form))
    else:
        for line in lines:
            print(escaped(line))
    return 0


def _entity(options: argparse.Namespace) -> tuple[str, Key]:
    partition, *keys = options.entity
    if not keys:
        return partition, SINGLE_KEY
    if len(keys) > 1:
        raise UsageError("--entity takes a PARTITION and a KEY at most")
    return partition, (literal_key if options.literal else key_of)(keys[0])


def _sink(named: str | None, application: Application) -> SinkId:
    if named is not None:
        return sink_of(named, application)
    sinks = list(application.sinks)
    if len(sinks) != 1:
        names = ", ".join([f"{pipeline}/{index}" for pipeline, index in sinks]) or "none"
        raise UsageError(f"name the output's sink with --sink: the application has {names}")
    return sinks[0]


def _title(name: str, number: int, explanation: Explanation) -> str:
    written = explanation.end.written
    assert written is not None
    return f"output {number:,} of {name}: {output_text(written)}"
