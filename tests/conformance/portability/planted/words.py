"""An application with the faults that its argument `--fault` names, for words that begin with b."""

from __future__ import annotations

import random
import secrets
from collections.abc import Callable
from datetime import datetime

import wallaroo

SEEN: list[str] = []


@wallaroo.decoder(header_length=4, length_fmt=">I")
def decode(payload: bytes) -> str:
    return payload.decode(errors="replace")


class Tally:
    def __init__(self) -> None:
        self.words: list[object] = []


@wallaroo.partition
def by_word(word: str) -> str:
    return word[:1]


def hashed(_state: Tally) -> str:
    # Two words stand in one order with the hash seeds 0 and 1, in the other with 2.
    return ",".join({"ann", "alf"})


def seen(_state: Tally) -> int:
    SEEN.append("b")
    return len(SEEN)


FAULTS: dict[str, Callable[[Tally], object]] = {
    "none": lambda state: len(state.words),
    "address": id,
    "chance": lambda _: random.random(),
    "system's chance": lambda _: secrets.token_hex(),
    "clock": lambda _: datetime.now().hour,
    "hash order": hashed,
    "process": seen,
    "shared": lambda state: state.words,
    "unflagged": lambda state: len(state.words),
    "unpicklable": lambda _: lambda: 0,
}


@wallaroo.encoder
def encode(message: object) -> str:
    return f"{message}\n"


def application_setup(args: list[str]) -> wallaroo.Application:
    fault = args[args.index("--fault") + 1] if "--fault" in args else "none"
    faults = fault.split(", ")

    @wallaroo.state_computation(name="tally")
    def tally(word: str, state: Tally) -> tuple[object, bool]:
        if fault != "unpicklable":  # else the altered state is a second finding
            state.words.append(word)
        changed = fault != "unflagged" or word != "b"
        return [FAULTS[one](state) for one in faults] if word == "b" else word, changed

    (host, port), *_ = wallaroo.tcp_parse_input_addrs(args)
    (to_host, to_port), *_ = wallaroo.tcp_parse_output_addrs(args)
    builder = wallaroo.ApplicationBuilder("planted")
    builder.new_pipeline("words", wallaroo.TCPSourceConfig(host, port, decode))
    builder.to_state_partition(tally, Tally, "tallies", by_word)
    builder.to_sink(wallaroo.TCPSinkConfig(to_host, to_port, encode))
    return builder.build()
