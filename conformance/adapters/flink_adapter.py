"""Apache Flink, by PyFlink's DataStream API: all cases of a job are one Flink job.

Where there was a choice:

- To plan and start a Flink job takes a second and more, and so does a pipeline of its own for each
  case. So the cases of a job share one Flink job and its operators. What flows there has its case's
  number, and so has its key: no case meets another's states.
- All sources of a case are one collection, since Flink gives no order between sources, and the
  input log has one. One task reads it.
- A state partition is a `KeyedProcessFunction` behind `key_by`, with a `ValueState`, even if many
  pipelines share it. The state partitions that messages come to first are in one operator, those
  behind them in the next. What is not for an operator goes through it. Steps without state run in
  the task in front of them, as Flink would chain them.
- Keys are texts, with the hex digits of their encoding: Flink takes no bytes for keys.
- Cases with several partitions have operators of two tasks, the others of one. So Flink keeps the
  order of the messages with one key: `order="entity"`.
- Flink runs in a `MiniCluster` that stays: to start one takes seconds, too. Functions run in its
  process (`python.execution-mode: thread`), since a new process for each job would take seconds
  again. So there they make the application from its case.
- Outputs and dead letters leave the job together, through a file: an exception would end the job.
- The states at the end are what Flink has then: a timer for the end of all time gives them, since
  all time has passed when the sources have ended.
- Windows, event time and expiry are left out (`refuse_time`). PyFlink's watermarks come at
  intervals of the system's time, so what is late would depend on how fast a run is. Cases that
  share operators would also share them.
"""

import os
import pickle
import shutil
import sys
import tempfile
from importlib.metadata import version
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

from py4j.protocol import Py4JNetworkError
from pyflink.common import Configuration, Types
from pyflink.datastream import StreamExecutionEnvironment
from pyflink.datastream.functions import FlatMapFunction, KeyedProcessFunction
from pyflink.datastream.state import ValueStateDescriptor
from pyflink.java_gateway import get_gateway
from wallaroo_conformance.adapting.calls import Calls, Message, refuse_time
from wallaroo_conformance.adapting.stages import has_operation, layers, stages
from wallaroo_conformance.cases.building import engine_case
from wallaroo_conformance.worker import serve

from wallaroo.engine import Capabilities
from wallaroo.operations import Stateful
from wallaroo.topology import Source

END_OF_TIME = 2**63 - 1
MOST_TASKS = 2


class Item(NamedTuple):
    """What flows."""

    run: int  # the case's number
    place: str  # the key for `key_by`
    layer: int  # of the state partition that it is for; 0: it is a result
    index: int  # of the step that it is for
    one: object  # a message; of a result an outcome, or a state with its partition and key


class Run:
    """A case, where its functions run, and where its results arrive."""

    def __init__(self, number, case):
        self.number, self.partitions, application = number, case.partitions, case.application
        self.records, self.results, self.states = case.records, [], {}
        self.nodes, self.consumers = application.nodes, application.consumers
        self.sources = {n.pipeline: i for i, n in enumerate(self.nodes) if isinstance(n, Source)}
        self.calls, self.layers = Calls(application), layers(application)

    def follow(self, index, outcomes):
        """Yield what comes of a node's outcomes on the way to the next state partitions."""
        for outcome in outcomes:
            if not isinstance(outcome, Message):
                yield self.result(outcome)
                continue
            for consumer in self.consumers[index]:
                node = self.nodes[consumer]
                if not has_operation(node, Stateful):
                    yield from self.follow(consumer, self.calls.pass_on(node, outcome))
                    continue
                key, partition = self.calls.key(node, outcome), node.operation.partition
                if not isinstance(key, bytes):
                    yield self.result(key)
                    continue
                place = f"{self.number} {key.hex()} {partition}"
                yield Item(self.number, place, self.layers[partition], consumer, outcome)

    def result(self, outcome):
        return Item(self.number, str(self.number), 0, 0, outcome)

    def take(self, one):
        """Note a result."""
        if isinstance(one, tuple):
            partition, key, state = one
            self.states[partition, key] = state
        else:
            self.results.append(one)

    def trace(self):
        return self.calls.trace(self.results, self.states, self.partitions)


def runs_of(cases):
    return {number: Run(number, engine_case(case)) for number, case in cases.items()}


class Begin(FlatMapFunction):
    """Takes records: pairs of a case's number and a sequence."""

    def __init__(self, cases):
        self.cases = cases

    def open(self, context):
        self.runs = runs_of(self.cases)

    def flat_map(self, item):
        number, sequence = item
        run = self.runs[number]
        record = run.records[sequence]
        outcomes = run.calls.begin(sequence, record)
        return run.follow(run.sources[record.source], outcomes) if outcomes else []


