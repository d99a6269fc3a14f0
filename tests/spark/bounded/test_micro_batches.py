"""What each micro-batch of a job is given; no test here needs a JVM."""

from small_steps import decode
from wallaroo_spark.bounded.micro_batches import StreamCase, StreamJob
from wallaroo_spark.bounded.traces import Records
from wallaroo_spark.wire.job import CaseSpec, Report

import wallaroo
from wallaroo.engine import Case, TaskFault

FAULTS = (TaskFault(0, stage=1), TaskFault(2, attempts=2), TaskFault(2, stage=1))


def case(*, faults, batches):
    builder = wallaroo.ApplicationBuilder("app")
    builder.new_pipeline("p", wallaroo.TCPSourceConfig("127.0.0.1", 0, decode)).done()
    records = Records(Case(builder.build(), [("p", b"a")] * batches))
    spec = CaseSpec(b"an application", partitions=1, isolated=True, faults=faults)
    return StreamCase(spec, records, [(number, number + 1) for number in range(batches)])


def test_recover_1_a_fault_happens_in_its_micro_batch_alone():
    job = StreamJob([case(faults=FAULTS, batches=4), case(faults=(), batches=2)], shards=1)
    first, second = job.numbers
    given = []
    while blocks := job.next_batch():
        cases = [one for block in blocks for one in block.cases.items()]
        given.append({number: spec.faults for number, spec in cases})
        job.take(Report())
    assert [faults[first] for faults in given] == [FAULTS[:1], (), FAULTS[1:], ()]
    assert [faults.get(second) for faults in given] == [(), (), None, None]
