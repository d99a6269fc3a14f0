"""The published variants of source configs and addresses."""

from __future__ import annotations

import logging

import pytest
from small_windows import decode_event, when

from wallaroo import (
    GenSourceConfig,
    TCPSinkConfig,
    TCPSourceConfig,
    WallarooParameterError,
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


@pytest.mark.parametrize("idle_after", [0, -1, 1.5, True, "1"])
def test_config_idle_after_that_is_no_duration(idle_after):
    with pytest.raises(WallarooParameterError, match="TCPSourceConfig: idle_after"):
        TCPSourceConfig("127.0.0.1", 0, decode_event, event_time=when, idle_after=idle_after)
    with pytest.raises(WallarooParameterError, match="GenSourceConfig: idle_after"):
        GenSourceConfig(Numbers(), event_time=when, idle_after=idle_after)


@pytest.mark.parametrize("event_time", [5, "time", object()])
def test_config_an_event_time_that_is_no_function(event_time):
    with pytest.raises(WallarooParameterError, match=r"TCPSourceConfig: .*event_time"):
        TCPSourceConfig("127.0.0.1", 0, decode_event, event_time=event_time)


@pytest.mark.parametrize(
    ("make", "names"),
    [
        (lambda: TCPSourceConfig("127.0.0.1", 0), "HOST, PORT, DECODER"),
        (lambda: TCPSourceConfig(), "HOST, PORT, DECODER"),
        (lambda: TCPSourceConfig("127.0.0.1", 0, decode_event, other=1), "HOST, PORT, DECODER"),
        (lambda: GenSourceConfig(), "GENERATOR"),
        (lambda: GenSourceConfig(Numbers(), Numbers()), "GENERATOR"),
    ],
)
def test_config_missing_and_unknown_arguments(make, names):
    with pytest.raises(WallarooParameterError, match=rf"Write: wallaroo\.\w+\({names}\)"):
        make()


def test_config_a_sink_s_parallelism_is_accepted():
    assert TCPSinkConfig("127.0.0.1", 7002, _encoder(), parallelism=2).port == 7002


def _encoder():
    class Encoder:
        def encode(self, message):
            return b""

    return Encoder()