class Visit(KeyedProcessFunction):
    """The state partitions of a layer."""

    def __init__(self, cases, layer):
        self.cases, self.layer = cases, layer

    def open(self, context):
        self.runs = runs_of(self.cases)
        descriptor = ValueStateDescriptor("state", Types.PICKLED_BYTE_ARRAY())
        self.state = context.get_state(descriptor)

    def process_element(self, item, context):
        if item.layer != self.layer:
            yield item
            return
        run = self.runs[item.run]
        _, key, _ = parts(item.place)
        outcomes, after = run.calls.visit(run.nodes[item.index], key, item.one, self.state.value())
        if after is not None:
            self.state.update(after)
            context.timer_service().register_event_time_timer(END_OF_TIME)
        yield from run.follow(item.index, outcomes)

    def on_timer(self, timestamp, context):
        number, key, partition = parts(context.get_current_key())
        yield self.runs[number].result((partition, key, self.state.value()))


def parts(place):
    """Return a case's number, a key and a state partition's name."""
    number, key, partition = place.split(" ", 2)
    return int(number), bytes.fromhex(key), partition


class Leave(FlatMapFunction):
    """Writes results to a file."""

    def __init__(self, path):
        self.path = path

    def open(self, context):
        self.items = []

    def flat_map(self, item):
        self.items.append(item)
        return []

    def close(self):
        self.path.write_bytes(pickle.dumps(self.items))


def add(environment, runs, cases, tasks, path):
    """Add cases that have operators of so many tasks."""
    records = [(number, at) for number in cases for at in range(len(runs[number].records))]
    stream = environment.from_collection(records).flat_map(Begin(cases))
    layers = max(max(runs[number].layers.values(), default=0) for number in cases)
    for layer in range(1, layers + 1):
        keyed = stream.key_by(attrgetter("place"), Types.STRING())
        stream = keyed.process(Visit(cases, layer)).set_parallelism(tasks)
    stream.flat_map(Leave(path))


def start_cluster():
    """Start Java, and in it a cluster and Python; return what makes environments of it."""
    os.environ["PYTHONPATH"] = os.pathsep.join([path for path in sys.path if path])
    os.environ.setdefault("JVM_ARGS", "-Xss16m")  # user code may go deep, in Java's threads
    java = get_gateway().jvm.org.apache.flink
    settings = java.configuration.Configuration()
    settings.setString("rest.address", "localhost")
    settings.setString("rest.bind-port", "0")
    builder = java.runtime.minicluster.MiniClusterConfiguration.Builder()
    builder.setConfiguration(settings).setNumSlotsPerTaskManager(MOST_TASKS)
    cluster = java.runtime.minicluster.MiniCluster(builder.build())
    cluster.start()
    address = cluster.getRestAddress().get()
    configuration = Configuration()
    for name, value in {
        "execution.target": "remote",
        "execution.attached": "true",
        "rest.address": address.getHost(),
        "rest.port": str(address.getPort()),
        "python.execution-mode": "thread",
        "python.executable": sys.executable,
    }.items():
        configuration.set_string(name, value)
    make = java.streaming.api.environment.StreamExecutionEnvironment

    def new_environment():
        return StreamExecutionEnvironment(make(configuration._j_configuration))

    first = new_environment()  # its job starts Python, which takes longest
    first.from_collection([0]).map(str)
    first.execute()
    return new_environment


class Flink:
    name = "flink"
    version = version("apache-flink")
    seconds = 60  # a case alone is a Flink job

    def capabilities(self):
        self.new_environment = start_cluster()  # before the hello, so that no case waits for it
        return Capabilities(
            isolation=frozenset({"isolated"}), batches=False, order="entity", stop="none"
        )

    def check(self, application):
        refuse_time(application, "this adapter of Flink")
        stages(application)

    def run(self, case):
        return self.run_many([case])[0]

    def run_many(self, cases):
        made = {number: case.made_from for number, case in enumerate(cases)}
        runs = runs_of(made)
        by_tasks = {}
        for number, run in runs.items():
            if run.records:
                tasks = min(run.partitions or 1, MOST_TASKS)
                by_tasks.setdefault(tasks, {})[number] = made[number]
        try:
            for item in self.results(runs, by_tasks) if by_tasks else ():
                runs[item.run].take(item.one)
        except Py4JNetworkError as error:  # Java is gone: this process has to start again
            print(error, file=sys.stderr, flush=True)
            os._exit(1)
        return [run.trace() for run in runs.values()]

    def results(self, runs, by_tasks):
        """Run cases as one job and yield its results."""
        environment = self.new_environment()
        environment.set_parallelism(1)
        with tempfile.TemporaryDirectory() as folder:
            paths = {tasks: Path(folder, str(tasks)) for tasks in by_tasks}
            for tasks, cases in by_tasks.items():
                add(environment, runs, cases, tasks, paths[tasks])
            environment.execute()
            for path in paths.values():
                yield from pickle.loads(path.read_bytes())  # noqa: S301 - our own bytes


if __name__ == "__main__":
    # Python pickles what a module defines by its name, and what a script defines by value.
    import flink_adapter

    if "JAVA_HOME" not in os.environ and shutil.which("java") is None:
        sys.exit("Flink needs Java: install version 17, or set JAVA_HOME")
    serve(flink_adapter.Flink())
