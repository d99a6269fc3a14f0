"""Quix Streams: a `StreamingDataFrame` for each case, composed as its application does, no broker.

Where there was a choice:

- All sources are one topic of one partition, since Kafka gives no order between partitions, and the
  input log has one. With one partition `group_by` re-keys in process, without a topic.
- A state partition is one `group_by` and one stateful `apply`, even if several pipelines share it:
  in Quix, state belongs to a `group_by`, and none may stand behind another.
- Dead letters are noted where they arise, as one would send them to a topic of their own: an
  exception in a function would end the application or drop the frame. An application that ends
  early forgets what came since its last checkpoint, so no early stop is claimed.
- Windows by event time are Quix's own, behind a `group_by`, closed for the whole partition, since
  the rules have one watermark for all keys. A nanosecond is a millisecond there, and times begin a
  little later: Quix has no windows before its time 0. The gap of a session is one unit shorter: in
  Quix messages exactly a gap apart are one session.
- Quix closes nothing when the input ends. So after the end of all sources comes a heartbeat, late
  enough to close what is open, as its users send one.
- Not there: a list of open windows (window-11), windows that fire before their record goes
  anywhere, and an order of those that are due together (time-4). Times past a million are refused:
  Quix makes a list of all windows that a gap in time leaves out. What else is left out is in
  `refuse_unfolded` and `refuse_expiry`.
"""

import functools
import pickle
import tempfile
from importlib.metadata import version

from quixstreams.context import set_message_context
from quixstreams.dataframe import DataFrameRegistry, StreamingDataFrame
from quixstreams.models import MessageContext
from quixstreams.models.topics import Topic, TopicConfig, TopicManager
from quixstreams.processing import ProcessingContext
from quixstreams.sinks import SinkManager
from quixstreams.state import StateStoreManager
from quixstreams.state.memory import MemoryStore
from wallaroo_conformance.adapting.calls import Calls, Message, refuse_expiry
from wallaroo_conformance.adapting.stages import has_operation, stages
from wallaroo_conformance.adapting.windows import Folding, refuse_unfolded
from wallaroo_conformance.worker import serve

from wallaroo.engine import Capabilities
from wallaroo.errors import UnsupportedTopology
from wallaroo.operations import Stateful, Windowed
from wallaroo.records import End
from wallaroo.topology import Source
from wallaroo.windows import RangeWindows

LOG = Topic("log")
LOG.broker_config = TopicConfig(1, 1, {"retention.ms": "-1"})  # one partition, one replica
HEARTBEAT = (0, b"", None)  # in place of a step's index, a key and a message


class Quix:
    name = "quixstreams"
    version = version("quixstreams")

    def capabilities(self):
        return Capabilities(
            isolation=frozenset({"isolated"}),
            batches=False,
            stop="none",
            unsupported_rules=frozenset({"time-4", "window-11"}),
        )

    def check(self, application):
        refuse_expiry(application, "this adapter of Quix Streams")
        refuse_unfolded(application, "Quix")
        grouped = set()
        for group in stages(application):
            nodes = [application.nodes[index] for index in group]
            behind = any(origin in grouped for node in nodes for origin in node.inputs)
            grouping = has_operation(nodes[0], Stateful, Windowed)
            if grouping and behind:
                raise UnsupportedTopology("state-9", nodes[0].name, "Quix nests no group_by")
            if grouping or behind:
                grouped.update(group)

    def run(self, case):
        calls = Calls(case.application)
        ended = {record.source for record in case.records if isinstance(record, End)}
        with tempfile.TemporaryDirectory() as place:
            frames = Frames(case.application, calls, place)
            frames.process(enumerate(case.records))
            if ended == set(case.application.sources):
                frames.process([HEARTBEAT])
            states = {place: state.get_bytes(place[0]) for place, state in frames.stored.items()}
            return calls.trace(frames.results, states, case.partitions)


