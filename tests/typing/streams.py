"""Pipelines, whose messages and keys type checkers follow from step to step."""

from __future__ import annotations

from typing import assert_type

from applications import (
    Decoder,
    Encoder,
    FirstLetter,
    Split,
    Totals,
    TotalsBuilder,
    by_length,
    decode,
    encode,
    first_letter,
    short_ones,
    split,
    split_lazily,
)

import wallaroo
from wallaroo import kinds


@wallaroo.computation(name="shout")
def shout(word: str) -> bytes:
    return word.upper().encode()


class Length:
    def name(self) -> str:
        return "length"

    def compute(self, text: str) -> int | None:
        return len(text) or None


@wallaroo.key_extractor
def last_letter(word: str) -> str:
    return word[-1]


class LastLetter:
    def extract_key(self, word: str) -> str:
        return word[-1]


@wallaroo.state_computation(name="total", state=Totals)
def total(word: str, totals: Totals) -> int | None:
    totals.counts[word] = 1
    return len(totals.counts)


@wallaroo.state_computation(name="in a dict", state=dict, expire_after=wallaroo.seconds(1))
def in_a_dict(word: str, counts: dict[str, int]) -> int:
    counts[word] = counts.get(word, 0) + 1
    return counts[word]


@wallaroo.state_computation_multi(name="totals", state=TotalsBuilder(), state_name="total")
def totals(word: str, totals: Totals) -> list[bytes]:
    totals.counts[word] = 1
    return [word.encode()] * 2


class Longest:
    def initial_accumulator(self) -> list[str]:
        return []

    def update(self, word: str, words: list[str]) -> None:
        words.append(word)

    def combine(self, earlier: list[str], later: list[str]) -> list[str]:
        return earlier + later

    def output(self, letter: str, words: list[str]) -> tuple[str, int] | None:
        return letter, max(map(len, words))


class Rate:
    def initial_accumulator(self) -> int:
        return 0

    def update(self, word: str, count: int) -> int:
        return count + 1

    def combine(self, earlier: int, later: int) -> int:
        return earlier + later

    def output(self, key: object, count: int, window: kinds.Bounds) -> float:
        return count / (window.end - window.start)


class Numbers:
    def initial_value(self) -> int:
        return 0

    def apply(self, last: int) -> int | None:
        return last + 1 if last < 10 else None


@wallaroo.encoder
def anything(message: object) -> str:
    return str(message)


def when(word: str) -> int:
    return len(word)


words = wallaroo.source("words", wallaroo.TCPSourceConfig("h", 1, decode))
keyed = words.key_by(first_letter)
sink = wallaroo.TCPSinkConfig("h", 1, encode)
rate = wallaroo.range_windows(wallaroo.seconds(1)).with_slide(wallaroo.milliseconds(100)).over(Rate)
second = wallaroo.range_windows(wallaroo.seconds(1))
other: wallaroo.Pipeline = words  # an annotation need not name messages and keys

# Sources
assert_type(words, wallaroo.Pipeline[str, tuple[()]])
assert_type(wallaroo.TCPSourceConfig("h", 1, Decoder), wallaroo.TCPSourceConfig[str])
assert_type(wallaroo.TCPSourceConfig("h", 1, Decoder(), 99), wallaroo.TCPSourceConfig[str])
assert_type(wallaroo.TCPSourceConfig("name", "h", "1", decode), wallaroo.TCPSourceConfig[str])
assert_type(
    wallaroo.TCPSourceConfig("h", 1, decode, event_time=when, parallelism=2),
    wallaroo.TCPSourceConfig[str],
)
assert_type(wallaroo.GenSourceConfig(Numbers), wallaroo.GenSourceConfig[int])
assert_type(wallaroo.GenSourceConfig("name", Numbers()), wallaroo.GenSourceConfig[int])

# Computations
assert_type(words.to(split), wallaroo.Pipeline[str, tuple[()]])
assert_type(words.to(split_lazily), wallaroo.Pipeline[str, tuple[()]])
assert_type(words.to(short_ones), wallaroo.Pipeline[str, tuple[()]])
assert_type(words.to_parallel(shout), wallaroo.Pipeline[bytes, tuple[()]])
assert_type(words.to(Split), wallaroo.Pipeline[str, tuple[()]])
assert_type(words.to(Split()), wallaroo.Pipeline[str, tuple[()]])
assert_type(words.to(Length), wallaroo.Pipeline[int, tuple[()]])
assert_type(words.to(Length()), wallaroo.Pipeline[int, tuple[()]])

# Keys
assert_type(keyed, wallaroo.Pipeline[str, str])
assert_type(keyed.collect(), wallaroo.Pipeline[str, tuple[()]])
assert_type(words.key_by(FirstLetter), wallaroo.Pipeline[str, str])
assert_type(words.key_by(by_length), wallaroo.Pipeline[str, int])
assert_type(words.key_by(last_letter), wallaroo.Pipeline[str, str])
assert_type(words.key_by(LastLetter()), wallaroo.Pipeline[str, str])
assert_type(keyed.merge(words.to(shout).collect()), wallaroo.Pipeline[str | bytes, str | tuple[()]])

# State
assert_type(keyed.to(total), wallaroo.Pipeline[int, str])
assert_type(keyed.to(in_a_dict), wallaroo.Pipeline[int, str])
assert_type(keyed.to(totals), wallaroo.Pipeline[bytes, str])

# Windows
assert_type(keyed.to(second.over(Longest)), wallaroo.Pipeline[tuple[str, int], str])
assert_type(keyed.to(second.over(Longest())), wallaroo.Pipeline[tuple[str, int], str])
assert_type(words.to(wallaroo.count_windows(2).over(Rate)), wallaroo.Pipeline[float, tuple[()]])
assert_type(words.to(rate), wallaroo.Pipeline[float, tuple[()]])
assert_type(keyed.to(rate), wallaroo.Pipeline[float, str])
assert_type(keyed.to(wallaroo.session_windows(2).over(Rate())), wallaroo.Pipeline[float, str])

# Sinks
assert_type(sink, wallaroo.TCPSinkConfig[tuple[str, int]])
assert_type(wallaroo.TCPSinkConfig("h", 1, Encoder), wallaroo.TCPSinkConfig[tuple[str, int]])
wallaroo.build_application(
    "words",
    keyed.to(second.over(Longest)).to_sinks([sink, sink]),
    words.to(Length()).to_sink(wallaroo.TCPSinkConfig("h", 1, anything)),
    keyed.to(total).done(),
)
