"""Figures change nothing: both machines, measured, give what the reference gives without."""

import functools
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from wallaroo_conformance.cases.building import engine_case
from wallaroo_conformance.cases.counterexamples import stored
from wallaroo_conformance.cases.generating import generate
from wallaroo_reference.compiled.codegen import compiled_source
from wallaroo_reference.compiled.measured import MeasuredCompiled
from wallaroo_reference.engine import CompiledEngine, ReferenceEngine
from wallaroo_reference.isolated.measured import MeasuredInterpreter

from wallaroo.loading import load_application
from wallaroo.metrics.following import Follower
from wallaroo.metrics.probes import Probes
from wallaroo.metrics.registry import Registry
from wallaroo.records import Frame

EXAMPLE = Path(__file__).parents[2] / "examples" / "word_count.py"


class Alternating(Probes):
    """Looks at every other read, so that a case runs through both ways."""

    def should_look(self, source, records):
        self._credit = -self._credit if self._credit else 1e18
        return super().should_look(source, records)


def probes(case, kind):
    return kind(case.application, Registry(case.application, "measured"), always=kind is Probes)


class Measured(CompiledEngine):
    name = "measured"

    def _machine(self, case):
        made = probes(case, Alternating if len(case.records) % 2 else Probes)
        return MeasuredCompiled(
            case.application,
            made,
            partitions=case.partitions or 1,
            on_error=case.on_error,
            follower=Follower(made.application, every=0),
        )


class MeasuredIsolated(ReferenceEngine):
    name = "measured-isolated"

    def _machine(self, case):
        if case.isolation == "trusting":
            return super()._machine(case)
        made = probes(case, Probes)
        return MeasuredInterpreter(
            made,
            partitions=case.partitions or 1,
            on_error=case.on_error,
            follower=Follower(made.application, every=0),
        )


@functools.cache
def cases():
    drawn = generate(200, 1, "tame", simple=1.0)  # some have long rows of multi computations
    return [*drawn, *[one.case for one in stored()]][::3]  # enough, in a few seconds


@pytest.mark.parametrize(
    ("isolation", "usual", "measured"),
    [
        ("trusting", CompiledEngine(), Measured()),
        ("isolated", ReferenceEngine(), MeasuredIsolated()),
    ],
)
def test_a_measured_machine_does_what_it_does_without(isolation, usual, measured):
    compared = 0
    for case in cases()[::2]:
        traces = []
        for engine in (usual, usual, measured):
            one = replace(engine_case(case), isolation=isolation)
            trace = json.dumps(engine.run(one).to_json())
            traces.append(re.sub("at 0x[0-9a-f]+", "", trace))  # of objects in errors' texts
        if traces[:1] != traces[1:2]:
            continue  # an output has an object's address in it, which differs from run to run
        assert traces[2:] == traces[:1], case
        compared += len(traces[2:])
    assert compared > 35


def test_both_ways_run_the_same_code():
    application = load_application(EXAMPLE, ["--in", "a:1", "--out", "b:1"])
    made = Probes(application, Registry(application, "measured"))
    assert compiled_source(made.application) == compiled_source(application)


class Everyone(Follower):
    """Follows the first record of each read."""

    def __init__(self, application):
        super().__init__(application, every=0)
        self.visits = []

    def end(self):
        super().end()
        found = self.take()
        if found is not None:
            self.visits += [
                (visit.node, visit.lineage, visit.error and visit.error[0])
                for visit in found.visits.kept
            ]


def seen_of(case, kind):
    """What a machine has seen of a case: visits of records that are followed, and counts."""
    made = probes(case, Probes)
    follower = Everyone(made.application)
    first = (case.application, made) if kind is MeasuredCompiled else (made,)
    machine = kind(*first, partitions=1, on_error=case.on_error, follower=follower)
    for record in case.records:
        if isinstance(record, Frame):
            machine.feed(record.source, [record.payload], record.at)
        else:
            machine.take(record)
    made.settle()
    return follower.visits, [(one.time.count, one.sent, one.fired) for one in made.registry.nodes]


def is_left_out(case):
    """Whether the machines need not agree, since only one copies, or it would take seconds."""
    trace = ReferenceEngine().run(engine_case(replace(case, isolation="isolated")))
    return bool(trace.findings) or sum(map(len, trace.outputs.values())) > 10_000


def test_both_machines_count_the_same_calls_and_follow_records_by_the_same_lineages():
    deepest = 0
    for case in cases()[::3]:
        if is_left_out(case):
            continue
        compiled = seen_of(engine_case(case), MeasuredCompiled)
        isolated = seen_of(engine_case(case), MeasuredInterpreter)
        assert compiled == isolated, case
        deepest = max([deepest, *[len(lineage) for _, lineage, _ in compiled[0]]])
    assert deepest > 3
