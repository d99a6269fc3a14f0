"""Messages followed from step to step: type checkers find them in components of every form."""

from __future__ import annotations

from typing import Generic, TypeVar, assert_type

from applications import (
    Decoder,
    Encoder,
    FirstLetter,
    Split,
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
from wallaroo.keys import Key

M = TypeVar("M")
N = TypeVar("N")
K = TypeVar("K", bound=Key)


class Stream(Generic[M]):
    """Stands for a pipeline whose messages are known; nothing runs."""

    def __init__(self, source: wallaroo.TCPSourceConfig[M]) -> None:
        """Begin with the decoder's messages."""

    def to(self, computation: kinds.AnyComputation[M, N]) -> Stream[N]:
        """Go on with the computation's messages."""
        raise NotImplementedError

    def key(self, function: kinds.AnyPartitionFunction[M, K]) -> K:
        """Return a key."""
        raise NotImplementedError

    def to_sink(self, sink: wallaroo.TCPSinkConfig[M]) -> None:
        """End with an encoder of the messages."""


@wallaroo.computation(name="shout")
def shout(word: str) -> bytes:
    """Return a word in capitals, encoded."""
    return word.upper().encode()


class Length:
    """A class-based computation."""

    def name(self) -> str:
        """Its name."""
        return "length"

    def compute(self, text: str) -> int | None:
        """Return the length of what is not empty."""
        return len(text) or None


words = Stream(wallaroo.TCPSourceConfig("h", 1, decode))
assert_type(words, Stream[str])
assert_type(Stream(wallaroo.TCPSourceConfig("h", 1, Decoder)), Stream[str])
assert_type(Stream(wallaroo.TCPSourceConfig("h", 1, Decoder())), Stream[str])
assert_type(words.to(split), Stream[str])
assert_type(words.to(split_lazily), Stream[str])
assert_type(words.to(short_ones), Stream[str])
assert_type(words.to(shout), Stream[bytes])
assert_type(words.to(Split), Stream[str])
assert_type(words.to(Split()), Stream[str])
assert_type(words.to(Length), Stream[int])
assert_type(words.to(Length()), Stream[int])
assert_type(words.key(first_letter), str)
assert_type(words.key(FirstLetter), str)
assert_type(words.key(by_length), int)
assert_type(wallaroo.TCPSinkConfig("h", 1, encode), wallaroo.TCPSinkConfig[tuple[str, int]])
assert_type(wallaroo.TCPSinkConfig("h", 1, Encoder), wallaroo.TCPSinkConfig[tuple[str, int]])
