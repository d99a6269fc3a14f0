"""Bytewax: a dataflow for each case, in process, by one worker.

Where there was a choice:

- All sources are one `TestingSource`, since Bytewax gives no order between several inputs, and the
  input log has one. An item is a batch of its own there, which is the source's default.
- A state partition is one `stateful_flat_map`, even if several pipelines share it; keys are the hex
  digits of their encoding, since Bytewax's keys are texts.
- Dead letters leave by a branch of their own, as Bytewax's guide to errors has it: an exception in
  a function would end the dataflow.
- Inside a batch Bytewax takes a stateful step's items by key, so `order="entity"` is claimed. It
  takes one branch before another: branches that bring a message to one state twice are refused.
- The states at the end are noted as they are given to Bytewax: it has no way to ask for them.
- Windows by event time are Bytewax's own, `fold_window` by key, with `ordered=False`: the rules
  take messages in the order of their lineage, not of their times. A nanosecond is a microsecond
  there, the smallest time that Bytewax has. Its clock adds elapsed system time to the watermark;
  here the clock stands still, so that a run depends on its log alone.
- The gap of a session is one unit shorter: in Bytewax messages exactly a gap apart are one session.
- Not there: windows that stay open when the input ends (all are closed), a list of open windows
  (window-11), and an order in which windows fire (time-4): each key has its own watermark. What
  else is left out is in `refuse_unfolded` and `refuse_expiry`.
"""

from datetime import UTC, datetime, timedelta
from importlib.metadata import version

import bytewax.operators as op
import bytewax.operators.windowing as windowing
from bytewax.dataflow import Dataflow
from bytewax.testing import TestingSink, TestingSource, run_main
from wallaroo_conformance.adapting.calls import Calls, Message, refuse_expiry
from wallaroo_conformance.adapting.stages import has_operation, refuse_branches_that_meet, stages
from wallaroo_conformance.adapting.windows import Folding, refuse_unfolded
from wallaroo_conformance.worker import serve

from wallaroo.engine import Capabilities
from wallaroo.errors import UnsupportedTopology
from wallaroo.operations import Stateful, Windowed
from wallaroo.records import End
from wallaroo.windows import RangeWindows

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
LAST = (datetime(9999, 1, 1, tzinfo=UTC) - EPOCH) // timedelta(microseconds=1)


class Bytewax:
    name = "bytewax"
    version = version("bytewax")

    def capabilities(self):
        return Capabilities(
            isolation=frozenset({"isolated"}),
            batches=False,
            order="entity",
            stop="none",
            unsupported_rules=frozenset({"time-4", "window-11"}),
        )

    def check(self, application):
        refuse_expiry(application, "this adapter of Bytewax")
        stages(application)
        refuse_branches_that_meet(application, "Bytewax")
        refuse_unfolded(application, "Bytewax")

    def run(self, case):
        ended = {record.source for record in case.records if isinstance(record, End)}
        if case.application.window_steps and ended != set(case.application.sources):
            reason = "Bytewax closes all windows when its input ends"
            raise UnsupportedTopology("time-5", "input", reason)
        results, states = [], {}
        calls = Calls(case.application)
        try:
            run_main(dataflow(case, calls, states, results))
        except Exception as error:  # noqa: BLE001 - raised again
            cause = error  # Bytewax tells the step, and behind it what was raised
            while cause.__cause__ is not None:
                cause = cause.__cause__
            raise cause from None
        return calls.trace(results, states, case.partitions)


def dataflow(case, calls, states, results):
    """Return the case's application as a dataflow that fills `states` and `results`."""
    nodes, flow, gone = case.application.nodes, Dataflow("case"), []

    def going_on(name, outcomes):
        """Return the messages of a stream of outcomes; the others go to the results."""
        split = op.branch(f"{name} split", outcomes, lambda outcome: isinstance(outcome, Message))
        gone.append(split.falses)
        return split.trues

    records = op.input("log", flow, TestingSource([*enumerate(case.records)]))
    begun = going_on("begin", op.flat_map("begin", records, lambda item: calls.begin(*item)))
    streams = {}
    for index, node in enumerate(nodes):
        if not hasattr(node, "inputs"):
            streams[index] = op.filter(
                f"{index} source",
                begun,
                lambda message, source=node.pipeline: message.source == source,
            )

    def into(index):
        """Return the stream of messages that come to a node."""
        ups = [streams[origin] for origin in nodes[index].inputs]
        return ups[0] if len(ups) == 1 else op.merge(f"{index} into", *ups)

    def keyed(index):
        """Return what comes to a step with state or windows, with its key."""
        keys = op.map(
            f"{index} key", into(index), lambda message: key(calls, nodes[index], message, index)
        )
        split = op.branch(f"{index} key split", keys, lambda item: isinstance(item, tuple))
        gone.append(split.falses)
        return split.trues

    for group in stages(case.application):
        node = nodes[group[0]]
        if has_operation(node, Windowed):
            folding = Folding(calls, node, results.append)
            given = windowed(str(group[0]), keyed(group[0]), node.operation.windows, folding)
            streams[group[0]] = going_on(group[0], given)
            continue
        if not has_operation(node, Stateful):
            made = op.flat_map(
                f"{group[0]} pass on",
                into(group[0]),
                lambda message, node=node: calls.pass_on(node, message),
            )
            streams[group[0]] = going_on(group[0], made)
            continue
        ups = [keyed(index) for index in group]
        together = ups[0] if len(ups) == 1 else op.merge(f"{group[0]} together", *ups)
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


def key(calls, node, message, index):
    if has_operation(node, Windowed) and message.time > LAST:
        raise UnsupportedTopology("time-2", node.name, "Python's datetimes end before this time")
    encoded = calls.key(node, message)
    return (encoded.hex(), (index, encoded, message)) if isinstance(encoded, bytes) else encoded


def visitor(calls, nodes, partition, states):
    """Return what Bytewax calls with a state and an item: the next state, and what to send."""

    def visit(state, item):
        index, encoded, message = item
        outcomes, state = calls.visit(nodes[index], encoded, message, state)
        states[partition, encoded] = state
        return state, [{index: outcome} for outcome in outcomes]

    return visit


def windowed(name, keyed, windows, folding):
    """Return what a window step gives: outcomes."""
    clock = windowing.EventClock(
        lambda item: EPOCH + unit(item[2].time),
        unit(windows.delay),
        now_getter=lambda: EPOCH,
        to_system_utc=lambda _: None,
    )
    slide = 0
    if isinstance(windows, RangeWindows):
        slide = windows.slide
        windower = windowing.SlidingWindower(unit(windows.range), unit(slide), EPOCH)
    else:
        windower = windowing.SessionWindower(unit(windows.gap - 1))

    def give(item):
        key, (number, folded) = item
        return folding.give(folded, bytes.fromhex(key), number * slide)

    folded = windowing.fold_window(
        *(f"{name} window", keyed, clock, windower),
        *(dict, lambda folded, item: folding.add(folded, *item[1:]), folding.join),
        ordered=False,
    )
    given = op.flat_map(f"{name} give", folded.down, give)
    late = op.flat_map(f"{name} late", folded.late, lambda item: folding.late(*item[1][1][1:]))
    return op.merge(f"{name} together", given, late)


def unit(nanoseconds):
    return timedelta(microseconds=nanoseconds)


if __name__ == "__main__":
    serve(Bytewax())
