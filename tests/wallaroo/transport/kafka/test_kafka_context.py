"""The trace that a record belongs to, and what goes on to its outputs."""

from wallaroo.kafka_records import Produced
from wallaroo.transport.kafka.context import Contexts, carry_on, contexts_of

PARENT = ("traceparent", b"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
STATE = ("tracestate", b"a=1")
OWN = ("traceparent", b"00-11111111111111111111111111111111-2222222222222222-01")


def output(number, *headers):
    return Produced(b"", None, 0, headers, 0, number)


def test_only_headers_of_the_trace_are_kept_by_offset():
    assert contexts_of(3, {3: None, 5: [("x", b"")]}) == Contexts({}, 3)
    contexts = contexts_of(3, {3: [("x", b""), PARENT, STATE], 7: [PARENT], 8: None})
    assert contexts == Contexts({3: (PARENT, STATE), 7: (PARENT,)}, 3)
    assert [contexts.behind(2).of(at) for at in range(4)] == [(), (), (PARENT,), ()]


def test_outputs_get_what_caused_them_had_unless_the_encoder_gave_its_own():
    outputs = [output(20), output(20, ("x", b"")), output(21), output(22, OWN), b"to a TCP sink"]
    carry_on(outputs, Contexts({5: (PARENT, STATE), 7: (PARENT,)}, 5), 20)
    assert outputs == [
        output(20, PARENT, STATE),
        output(20, ("x", b""), PARENT, STATE),
        output(21),
        output(22, OWN),
        b"to a TCP sink",
    ]
