"""Quix Streams: a `StreamingDataFrame` for each case, composed as its application does, no broker.

Where there was a choice:

- All sources are one topic of one partition, since Kafka gives no order between partitions, and the
  input log has one. With one partition `group_by` re-keys in process, without a topic.
- A state partition is one `group_by` and one stateful `apply`, even if several pipelines share it:
  in Quix, state belongs to a `group_by`. The store is Quix's `MemoryStore`, within one checkpoint.
- Dead letters are noted where they arise, as one would send them to a topic of their own: an
  exception in a function would end the application or drop the whole frame.
- When an application of Quix ends early, it forgets what came since its last checkpoint, so no
  early stop is claimed.
- A `group_by` behind another is refused by Quix, so a state partition behind another is, too.
- Windows by event time are Quix's own, behind a `group_by`, closed for the whole partition
  (`closing_strategy="partition"`), since the rules have one watermark for all keys. A nanosecond is
  a millisecond there, and times begin a little later: Quix has no windows before its time 0. The
  gap of a session is one unit shorter: in Quix messages exactly a gap apart are one session.
- Quix closes nothing when the input ends. So the end of all sources is a last message, late enough
  to close what is open, as a heartbeat would be. What it opens itself is not looked at.
- Not there: a list of open windows (window-11), and windows that fire before their record goes
  anywhere (time-4). Times past a million are refused: Quix makes a list of all windows that a gap
  in time leaves out. What else is left out is in `refuse_unfolded` and `refuse_expiry`.
"""

import contextvars
import pickle
import tempfile
from base64 import b64decode, b64encode
from importlib.metadata import version

from quixstreams.context import set_message_context
from quixstreams.dataframe import DataFrameRegistry, StreamingDataFrame
from quixstreams.models import MessageContext
from quixstreams.models.topics import Topic, TopicConfig, TopicManager
from quixstreams.processing import ProcessingContext
from quixstreams.sinks import SinkManager
from quixstreams.state import StateStoreManager
from quixstreams.state.memory import MemoryStore
from wallaroo_conformance.worker import serve

from wallaroo.engine import Capabilities
from wallaroo.errors import UnsupportedTopology
from wallaroo.judging.calls import Message, refuse_expiry
from wallaroo.judging.folding import Folding, refuse_unfolded
from wallaroo.judging.stages import stages
from wallaroo.judging.window_calls import WindowCalls
from wallaroo.operations import Stateful, Windowed
from wallaroo.records import End
from wallaroo.topology import Source, Step
from wallaroo.windows import RangeWindows

LOG = Topic("log")
LOG.broker_config = TopicConfig(  # as a broker would give it
    num_partitions=1,
    replication_factor=1,
    extra_config={"retention.ms": "-1", "retention.bytes": "-1"},
)


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
                reason = "Quix allows no group_by behind another"
                raise UnsupportedTopology("state-9", nodes[0].name, reason)
            if grouping or behind:
                grouped.update(group)

    def run(self, case):
        calls = WindowCalls(case.application)
        ended = {record.source for record in case.records if isinstance(record, End)}
        with tempfile.TemporaryDirectory() as place:
            frames = Frames(case.application, calls, place)
            frames.process(enumerate(case.records))
            if ended == set(case.application.sources):
                frames.end()
            entities = calls.entities(frames.states(), case.partitions)
            return calls.trace(frames.results, entities)


def has_operation(node, *kinds):
    return isinstance(node, Step) and isinstance(node.operation, kinds)


