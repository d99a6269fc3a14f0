"""An adapter to copy: a dictionary of states, and one message at a time, depth first.

`Calls` calls the user code and judges its results. The rest is the engine's work: which message
goes where, when, and which state belongs to which key.

It does not stop early: a run goes on after its first dead letter (`stop="none"`).
"""

from wallaroo_conformance.adapting.calls import Calls, Message, refuse_time
from wallaroo_conformance.adapting.stages import has_operation
from wallaroo_conformance.worker import serve

from wallaroo.engine import Capabilities
from wallaroo.operations import Stateful


class Naive:
    name = "naive"
    version = "1"

    def capabilities(self):
        return Capabilities(isolation=frozenset({"isolated"}), stop="none")

    def check(self, application):
        refuse_time(application, "the naive adapter")

    def run(self, case):
        application, calls = case.application, Calls(case.application)
        first = {node.pipeline: index for index, node in reversed([*enumerate(application.nodes)])}
        states, results = {}, []

        def follow(index, outcomes):
            for outcome in outcomes:
                if not isinstance(outcome, Message):
                    results.append(outcome)  # an output, a dead letter, an end
                    continue
                for consumer in application.consumers[index]:
                    follow(consumer, step(application.nodes[consumer], outcome))

        def step(node, message):
            if not has_operation(node, Stateful):
                return calls.pass_on(node, message)
            key = calls.key(node, message)
            if not isinstance(key, bytes):
                return [key]
            entity = (node.operation.partition, key)
            outcomes, states[entity] = calls.visit(node, key, message, states.get(entity))
            return outcomes

        for sequence, record in enumerate(case.records):
            outcomes = calls.begin(sequence, record)
            if outcomes:
                follow(first[record.source], outcomes)
        return calls.trace(results, states, case.partitions)


if __name__ == "__main__":
    serve(Naive())
