"""Kafka sources and sinks as the language has them: forms, options, refusals, partitions."""

import pickle
import re
from datetime import UTC, datetime

import pytest
from small_steps import Values, decode, encode, record

import wallaroo
from wallaroo.errors import WallarooParameterError
from wallaroo.kafka import KafkaSinkConfig, KafkaSourceConfig
from wallaroo.kafka_records import murmur2, partition_of

PAIRS = [("a", 9092), ("b", 7)]


@pytest.mark.parametrize(
    ("given", "named"),
    [
        (("in", "a,b:7", decode), {}),
        (("in", PAIRS, decode), {}),
        (("in", [("a", "9092"), "b:7"], decode), {}),
        (("name", "in", "a,b:7", decode), {}),
        (("in", PAIRS, "Warn", decode), {}),
        (("name", "in", PAIRS, "Warn", decode), {}),
        (("in",), {"brokers": PAIRS, "decoder": decode}),
        ((), {"topic": "in", "brokers": PAIRS, "decoder": decode}),
    ],
)
def test_a_source_is_written_in_any_published_form(given, named):
    config = KafkaSourceConfig(*given, **named)
    assert (config.topic, config.brokers, config.log_level) == ("in", tuple(PAIRS), "Warn")
    assert config == KafkaSourceConfig("in", PAIRS, decode)


@pytest.mark.parametrize(
    ("given", "named"),
    [
        (("out", "a,b:7", encode), {}),
        (("out", PAIRS, "Warn", 0, 1_000_000, encode), {}),
        (("out", PAIRS, "Warn", "0", "1000000", encode), {}),
        ((), {"topic": "out", "brokers": "a,b:7", "encoder": encode}),
    ],
)
def test_a_sink_is_written_in_any_published_form(given, named):
    assert KafkaSinkConfig(*given, **named) == KafkaSinkConfig("out", PAIRS, encode)


@pytest.mark.parametrize(
    ("named", "said"),
    [
        ({"topic": "a b"}, "a topic is 1 to 249 letters"),
        ({"topic": ".."}, "a topic is"),
        ({"brokers": "a:b"}, "brokers: 'a:b': a port is a number"),
        ({"brokers": []}, 'brokers: write "HOST:PORT,HOST:PORT"'),
        ({"brokers": [("a", 1, 2)]}, "brokers: "),
        ({"decoder": len}, "expected a decoder"),
        ({"log_level": "loud"}, "log_level is Fine, Info, Warn or Error"),
        ({"partitions": []}, "partitions is a list of different partitions"),
        ({"partitions": [1, 1]}, "partitions is a list of different partitions"),
        ({"partitions": [-1]}, "a partition is a number, 0 or more"),
        ({"start": "now"}, 'start is "earliest", "latest", a time'),
        ({"start": datetime(2026, 1, 1)}, "start is"),
        ({"start": {0: -1}}, "an offset is a number"),
        ({"until": "now"}, 'until is "end" or None'),
        ({"group": ""}, "group is a name"),
        ({"isolation_level": "all"}, "isolation_level is read_committed or read_uncommitted"),
        ({"idle_after": 0}, "idle_after is 1 or more"),
        ({"kafka": 5}, "kafka is a dict of the client's options"),
    ],
)
def test_what_a_source_cannot_be_is_refused(named, said):
    usual = {"topic": "in", "brokers": "a:1", "decoder": decode}
    with pytest.raises(WallarooParameterError, match=re.escape(said)):
        KafkaSourceConfig(**{**usual, **named})


@pytest.mark.parametrize(
    ("given", "named", "said"),
    [
        (("out", "a:1"), {}, "encoder is missing"),
        (("out", "a:1", encode), {"topic": "x"}, "topic is there twice"),
        (("out", "a:1", encode, 1), {}, "too many"),
        (("out", "a:1", encode), {"delivery": "never"}, "delivery is exactly-once or at-least"),
        (("out", "a:1", encode), {"partitions": 0}, "partitions is a number, 1 or more"),
        (("out", "a:1", encode), {"max_message_size": 0}, "max_message_size is a number, 1 or"),
    ],
)
def test_what_a_sink_cannot_be_is_refused(given, named, said):
    with pytest.raises(WallarooParameterError, match=re.escape(said)):
        KafkaSinkConfig(*given, **named)


def test_start_is_a_word_a_time_or_offsets():
    def start(value):
        return KafkaSourceConfig("in", "a:1", decode, start=value).start

    assert start("latest") == "latest"
    assert start(datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)) == start(10**9) == 10**9
    assert start({2: 7, 0: 3}) == ((0, 3), (2, 7))


# -- further options (kafka-17) --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("option", "reason"),
    [
        ("auto.offset.reset", "start="),
        ("enable.auto.commit", "kafka-3"),
        ("isolation.level", "isolation_level="),
        ("partitioner", "kafka-13"),
        ("transactional.id", "kafka-15"),
        ("group.id", "group="),
        ("acks", "kafka-15"),
        ("bootstrap.servers", "brokers="),
    ],
)
def test_an_option_of_the_client_that_breaks_a_rule_is_refused_with_the_reason(
    option, reason, tmp_path
):
    said = (
        f"the option {re.escape(option)} is not yours to set \\(kafka-17\\): .*{re.escape(reason)}"
    )
    for kind, component in ((KafkaSourceConfig, decode), (KafkaSinkConfig, encode)):
        with pytest.raises(WallarooParameterError, match=said):
            kind("t", "a:1", component, kafka={option: "x"})
    file = tmp_path / "client.properties"
    file.write_text(f"# comment\n\n{option} = x\n")
    config = KafkaSourceConfig("t", "a:1", decode, kafka=file)  # it is read when a run begins
    with pytest.raises(WallarooParameterError, match=said):
        config.kafka.read()