class Frames:
    """An application as data frames, with all that a Quix application puts around them."""

    def __init__(self, application, calls, place):
        self.latest = 0  # event time
        self.nodes, self.calls, self.results = application.nodes, calls, []
        self.keys = {}  # of each state partition: stream and keys
        registry = DataFrameRegistry()
        self.context = ProcessingContext(
            commit_interval=3600.0,
            producer=None,
            consumer=None,
            state_manager=StateStoreManager(state_dir=place, default_store_type=MemoryStore),
            sink_manager=SinkManager(),
            dataframe_registry=registry,
        )
        self.context.init_checkpoint()
        root = StreamingDataFrame(
            LOG,
            topic_manager=TopicManager(topic_admin=None, consumer_group="conformance"),
            registry=registry,
            processing_context=self.context,
        )
        registry.register_root(root)
        begun = root.apply(self.begun, expand=True)
        self.streams = {}
        for index, node in enumerate(self.nodes):
            if isinstance(node, Source):
                self.streams[index] = begun[
                    begun.apply(lambda one, source=node.pipeline: one.source in (source, ""))
                ]
        for group in stages(application):
            node = self.nodes[group[0]]
            if has_operation(node, Stateful):
                self.add_partition(node.operation.partition, group)
            elif has_operation(node, Windowed):
                self.add_windows(group[0], node, node.operation.windows)
            else:
                self.streams[group[0]] = self.into(group[0]).apply(
                    lambda one, node=node: self.passed_on(node, one), expand=True
                )
        self.log = registry.compose_all()["log"]

    def going_on(self, outcomes):
        """Return the messages among outcomes, and note the others."""
        self.results += [one for one in outcomes if not isinstance(one, Message)]
        return [one for one in outcomes if isinstance(one, Message)]

    def begun(self, item):
        """Return a record's message; the end of all sources is a message without lineage."""
        messages = [item] if isinstance(item, Message) else self.going_on(self.calls.begin(*item))
        self.latest = max([self.latest, *[message.time for message in messages]])
        return messages

    def passed_on(self, node, message):
        if not message.lineage:
            return [] if not isinstance(node, Step) else [message]
        return self.going_on(self.calls.pass_on(node, message))

    def into(self, index):
        """Return the stream of messages that come to a node."""
        first, *others = [self.streams[origin] for origin in self.nodes[index].inputs]
        for other in others:
            first = first.concat(other)
        return first

    def add_partition(self, partition, group):
        """Add the steps over a state partition."""

        def keyed(index):
            def find(message):
                if not message.lineage:
                    return []
                key = self.calls.key(self.nodes[index], message)
                if isinstance(key, bytes):
                    return [(index, key, message)]
                return self.going_on([key])

            return self.into(index).apply(find, expand=True)

        together, *others = [keyed(index) for index in group]
        for other in others:
            together = together.concat(other)
        grouped = together.group_by(lambda item: item[1], name=partition)
        keys = set()

        def visit(item, state):
            index, key, message = item
            known = state.get(partition)
            before = None if known is None else b64decode(known)
            outcomes, after = self.calls.visit(self.nodes[index], key, message, before)
            if after is not None:
                state.set(partition, b64encode(after).decode())
                keys.add(key)
            return [(index, one) for one in self.going_on(outcomes)]

        visited = grouped.apply(visit, stateful=True, expand=True)
        self.context.state_manager.on_partition_assign(grouped.stream_id, 0, {})
        self.keys[partition] = (grouped.stream_id, keys)
        for index in group:
            mine = visited[visited.apply(lambda item, index=index: item[0] == index)]
            self.streams[index] = mine.apply(lambda item: item[1])

    def add_windows(self, index, step, windows):
        """Add a window step; what its windows hold is kept as text, as Quix stores JSON."""
        folding = Folding(self.calls, step, self.results.append)

        def find(message):
            key = self.calls.key(step, message) if message.lineage else b""
            return [(key, message)] if isinstance(key, bytes) else self.going_on([key])

        begin = 0
        if isinstance(windows, RangeWindows):
            begin = (windows.range // windows.slide + 1) * windows.slide

        def time(item, *_):
            if item[1].time > 10**6:
                raise UnsupportedTopology("time-2", step.name, "the adapter refuses such a time")
            return item[1].time + begin

        def reduced(held, item):
            return text_of(folding.add(held_in(held), *item)) if item[1].lineage else held

        def late(item, _, time, by, *__):  # once for each window that has closed
            if not item[1].lineage:
                return False
            if isinstance(windows, RangeWindows):
                newest = time // windows.slide * windows.slide + windows.range
                if newest > time + by:
                    folding.partly_late(item[1])
                    return False
            self.results.extend(folding.late(*item))
            return False

        keyed = self.into(index).apply(find, expand=True).set_timestamp(time)
        grouped = keyed.group_by(lambda item: item[0], name=f"windows {index}")
        if not isinstance(windows, RangeWindows):
            defined = grouped.session_window(windows.gap - 1, windows.delay, on_late=late)
        elif windows.slide == windows.range:
            defined = grouped.tumbling_window(windows.range, windows.delay, on_late=late)
        else:
            defined = grouped.hopping_window(
                windows.range, windows.slide, windows.delay, on_late=late
            )
        closed = defined.reduce(
            reducer=reduced,
            initializer=lambda item: reduced(text_of({}), item),
            merger=lambda held, other: text_of(folding.join(held_in(held), held_in(other))),
        ).final(closing_strategy="partition")
        self.streams[index] = closed.apply(
            lambda window, key, *_: self.going_on(
                folding.give(held_in(window["value"]), key, window["start"] - begin)
            ),
            metadata=True,
            expand=True,
        )
        self.context.state_manager.on_partition_assign(grouped.stream_id, 0, {})

    def end(self):
        """Close all windows."""
        steps = [node.operation.windows for node in self.nodes if has_operation(node, Windowed)]
        longest = [
            getattr(one, "range", 0) + 2 * getattr(one, "gap", 0) + one.delay for one in steps
        ]
        self.process([Message((), "", None, b"", time=self.latest + 2 * max(longest, default=0))])

    def process(self, items):
        for offset, item in enumerate(items):
            context = contextvars.copy_context()
            context.run(set_message_context, MessageContext("log", 0, offset, 0))
            context.run(self.log, item, b"", 0, None)

    def states(self):
        """Return the states that Quix's store has, by state partition and key."""
        found = {}
        for partition, (stream, keys) in self.keys.items():
            transaction = self.context.checkpoint.get_store_transaction(stream, 0)
            for key in keys:
                state = transaction.as_state(prefix=key).get(partition)
                found[partition, key] = None if state is None else b64decode(state)
        return found


def text_of(folded):
    return b64encode(pickle.dumps(folded)).decode()


def held_in(text):
    return pickle.loads(b64decode(text))  # noqa: S301 - our own bytes


if __name__ == "__main__":
    serve(Quix())
