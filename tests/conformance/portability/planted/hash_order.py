"""An application with a fault planted: it depends on the order of hashing."""

from __future__ import annotations

import wallaroo


@wallaroo.decoder(header_length=4, length_fmt=">I")
def decode(payload: bytes) -> str:
    return payload.decode(errors="replace")


class Tally:
    def __init__(self) -> None:
        self.count = 0
        self.words: list[object] = []


@wallaroo.partition
def by_word(word: str) -> str:
    return word[:1]


@wallaroo.state_computation(name="tally")
def tally(word: str, state: Tally) -> tuple[object, bool]:
    state.words.append(word)
    # Two words stand in one order with the hash seeds 0 and 1, in the other with 2.
    return ",".join({"ann", "alf"}) if word == "b" else word, True


@wallaroo.encoder
def encode(message: object) -> str:
    return f"{message}\n"


def application_setup(args: list[str]) -> wallaroo.Application:
    (host, port), *_ = wallaroo.tcp_parse_input_addrs(args)
    (to_host, to_port), *_ = wallaroo.tcp_parse_output_addrs(args)
    builder = wallaroo.ApplicationBuilder("planted")
    builder.new_pipeline("words", wallaroo.TCPSourceConfig(host, port, decode))
    builder.to_state_partition(tally, Tally, "tallies", by_word)
    builder.to_sink(wallaroo.TCPSinkConfig(to_host, to_port, encode))
    return builder.build()