class Frames:
    """An application as data frames, with all that a Quix application puts around them."""

    def __init__(self, application, calls, place):
        self.nodes, self.calls, self.results = application.nodes, calls, []
        self.latest = 0  # event time
        self.stored = {}  # Quix's state of each state partition and key
        registry = DataFrameRegistry()
        context = ProcessingContext(
            commit_interval=3600.0,
            producer=None,
            consumer=None,
            state_manager=StateStoreManager(state_dir=place, default_store_type=MemoryStore),
            sink_manager=SinkManager(),
            dataframe_registry=registry,
        )
        context.init_checkpoint()
        root = StreamingDataFrame(
            LOG,
            topic_manager=TopicManager(topic_admin=None, consumer_group="conformance"),
            registry=registry,
            processing_context=context,
        )
        registry.register_root(root)
        self.heartbeats = root.filter(lambda item: item == HEARTBEAT)
        begun = root.filter(lambda item: item != HEARTBEAT).apply(self.begun, expand=True)
        self.streams = {
            index: begun.filter(lambda message, name=node.pipeline: message.source == name)
            for index, node in enumerate(self.nodes)
            if isinstance(node, Source)
        }
        for group in stages(application):
            node = self.nodes[group[0]]
            if has_operation(node, Stateful):
                self.add_partition(node.operation.partition, group)
            elif has_operation(node, Windowed):
                self.add_windows(group[0], node, node.operation.windows)
            else:
                self.streams[group[0]] = self.into(group[0]).apply(
                    lambda message, node=node: self.going_on(calls.pass_on(node, message)),
                    expand=True,
                )
        for stream in registry.get_stream_ids("log"):
            context.state_manager.on_partition_assign(stream, 0, {})
        self.log = registry.compose_all()["log"]

    def going_on(self, outcomes):
        """Return the messages among outcomes, and note the others."""
        self.results += [outcome for outcome in outcomes if not isinstance(outcome, Message)]
        return [outcome for outcome in outcomes if isinstance(outcome, Message)]

    def begun(self, item):
        messages = self.going_on(self.calls.begin(*item))
        self.latest = max([self.latest, *[message.time for message in messages]])
        return messages

    def into(self, index):
        """Return the messages that come to a node."""
        return joined([self.streams[origin] for origin in self.nodes[index].inputs])

    def keyed(self, index):
        """Return what comes to a step with state or windows: its index, the key, a message."""

        def keyed_message(message):
            key = self.calls.key(self.nodes[index], message)
            return [(index, key, message)] if isinstance(key, bytes) else self.going_on([key])

        return self.into(index).apply(keyed_message, expand=True)

    def add_partition(self, partition, group):
        """Add the steps over a state partition."""

        def visit(item, state):
            index, key, message = item
            before = state.get_bytes(partition)
            outcomes, after = self.calls.visit(self.nodes[index], key, message, before)
            if after is not None:
                state.set_bytes(partition, after)
                self.stored[partition, key] = state
            return [(index, outcome) for outcome in self.going_on(outcomes)]

        grouped = by_key([self.keyed(index) for index in group], partition)
        visited = grouped.apply(visit, stateful=True, expand=True)
        for index in group:
            mine = visited.filter(lambda item, index=index: item[0] == index)
            self.streams[index] = mine.apply(lambda item: item[1])

    def add_windows(self, index, step, windows):
        """Add a window step; what its windows hold is kept as text, as Quix stores JSON."""
        folding = Folding(self.calls, step, self.results.append)
        ranges = isinstance(windows, RangeWindows)
        wait = windows.range + windows.delay if ranges else 0
        begin = (wait // windows.slide + 1) * windows.slide if ranges else 0
        longest = (windows.range if ranges else 2 * windows.gap) + windows.delay

        def time(item, *_):
            at = self.latest + 2 * longest if item == HEARTBEAT else item[2].time
            if at > 10**6:
                raise UnsupportedTopology("time-2", step.name, "the adapter refuses such a time")
            return at + begin

        def added(held, item):
            return held if item == HEARTBEAT else text_of(folding.add(held_in(held), *item[1:]))

        def late(item, _, time, by, *__):  # once for each window that has closed
            if item == HEARTBEAT:
                return
            if ranges and time // windows.slide * windows.slide + windows.range > time + by:
                folding.partly_late(item[2])  # its newest window is open
            else:
                self.results.extend(folding.late(*item[1:]))

        def given(window, key, *_):
            start = window["start"] - begin
            return self.going_on(folding.give(held_in(window["value"]), key, start))

        grouped = by_key([self.keyed(index), self.heartbeats], f"windows {index}")
        reduced = windows_of(grouped.set_timestamp(time), windows, late).reduce(
            reducer=added,
            initializer=lambda item: added(text_of({}), item),
            merger=lambda held, other: text_of(folding.join(held_in(held), held_in(other))),
        )
        closed = reduced.final(closing_strategy="partition")
        self.streams[index] = closed.apply(given, metadata=True, expand=True)

    def process(self, items):
        for offset, item in enumerate(items):
            set_message_context(MessageContext("log", 0, offset, 0))
            self.log(item, b"", 0, None)


def joined(streams):
    return functools.reduce(StreamingDataFrame.concat, streams)


def by_key(streams, name):
    return joined(streams).group_by(lambda item: item[1], name=name)


def windows_of(grouped, windows, late):
    """Return Quix's windows for those of a step."""
    if not isinstance(windows, RangeWindows):
        return grouped.session_window(windows.gap - 1, windows.delay, on_late=late)
    if windows.slide == windows.range:
        return grouped.tumbling_window(windows.range, windows.delay, on_late=late)
    return grouped.hopping_window(windows.range, windows.slide, windows.delay, on_late=late)


def text_of(folded):
    return pickle.dumps(folded).hex()


def held_in(text):
    return pickle.loads(bytes.fromhex(text))  # noqa: S301 - our own bytes


if __name__ == "__main__":
    serve(Quix())
