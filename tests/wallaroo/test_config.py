"""Sources, sinks, and the addresses in an application's arguments."""

import logging

import pytest
from builder_parts import Numbers
from small_steps import decode

from wallaroo import (
    GenSourceConfig,
    TCPSourceConfig,
    config,
    tcp_parse_input_addrs,
    tcp_parse_output_addrs,
)
from wallaroo.config import format_address, parse_address


@pytest.mark.parametrize("option", ["--in", "-i", "--input"])
@pytest.mark.parametrize("joined", [False, True])
def test_config_input_addresses(option, joined):
    value = "127.0.0.1:7010,example.org:7011"
    arguments = [f"{option}={value}"] if joined and option != "-i" else [option, value]
    assert tcp_parse_input_addrs(["--first", "x", *arguments, "--last"]) == [
        ("127.0.0.1", 7010),
        ("example.org", 7011),
    ]


@pytest.mark.parametrize("option", ["--out", "-o", "--output"])
def test_config_output_addresses(option):
    assert tcp_parse_output_addrs(["--in", "a:1", option, "b:2,c:3"]) == [("b", 2), ("c", 3)]


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("a:0", ("a", 0)),
        ("a:65535", ("a", 65535)),
        (" a:1 ", ("a", 1)),
        ("[::1]:7010", ("::1", 7010)),
        ("::1:7010", ("::1", 7010)),
    ],
)
def test_config_addresses_read(text, address):
    assert parse_address(text) == address


@pytest.mark.parametrize(("host", "text"), [("127.0.0.1", "127.0.0.1:7"), ("::1", "[::1]:7")])
def test_config_addresses_are_written_as_they_are_read(host, text):
    assert format_address(host, 7) == text
    assert parse_address(text) == (host, 7)


def test_frame_3_max_size_is_one_mebibyte_unless_told():
    assert TCPSourceConfig("h", 1, decode).max_size == 1 << 20
    assert TCPSourceConfig("h", 1, decode, max_size=0).max_size == 0
    assert TCPSourceConfig("h", 1, decode, 5).max_size == 5


def test_config_a_source_with_and_without_a_name():
    plain = TCPSourceConfig("127.0.0.1", 7010, decode)
    assert TCPSourceConfig("events", "127.0.0.1", "7010", decode) == plain
    assert TCPSourceConfig("events", "127.0.0.1", 7010, decode, max_size=9).max_size == 9
    assert TCPSourceConfig("127.0.0.1", 7010, decode, 9).max_size == 9


def test_config_addresses_with_and_without_a_name():
    found = tcp_parse_input_addrs(["--in", "events@127.0.0.1:7010,127.0.0.1:7011"])
    assert found == [("events", "127.0.0.1", 7010), ("127.0.0.1", 7011)]
    for address in found:
        assert TCPSourceConfig(*address, decode).host == "127.0.0.1"


def test_config_later_arguments_have_no_effect_which_is_said_once(caplog, monkeypatch):
    monkeypatch.setattr(config, "_said", set())
    with caplog.at_level(logging.WARNING, "wallaroo"):
        for _ in range(2):
            TCPSourceConfig("127.0.0.1", 0, decode, parallelism=4, valid=True, max_received_count=9)
            GenSourceConfig(Numbers(), parallelism=4)
    assert [record.getMessage().split(" is accepted")[0] for record in caplog.records] == [
        "TCPSourceConfig: the argument max_received_count",
        "TCPSourceConfig: the argument parallelism",
        "TCPSourceConfig: the argument valid",
        "GenSourceConfig: the argument parallelism",
    ]
