"""Sources, sinks, and the addresses in an application's arguments."""

from __future__ import annotations

import dataclasses

import pytest

import wallaroo
from wallaroo import (
    TCPSinkConfig,
    TCPSourceConfig,
    WallarooParameterError,
    tcp_parse_input_addrs,
    tcp_parse_output_addrs,
)
from wallaroo.config import format_address, parse_address


@wallaroo.decoder(header_length=4, length_fmt=">I")
def decode(payload):
    return payload


@wallaroo.encoder
def encode(message):
    return message


LONG = "a:" + "9" * 5000


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


def test_config_other_arguments_are_left_alone():
    arguments = [
        "--inner",
        "x:1",
        "--i",
        "y",
        "--outer",
        "--symbols",
        "FILE",
        "-n",
        "5",
        "--in",
        "a:1",
    ]
    before = list(arguments)
    assert tcp_parse_input_addrs(arguments) == [("a", 1)]
    assert arguments == before
    with pytest.raises(WallarooParameterError):
        tcp_parse_output_addrs(arguments)


def test_config_arguments_may_be_a_tuple():
    assert tcp_parse_input_addrs(("--in", "a:1")) == [("a", 1)]


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


def test_config_a_port_may_come_as_text():
    assert TCPSourceConfig("127.0.0.1", "7010", decode).port == 7010
    assert TCPSinkConfig("127.0.0.1", "7002", encode).port == 7002


def test_frame_3_max_size_is_one_mebibyte_unless_told():
    assert TCPSourceConfig("h", 1, decode).max_size == 1 << 20
    assert TCPSourceConfig("h", 1, decode, max_size=0).max_size == 0
    assert TCPSourceConfig("h", 1, decode, 5).max_size == 5


def test_config_is_frozen():
    config = TCPSourceConfig("h", 1, decode)
    with pytest.raises(dataclasses.FrozenInstanceError):
        config.port = 2
    assert config == TCPSourceConfig("h", 1, decode)
