"""Word count in classes: `word_count.py` once more, in the other published form of the API.

A component is any object with the right methods. Those without state may be handed over as classes;
state computations and state builders are instances. Both forms mix freely.

In a shell pipe, without a network::

    wallaroo run examples/word_count_classes.py --stdin --stdout < LICENSE

Over TCP, each command in a terminal of its own::

    wallaroo receive --listen 127.0.0.1:7002
    wallaroo run examples/word_count_classes.py --in 127.0.0.1:7010 --out 127.0.0.1:7002
    wallaroo send LICENSE --to 127.0.0.1:7010
"""

from __future__ import annotations

import string
import struct
from collections.abc import Sequence
from dataclasses import dataclass

import wallaroo

OTHER = "!"
"""The partition of the words that begin with no letter from a to z."""

PARTITIONS = [*string.ascii_lowercase, OTHER]


def application_setup(args: Sequence[str]) -> wallaroo.Application:
    """Describe the application: text to words, words to counts, counts to lines."""
    in_host, in_port = wallaroo.tcp_parse_input_addrs(args)[0]
    out_host, out_port = wallaroo.tcp_parse_output_addrs(args)[0]

    ab = wallaroo.ApplicationBuilder("Word Count")
    ab.new_pipeline("Split and Count", wallaroo.TCPSourceConfig(in_host, in_port, TextDecoder))
    ab.to_parallel(Split)
    ab.to_state_partition(CountWord(), WordTotalsBuilder(), "word totals", FirstLetter, PARTITIONS)
    ab.to_sink(wallaroo.TCPSinkConfig(out_host, out_port, CountEncoder))
    return ab.build()


class TextDecoder:
    """Frames with a 4-byte header, whose payload is UTF-8."""

    def header_length(self) -> int:
        """Return the header's length, in bytes."""
        return 4

    def payload_length(self, header: bytes) -> int:
        """Return the payload's length that `header` claims, in bytes."""
        length: int = struct.unpack(">I", header)[0]
        return length

    def decode(self, payload: bytes) -> str:
        """Turn a frame's payload into text; what is not UTF-8 raises, and is a dead letter."""
        return payload.decode("utf-8")


class Split:
    """Text to words."""

    def name(self) -> str:
        """Return the computation's name."""
        return "split into words"

    def compute_multi(self, text: str) -> list[str]:
        """Split at lines and spaces, strip punctuation, and leave out what is empty then."""
        words = [word.strip(string.punctuation) for word in text.lower().split()]
        return [word for word in words if word]


class FirstLetter:
    """Words to partitions."""

    def partition(self, word: str) -> str:
        """Return the partition that counts `word`: its first letter if it is a to z, else ``!``."""
        letter = word[0]
        return letter if "a" <= letter <= "z" else OTHER


@dataclass
class WordCount:
    """A word, and how often it has been seen: what goes from the count to the encoder."""

    word: str
    count: int


class WordTotals:
    """The state of one partition: how often each of its words has been seen."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}

    def update(self, word: str) -> WordCount:
        """Count `word`, and return its new count."""
        self._counts[word] = self._counts.get(word, 0) + 1
        return WordCount(word, self._counts[word])


class WordTotalsBuilder:
    """Makes the state of a partition when its first word comes."""

    def build(self) -> WordTotals:
        """Return totals of nothing yet."""
        return WordTotals()


class CountWord:
    """Words to counts."""

    def name(self) -> str:
        """Return the computation's name."""
        return "count word"

    def compute(self, word: str, totals: WordTotals) -> tuple[WordCount, bool]:
        """Count `word`; return it with its new count, and that the state has changed."""
        return totals.update(word), True


class CountEncoder:
    """Counts to lines."""

    def encode(self, counted: WordCount) -> bytes:
        """Write a word's new count as a line."""
        return f"{counted.word} => {counted.count}\n".encode()
