"""The published variants of source configs and addresses."""

from __future__ import annotations

import logging

from small_windows import decode_event

from wallaroo import (
    GenSourceConfig,
    TCPSinkConfig,
    TCPSourceConfig,
    config,
    tcp_parse_input_addrs,
)


class Numbers:
    def initial_value(self):
        return 0

    def apply(self, last):
        return None


def test_config_a_source_with_and_without_a_name():
    plain = TCPSourceConfig("127.0.0.1", 7010, decode_event)
    assert TCPSourceConfig("events", "127.0.0.1", "7010", decode_event) == plain
    assert TCPSourceConfig("events", "127.0.0.1", 7010, decode_event, max_size=9).max_size == 9
    assert TCPSourceConfig("127.0.0.1", 7010, decode_event, 9).max_size == 9


def test_config_addresses_with_and_without_a_name():
    found = tcp_parse_input_addrs(["--in", "events@127.0.0.1:7010,127.0.0.1:7011"])
    assert found == [("events", "127.0.0.1", 7010), ("127.0.0.1", 7011)]
    for address in found:
        assert TCPSourceConfig(*address, decode_event).host == "127.0.0.1"


def test_config_a_generator_with_and_without_a_name():
    assert GenSourceConfig("numbers", Numbers()).address == GenSourceConfig(Numbers()).address


def test_config_later_arguments_have_no_effect_which_is_said_once(caplog, monkeypatch):
    monkeypatch.setattr(config, "_said", set())
    with caplog.at_level(logging.WARNING, "wallaroo"):
        for _ in range(2):
            TCPSourceConfig(
                "127.0.0.1", 0, decode_event, parallelism=4, valid=True, max_received_count=9
            )
            GenSourceConfig(Numbers(), parallelism=4)
    assert [record.getMessage().split(" is accepted")[0] for record in caplog.records] == [
        "TCPSourceConfig: the argument max_received_count",
        "TCPSourceConfig: the argument parallelism",
        "TCPSourceConfig: the argument valid",
        "GenSourceConfig: the argument parallelism",
    ]


def test_config_a_sink_s_parallelism_is_accepted():
    assert TCPSinkConfig("127.0.0.1", 7002, _encoder(), parallelism=2).port == 7002


def _encoder():
    class Encoder:
        def encode(self, message):
            return b""

    return Encoder()
