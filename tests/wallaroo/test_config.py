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


@pytest.mark.parametrize("arguments", [[], ["a:1"], ["--inp", "a:1"], ["--", "--in", "a:1"]])
def test_config_a_missing_option_says_what_to_write(arguments):
    with pytest.raises(WallarooParameterError, match="wants --in; write --in HOST:PORT"):
        tcp_parse_input_addrs(arguments)
    with pytest.raises(WallarooParameterError, match="wants --out; write --out HOST:PORT"):
        tcp_parse_output_addrs(arguments)


def test_config_an_option_without_its_address():
    with pytest.raises(WallarooParameterError, match="--in has no address after it"):
        tcp_parse_input_addrs(["--in"])
    with pytest.raises(WallarooParameterError, match="--in has no address after it"):
        tcp_parse_input_addrs(["--in", "--out", "a:1"])


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a",
        ":1",
        "a:",
        "a:b",
        "a:1,",
        ",a:1",
        "a:1,,b:2",
        "a:65536",
        "a:-1",
        "a:1.5",
        "a:²",
        "a:" + 5000 * "9",
    ],
)
def test_config_an_address_is_host_and_port(text):
    with pytest.raises(WallarooParameterError) as caught:
        tcp_parse_input_addrs(["--in", text])
    assert len(str(caught.value)) < 6_000


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


@pytest.mark.parametrize("port", [-1, 65536, "x", "", None, 7010.0, True, b"7010", "-1", " 1"])
def test_config_a_port_is_one(port):
    for config, component in ((TCPSourceConfig, decode), (TCPSinkConfig, encode)):
        with pytest.raises(WallarooParameterError, match=f"{config.__name__}: a port is a number"):
            config("127.0.0.1", port, component)


@pytest.mark.parametrize("host", ["", None, 1, b"127.0.0.1"])
def test_config_a_host_is_text(host):
    for config, component in ((TCPSourceConfig, decode), (TCPSinkConfig, encode)):
        with pytest.raises(WallarooParameterError, match=f"{config.__name__}: host is a non-empty"):
            config(host, 1, component)


def test_frame_3_max_size_is_one_mebibyte_unless_told():
    assert TCPSourceConfig("h", 1, decode).max_size == 1 << 20
    assert TCPSourceConfig("h", 1, decode, max_size=0).max_size == 0
    assert TCPSourceConfig("h", 1, decode, 5).max_size == 5


@pytest.mark.parametrize("size", [-1, "1", None, 1.0, True])
def test_frame_3_max_size_is_a_number_of_bytes(size):
    with pytest.raises(WallarooParameterError, match="max_size is a number of bytes"):
        TCPSourceConfig("h", 1, decode, max_size=size)


def plain(data):
    return data


def test_build_1_a_plain_function_is_no_decoder_and_no_encoder():
    with pytest.raises(WallarooParameterError, match=r"TCPSourceConfig: plain .*wallaroo\.decoder"):
        TCPSourceConfig("h", 1, plain)
    with pytest.raises(WallarooParameterError, match=r"TCPSinkConfig: plain .*@wallaroo\.encoder"):
        TCPSinkConfig("h", 1, plain)


def test_build_1_decoder_and_encoder_in_each_others_place():
    with pytest.raises(WallarooParameterError, match="encode is not a decoder"):
        TCPSourceConfig("h", 1, encode)
    with pytest.raises(WallarooParameterError, match="decode is not an encoder"):
        TCPSinkConfig("h", 1, decode)


def test_config_is_frozen():
    config = TCPSourceConfig("h", 1, decode)
    with pytest.raises(dataclasses.FrozenInstanceError):
        config.port = 2
    assert config == TCPSourceConfig("h", 1, decode)
