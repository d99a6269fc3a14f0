"""Apache Beam: a pipeline for each case, on the runner that its Python package has in process.

Where there was a choice:

- A PCollection has no order: `order="none"` is claimed, so cases in which an entity is met twice
  are not run. All records are one `Create`.
- A state partition is one stateful `ParDo` behind the union of all messages that go there, even if
  several pipelines share it; a key is its encoding, by `BytesCoder`.
- Functions find the case's user code by a number: Beam pickles functions, but the harness watches
  the original user code, which must not be copied. The runner's workers are threads of this
  process.
- Dead letters are an output of each step, gathered by `Flatten`.
- The states at the end are noted as they are given to Beam: it has no way to ask for them.
- Windows, event time and expiry are left out: `refuse_time`.
"""

import logging
from importlib.metadata import version

import apache_beam as beam
from apache_beam.coders import BytesCoder
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from apache_beam.transforms.userstate import ReadModifyWriteStateSpec
from wallaroo_conformance.adapting.calls import Calls, Message, refuse_time
from wallaroo_conformance.adapting.stages import has_operation, stages
from wallaroo_conformance.worker import serve

from wallaroo.engine import Capabilities
from wallaroo.operations import Stateful
from wallaroo.topology import Source

RUNS = {}
"""The objects that functions work with, by the number of the run."""


class Run:
    def __init__(self, case):
        self.records = case.records
        self.nodes = case.application.nodes
        self.calls = Calls(case.application)
        self.results, self.states = [], {}

    def going_on(self, outcomes):
        """Return the messages among outcomes, and note the others."""
        self.results += [outcome for outcome in outcomes if not isinstance(outcome, Message)]
        return [outcome for outcome in outcomes if isinstance(outcome, Message)]


class Beam:
    name = "beam"
    version = version("apache-beam")

    def capabilities(self):
        return Capabilities(
            isolation=frozenset({"isolated"}), batches=False, order="none", stop="none"
        )

    def check(self, application):
        refuse_time(application, "this adapter of Beam")
        stages(application)

    def run(self, case):
        number = len(RUNS)
        run = RUNS[number] = Run(case)
        with beam.Pipeline(runner=FnApiRunner(), options=PipelineOptions([])) as pipeline:
            add_nodes(pipeline, case.application, number)
        RUNS[number] = None
        return run.calls.trace(run.results, run.states, case.partitions)


def add_nodes(pipeline, application, number):
    log = pipeline | "log" >> beam.Create([*range(len(RUNS[number].records))])
    begun = log | "begin" >> beam.ParDo(Begin(number))
    streams = {}
    for index, node in enumerate(application.nodes):
        if isinstance(node, Source):
            streams[index] = begun | f"source {index}" >> beam.Filter(of_source, node.pipeline)

    def into(index):
        ups = [streams[origin] for origin in application.nodes[index].inputs]
        return ups[0] if len(ups) == 1 else ups | f"into {index}" >> beam.Flatten()

    for group in stages(application):
        node = application.nodes[group[0]]
        if not has_operation(node, Stateful):
            made = into(group[0]) | f"pass on {group[0]}" >> beam.ParDo(PassOn(number, group[0]))
            streams[group[0]] = made
            continue
        keyed = []
        for index in group:
            find = beam.ParDo(Key(number, index)).with_output_types(tuple[bytes, object])
            keyed.append(into(index) | f"key {index}" >> find)
        together = keyed | f"together {group[0]}" >> beam.Flatten()
        visited = together | f"visit {group[0]}" >> beam.ParDo(Visit(number))
        for index in group:
            streams[index] = visited | f"mine {index}" >> beam.FlatMap(of_step, index)


def of_source(message, source):
    return message.source == source


def of_step(item, index):
    return [item[1]] if item[0] == index else []


class Begin(beam.DoFn):
    def __init__(self, number):
        self.number = number

    def process(self, sequence):
        run = RUNS[self.number]
        return run.going_on(run.calls.begin(sequence, run.records[sequence]))


class PassOn(beam.DoFn):
    def __init__(self, number, index):
        self.number, self.index = number, index

    def process(self, message):
        run = RUNS[self.number]
        return run.going_on(run.calls.pass_on(run.nodes[self.index], message))


class Key(beam.DoFn):
    def __init__(self, number, index):
        self.number, self.index = number, index

    def process(self, message):
        run = RUNS[self.number]
        key = run.calls.key(run.nodes[self.index], message)
        return [(key, (self.index, message))] if isinstance(key, bytes) else run.going_on([key])


class Visit(beam.DoFn):
    STATE = ReadModifyWriteStateSpec("state", BytesCoder())

    def __init__(self, number):
        self.number = number

    def process(self, item, state=beam.DoFn.StateParam(STATE)):  # noqa: B008 - Beam's way
        run = RUNS[self.number]
        key, (index, message) = item
        node = run.nodes[index]
        outcomes, after = run.calls.visit(node, key, message, state.read())
        if after is not None:
            state.write(after)
            run.states[node.operation.partition, key] = after
        return [(index, outcome) for outcome in run.going_on(outcomes)]


if __name__ == "__main__":
    # Beam pickles what a module defines by its name, and what a script defines by value.
    import beam_adapter

    logging.getLogger().setLevel(logging.ERROR)
    serve(beam_adapter.Beam())
