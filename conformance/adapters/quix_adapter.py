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
- Windows, event time and expiry are left out: `refuse_time`.
"""

import contextvars
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
from wallaroo.judging.calls import Calls, Message, refuse_time
from wallaroo.judging.stages import stages
from wallaroo.operations import Stateful
from wallaroo.topology import Source, Step

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
        return Capabilities(isolation=frozenset({"isolated"}), batches=False, stop="none")

    def check(self, application):
        refuse_time(application, "this adapter of Quix Streams")
        grouped = set()
        for group in stages(application):
            nodes = [application.nodes[index] for index in group]
            behind = any(origin in grouped for node in nodes for origin in node.inputs)
            if is_stateful(nodes[0]) and behind:
                reason = "Quix allows no group_by behind another"
                raise UnsupportedTopology("state-9", nodes[0].name, reason)
            if is_stateful(nodes[0]) or behind:
                grouped.update(group)

    def run(self, case):
        calls = Calls(case.application)
        frames = Frames(case.application, calls)
        frames.process(enumerate(case.records))
        return calls.trace(frames.results, calls.entities(frames.states(), case.partitions))


def is_stateful(node):
    return isinstance(node, Step) and isinstance(node.operation, Stateful)


class Frames:
    """An application as data frames, with all that a Quix application puts around them."""

    def __init__(self, application, calls):
        self.nodes, self.calls, self.results = application.nodes, calls, []
        self.keys = {}  # of each state partition: stream and keys
        registry = DataFrameRegistry()
        self.context = ProcessingContext(
            commit_interval=3600.0,
            producer=None,
            consumer=None,
            state_manager=StateStoreManager(default_store_type=MemoryStore),
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
        begun = root.apply(lambda item: self.going_on(calls.begin(*item)), expand=True)
        self.streams = {}
        for index, node in enumerate(self.nodes):
            if isinstance(node, Source):
                self.streams[index] = begun[
                    begun.apply(lambda one, source=node.pipeline: one.source == source)
                ]
        for group in stages(application):
            node = self.nodes[group[0]]
            if is_stateful(node):
                self.add_partition(node.operation.partition, group)
            else:
                self.streams[group[0]] = self.into(group[0]).apply(
                    lambda one, node=node: self.going_on(calls.pass_on(node, one)), expand=True
                )
        self.log = registry.compose_all()["log"]

    def going_on(self, outcomes):
        """Return the messages among outcomes, and note the others."""
        self.results += [one for one in outcomes if not isinstance(one, Message)]
        return [one for one in outcomes if isinstance(one, Message)]

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


if __name__ == "__main__":
    serve(Quix())
