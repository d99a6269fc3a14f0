"""What the driver makes of reports; no test here needs a JVM."""

import pytest
from small_steps import decode, encode
from wallaroo_spark.plans.reports import first_end, outputs_of
from wallaroo_spark.wire.lineages import order_of
from wallaroo_spark.wire.outbox import End, Finished, Outputs

import wallaroo


def application():
    builder = wallaroo.ApplicationBuilder("app")
    for name, sinks in (("p", 3), ("q", 1)):
        builder.new_pipeline(name, wallaroo.TCPSourceConfig("127.0.0.1", 0, decode))
        builder.to_sinks([wallaroo.TCPSinkConfig("127.0.0.1", 1, encode)] * sinks)
    return builder.build()


APPLICATION = application()
SINKS = {APPLICATION.nodes.index(sink): sink for sink in APPLICATION.sinks.values()}
LINEAGES = [(0,), (1, 0), (1, 2), (2, -1, (50, b"a")), (2, -1, (50, b"b"), 0), (2,), (4,)]
CALLS = [(lineage, node) for lineage in LINEAGES for node in SINKS]
"""Calls of encoders in their order: by lineage, then by sink."""


def finished():
    """What two tasks report, each of which has made some of the calls."""
    total = Finished()
    for task in (1, 0):
        for node in SINKS:
            lineages = [lineage for lineage, at in CALLS[task::2] if at == node]
            total.outputs.append(Outputs(node, lineages, [b"%r" % (one,) for one in lineages]))
    return total


@pytest.mark.parametrize("number", range(len(CALLS)))
def test_dead_4_sinks_get_what_precedes_the_call_at_which_the_run_ended(number):
    report = finished()
    for lineage, node in reversed(CALLS[number:]):
        report.ends.append(End(order_of(lineage, node, SINKS[node].index), "on-error"))
    found = outputs_of(APPLICATION, report, first_end(report).order)
    assert {sink: [*outputs] for sink, outputs in found.items()} == {
        sink.id: [b"%r" % (lineage,) for lineage, at in CALLS[:number] if at == node]
        for node, sink in SINKS.items()
    }
