"""What sinks get of what encoders give."""

import wallaroo


class Chunk(bytes):
    pass


def test_sink_1_bytes_of_another_type_become_bytes(app, run):
    result = run(app(encoder=wallaroo.encoder(lambda message: Chunk(b"c"))), [b"a"])
    assert [type(output) for output in result.output] == [bytes]
