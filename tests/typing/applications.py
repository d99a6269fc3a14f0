"""One application in both forms of the API, as a user with a strict type checker writes it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import wallaroo
from wallaroo import kinds, testing


@wallaroo.decoder(header_length=4, length_fmt=">I")
def decode(payload: bytes) -> str:
    return payload.decode("utf-8")


@wallaroo.computation_multi(name="split")
def split(text: str) -> list[str]:
    return text.split()


@wallaroo.computation_multi(name="split lazily")
def split_lazily(text: str) -> Iterator[str]:
    yield from text.split()


@wallaroo.computation(name="short ones")
def short_ones(word: str) -> str | None:
    return word if len(word) < 10 else None


class Totals:
    def __init__(self) -> None:
        self.counts: dict[str, int] = {}


@wallaroo.state_computation(name="count")
def count(word: str, totals: Totals) -> tuple[tuple[str, int], bool]:
    totals.counts[word] = totals.counts.get(word, 0) + 1
    return (word, totals.counts[word]), True


@wallaroo.state_computation_multi(name="count twice")
def count_twice(word: str, totals: Totals) -> tuple[list[tuple[str, int]] | None, bool]:
    counted, changed = count(word, totals)
    return [counted, counted], changed


@wallaroo.partition
def first_letter(word: str) -> str:
    return word[0]


@wallaroo.partition
def by_length(word: str) -> int:
    return len(word)


@wallaroo.encoder
def encode(counted: tuple[str, int]) -> str:
    word, number = counted
    return f"{word} => {number}\n"


class Decoder:
    def header_length(self) -> int:
        return 4

    def payload_length(self, header: bytes) -> int:
        return int.from_bytes(header, "big")

    def decode(self, payload: bytes) -> str:
        return payload.decode("utf-8")


class Split:
    def name(self) -> str:
        return "split"

    def compute_multi(self, data: str) -> list[str]:
        return data.split()


class Shout(kinds.Computation[str, str]):
    def name(self) -> str:
        return "shout"

    def compute(self, text: str) -> str | None:
        return text.upper() or None


class Count:
    def name(self) -> str:
        return "count"

    def compute(self, data: str, state: Totals) -> tuple[tuple[str, int] | None, bool]:
        state.counts[data] = state.counts.get(data, 0) + 1
        return (data, state.counts[data]), True


class CountTwice:
    def name(self) -> str:
        return "count twice"

    def compute_multi(self, data: str, state: Totals) -> tuple[list[tuple[str, int]] | None, bool]:
        state.counts[data] = state.counts.get(data, 0) + 1
        return [(data, state.counts[data])] * 2, True


class TotalsBuilder:
    def build(self) -> Totals:
        return Totals()


class FirstLetter:
    def partition(self, data: str) -> str:
        return data[0]


class Encoder:
    def encode(self, message: tuple[str, int]) -> bytes:
        return f"{message[0]} => {message[1]}\n".encode()


def application_setup(args: Sequence[str]) -> wallaroo.Application:
    in_host, in_port = wallaroo.tcp_parse_input_addrs(args)[0]
    out_host, out_port = wallaroo.tcp_parse_output_addrs(args)[0]
    return (
        wallaroo.ApplicationBuilder("Word Count")
        .new_pipeline("decorated", wallaroo.TCPSourceConfig(in_host, in_port, decode))
        .to(split)
        .to_parallel(split_lazily)
        .to(short_ones)
        .to_state_partition(count, Totals, "totals", first_letter, ["a", "b"])
        .to_sinks([wallaroo.TCPSinkConfig(out_host, out_port, encode)])
        .new_pipeline("classes", wallaroo.TCPSourceConfig(in_host, 0, Decoder))
        .to(Split)
        .to(Shout)
        .to_parallel(Shout())
        .to_state_partition(Count(), TotalsBuilder(), "other totals", FirstLetter)
        .to_sink(wallaroo.TCPSinkConfig(out_host, out_port, Encoder()))
        .build()
    )


application: wallaroo.Application = application_setup(["--in", "h:1", "--out", "h:2"])
words: list[str] = split("a b")
more: list[str] = split.compute_multi("a b")
text: str = decode(b"a")
again: str = decode.decode(b"a")
letter: str = first_letter.partition("word")
pair: tuple[tuple[str, int], bool] = count.compute("word", Totals())
length: int = decode.payload_length(b"\0\0\0\1") + decode.header_length()
name: str = count.name()
outputs: list[bytes] = testing.run(application, {"classes": [b"a b"]}).outputs["classes", 0]