def test_options_from_a_file_are_read_when_a_run_begins(tmp_path):
    file = tmp_path / "client.properties"
    config = KafkaSourceConfig("t", "a:1", decode, kafka=str(file))
    with pytest.raises(WallarooParameterError, match="cannot be read: No such file"):
        config.kafka.read()
    file.write_text("sasl.username=me\n  sasl.password = a=b \n")
    assert config.kafka.read() == {"log_level": 2, "sasl.username": "me", "sasl.password": "a=b"}
    file.write_text("s3cret\n")
    with pytest.raises(WallarooParameterError, match="line 1: write NAME=VALUE") as raised:
        config.kafka.read()
    assert "s3cret" not in str(raised.value)


@pytest.mark.parametrize("value", ["s3cret", ["s3cret"]])
def test_no_secret_is_shown(value):
    try:
        config = KafkaSourceConfig("t", "a:1", decode, kafka={"sasl.password": value})
    except WallarooParameterError as error:
        shown = str(error)
    else:
        shown = repr(config) + str(config) + config.address
        assert b"s3cret" not in pickle.dumps(config)
    assert "s3cret" not in shown
    assert "sasl.password" in shown


# -- components ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("decoder", "whole"), [(decode, False), (record, True), (Values, False)])
def test_a_decoder_gets_the_value_or_the_record(decoder, whole):
    config = pickle.loads(pickle.dumps(KafkaSourceConfig("t", "a:1", decoder)))
    assert (config.decoder.whole, config.whole) == (whole, whole)
    assert config.decoder.call(b"x") == b"x"


def test_the_records_own_time_is_for_kafka_alone():
    config = KafkaSourceConfig("t", "a:1", decode, event_time=wallaroo.kafka_timestamp)
    assert pickle.loads(pickle.dumps(config)).whole
    with pytest.raises(WallarooParameterError, match="only records of Kafka have a timestamp"):
        wallaroo.TCPSourceConfig("h", 0, decode, event_time=wallaroo.kafka_timestamp)
    with pytest.raises(WallarooParameterError, match="decodes records of Kafka"):
        wallaroo.TCPSourceConfig("h", 0, record)


# -- the command line ------------------------------------------------------------------------------

_SOURCE = ["--kafka_source_topic", "in", "--kafka_source_brokers", "a,b:7", "--other"]
_SINK = ["--kafka_sink_topic=out", "--kafka_sink_brokers=a:1"]


def test_published_options_give_published_tuples():
    assert wallaroo.kafka_parse_source_options(_SOURCE) == ("in", PAIRS, "Warn")
    assert wallaroo.kafka_parse_sink_options(_SINK) == ("out", [("a", 1)], "Warn", 0, 1_000_000)
    further = ["--kafka_sink_log_level", "Info", "--kafka_sink_max_produce_buffer_ms", "5"]
    further += ["--kafka_sink_max_message_size", "99"]
    found = wallaroo.kafka_parse_sink_options(_SINK + further)
    assert found == ("out", [("a", 1)], "Info", 5, 99)
    config = KafkaSinkConfig(*found, encode)
    assert config.max_message_size == 99
    told = {"log_level": 6, "linger.ms": 5, "message.max.bytes": 20_099}
    assert config.kafka.read() == told
    config = KafkaSinkConfig(*found, encode, kafka={"linger.ms": 7, "batch.size": 9})
    assert config.kafka.read() == told | {"linger.ms": 7, "batch.size": 9}


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ([], "the application wants --kafka_source_topic; write --kafka_source_topic TOPIC"),
        (_SOURCE[:2], "write --kafka_source_brokers HOST:PORT,HOST:PORT"),
        (["--kafka_source_topic"], "--kafka_source_topic has no value after it"),
        ([*_SOURCE[:3], "a:b"], "--kafka_source_brokers: brokers: 'a:b'"),
    ],
)
def test_an_option_that_is_missing_or_wrong_is_named(args, said):
    with pytest.raises(WallarooParameterError, match=re.escape(said)):
        wallaroo.kafka_parse_source_options(args)


def test_parsers_make_configurations():
    source = wallaroo.DefaultKafkaSourceCLIParser(decode, until="end")(_SOURCE)
    assert source == KafkaSourceConfig("in", PAIRS, decode, until="end")
    sink = wallaroo.DefaultKafkaSinkCLIParser(encode)(_SINK)
    assert sink == KafkaSinkConfig("out", "a:1", encode)
    args = ["--x_kafka_source_topic=t", "--x_kafka_source_brokers=a", *_SOURCE]
    assert wallaroo.CustomKafkaSourceCLIParser("x", decode)(args).topic == "t"
    args = ["--x_kafka_sink_topic=t", "--x_kafka_sink_brokers=a"]
    assert wallaroo.CustomKafkaSinkCLIParser("x", encode)(args).topic == "t"
    with pytest.raises(WallarooParameterError, match="letters, digits and underscores"):
        wallaroo.CustomKafkaSinkCLIParser("x y", encode)


# -- partitions (kafka-13) -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_keys_are_hashed_as_by_java(key, expected):
    """The published vectors of Kafka's own tests."""
    assert murmur2(key) == expected % 2**32
    assert partition_of(key, 0, 12) == (expected & 0x7FFFFFFF) % 12


def test_without_a_key_the_number_of_the_record_decides():
    assert [partition_of(None, number, 3) for number in (0, 4, 2**40)] == [0, 1, 2**40 % 3]
