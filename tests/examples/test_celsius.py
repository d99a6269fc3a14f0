"""From a Kafka topic to another, without a broker (kafka-7, kafka-13)."""

from wallaroo import KafkaRecord

SOURCE = "Celsius Conversion"


def test_degrees_and_keys(application, run):
    records = [
        KafkaRecord(b"100", b"kitchen"),
        KafkaRecord(b"-40.0", partition=1, timestamp=5),
        KafkaRecord(None, b"kitchen"),
        b"warm",
    ]
    result = run(application("celsius_kafka"), {SOURCE: records})
    assert [(one.value, one.key) for one in result.output] == [
        (b"212.0", b"kitchen"),
        (b"-40.0", None),
    ]
    (letter,) = result.dead_letters
    assert (letter.lineage, letter.reason, letter.payload) == ((4,), "decode", b"warm")


def test_a_topic_is_asked_for_and_a_placeholder_stands_for_it(application):
    """`wallaroo check` needs no topic; one that is there is kept."""
    options = ["--kafka_source_topic", "celsius", "--kafka_source_brokers", "a:1,b"]
    source = application("celsius_kafka", *options).sources[SOURCE].config
    assert source.address == "topic celsius at a:1,b:9092"
    assert (
        application("celsius_kafka").sources[SOURCE].config.address == "topic TOPIC at 127.0.0.1:0"
    )
