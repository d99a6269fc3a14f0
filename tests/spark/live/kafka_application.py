"""Counts the words of a topic, which go to a peer over TCP: for live runs that read Kafka."""

import wallaroo


@wallaroo.kafka_decoder
def whole(record):
    return None if record.value is None else f"{record.partition} {record.value.decode()}"


class Count:
    def __init__(self):
        self.count = 0


@wallaroo.key_extractor
def word(message):
    return message.split()[1]


@wallaroo.state_computation(name="count", state=Count)
def count(message, state):
    if message.endswith("bad"):
        raise ValueError(message)
    state.count += 1
    return f"{message} {state.count}"


@wallaroo.encoder
def line(message):
    return message + "\n"


def application_setup(args):
    """Options: --out PORT, --topic TOPIC, --brokers ADDRESS."""
    given = dict(zip(args[::2], args[1::2], strict=False))
    source = wallaroo.KafkaSourceConfig(
        given["--topic"],
        given["--brokers"],
        whole,
        until="end",
        kafka={"sasl.password": "nobody sees this"},
    )
    pipeline = wallaroo.source("kafka", source).key_by(word).to(count)
    sink = wallaroo.TCPSinkConfig("127.0.0.1", int(given["--out"]), line)
    return wallaroo.build_application("counted", pipeline.to_sink(sink))
