"""Bytewax: a dataflow for each case, in process, by one worker.

Where there was a choice:

- All sources are one `TestingSource`, since Bytewax gives no order between several inputs, and the
  input log has one. An item is a batch of its own there, which is the source's default.
- A state partition is one `stateful_flat_map`, even if several pipelines share it; keys are the hex
  digits of their encoding, since Bytewax's keys are texts.
- Dead letters leave by a branch of their own, as Bytewax's guide to errors has it: an exception in
  a function would end the dataflow.
- Inside a batch Bytewax takes a stateful step's items by key, so `order="entity"` is claimed.
- The states at the end are noted as they are given to Bytewax: it has no way to ask for them.
- Windows, event time and expiry are left out: `refuse_time`.
"""

from importlib.metadata import version

import bytewax.operators as op
from bytewax.dataflow import Dataflow
from bytewax.testing import TestingSink, TestingSource, run_main
from wallaroo_conformance.worker import serve

from wallaroo.engine import Capabilities
from wallaroo.judging.calls import Calls, Message, refuse_time
from wallaroo.judging.stages import stages
from wallaroo.operations import Stateful
from wallaroo.topology import Step


class Bytewax:
    name = "bytewax"
    version = version("bytewax")

    def capabilities(self):
        return Capabilities(
            isolation=frozenset({"isolated"}), batches=False, order="entity", stop="none"
        )

    def check(self, application):
        refuse_time(application, "this adapter of Bytewax")
        stages(application)

    def run(self, case):
        results, states = [], {}
        calls = Calls(case.application)
        run_main(dataflow(case, calls, states, results))
        return calls.trace(results, calls.entities(states, case.partitions))


def dataflow(case, calls, states, results):
    """Return the case's application as a dataflow that fills `states` and `results`."""
    nodes, flow, gone = case.application.nodes, Dataflow("case"), []

    def going_on(name, outcomes):
        """Return the messages of a stream of outcomes; the others go to the results."""
        split = op.branch(f"{name} split", outcomes, lambda one: isinstance(one, Message))
        gone.append(split.falses)
        return split.trues

    records = op.input("log", flow, TestingSource([*enumerate(case.records)]))
    begun = going_on("begin", op.flat_map("begin", records, lambda item: calls.begin(*item)))
    streams = {}
    for index, node in enumerate(nodes):
        if not hasattr(node, "inputs"):
            streams[index] = op.filter(
                f"{index} source", begun, lambda one, source=node.pipeline: one.source == source
            )

    def into(index):
        """Return the stream of messages that come to a node."""
        ups = [streams[origin] for origin in nodes[index].inputs]
        return ups[0] if len(ups) == 1 else op.merge(f"{index} into", *ups)

    for group in stages(case.application):
        node = nodes[group[0]]
        if not (isinstance(node, Step) and isinstance(node.operation, Stateful)):
            made = op.flat_map(
                f"{group[0]} pass on",
                into(group[0]),
                lambda one, node=node: calls.pass_on(node, one),
            )
            streams[group[0]] = going_on(group[0], made)
            continue
        keyed = []
        for index in group:
            found = op.map(
                f"{index} key", into(index), lambda one, index=index: key(calls, nodes, index, one)
            )
            split = op.branch(f"{index} key split", found, lambda one: isinstance(one, tuple))
            gone.append(split.falses)
            keyed.append(split.trues)
        together = keyed[0] if len(keyed) == 1 else op.merge(f"{group[0]} together", *keyed)
        visited = op.stateful_flat_map(
            f"{group[0]} visit",
            together,
            visitor(calls, nodes, node.operation.partition, states),
        )
        for index in group:
            mine = op.filter_map(
                f"{index} mine", visited, lambda item, index=index: item[1].get(index)
            )
            streams[index] = going_on(index, mine)
    op.output("results", op.merge("gone", *gone), TestingSink(results))
    return flow


def key(calls, nodes, index, message):
    found = calls.key(nodes[index], message)
    return (found.hex(), (index, found, message)) if isinstance(found, bytes) else found


def visitor(calls, nodes, partition, states):
    """Return what Bytewax calls with a state and an item: the next state, and what to send."""

    def visit(state, item):
        index, encoded, message = item
        outcomes, state = calls.visit(nodes[index], encoded, message, state)
        states[partition, encoded] = state
        return state, [{index: one} for one in outcomes]

    return visit


if __name__ == "__main__":
    serve(Bytewax())
