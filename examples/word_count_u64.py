"""Word count with integer keys: `word_count.py`, its partitions known by 64-bit integers.

A word's key is the code of its first letter, ``ord("a")`` to ``ord("z")``, else that of ``!``.

In a shell pipe, without a network::

    wallaroo run examples/word_count_u64.py --stdin --stdout < LICENSE

Over TCP, each command in a terminal of its own::

    wallaroo receive --listen 127.0.0.1:7002
    wallaroo run examples/word_count_u64.py --in 127.0.0.1:7010 --out 127.0.0.1:7002
    wallaroo send LICENSE --to 127.0.0.1:7010
"""

from __future__ import annotations

import string
from collections.abc import Sequence

import wallaroo

OTHER = ord("!")
"""The partition of the words that begin with no letter from a to z."""

PARTITIONS = [*range(ord("a"), ord("z") + 1), OTHER]


def application_setup(args: Sequence[str]) -> wallaroo.Application:
    """Describe the application: text to words, words to counts, counts to lines."""
    in_host, in_port = wallaroo.tcp_parse_input_addrs(args)[0]
    out_host, out_port = wallaroo.tcp_parse_output_addrs(args)[0]

    return (
        wallaroo.ApplicationBuilder("Word Count")
        .new_pipeline("Split and Count", wallaroo.TCPSourceConfig(in_host, in_port, decode_text))
        .to_parallel(split_into_words)
        .to_state_partition_u64(count_word, WordTotals, "word totals", first_letter, PARTITIONS)
        .to_sink(wallaroo.TCPSinkConfig(out_host, out_port, encode_count))
        .build()
    )


@wallaroo.decoder(header_length=4, length_fmt=">I")
def decode_text(payload: bytes) -> str:
    """Turn a frame's payload into text; what is not UTF-8 raises, and is a dead letter."""
    return payload.decode("utf-8")


@wallaroo.computation_multi(name="split into words")
def split_into_words(text: str) -> list[str]:
    """Split at lines and spaces, strip punctuation, and leave out what is empty then."""
    words = [word.strip(string.punctuation) for word in text.lower().split()]
    return [word for word in words if word]


@wallaroo.partition
def first_letter(word: str) -> int:
    """Return the partition that counts `word`: the code of its first letter, else of ``!``."""
    letter = word[0]
    return ord(letter) if "a" <= letter <= "z" else OTHER


class WordTotals:
    """The state of one partition: how often each of its words has been seen."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}


@wallaroo.state_computation(name="count word")
def count_word(word: str, totals: WordTotals) -> tuple[tuple[str, int], bool]:
    """Count `word`; return it with its new count, and that the state has changed."""
    count = totals.counts.get(word, 0) + 1
    totals.counts[word] = count
    return (word, count), True


@wallaroo.encoder
def encode_count(word_and_count: tuple[str, int]) -> str:
    """Write a word's new count as a line; text goes out as UTF-8."""
    word, count = word_and_count
    return f"{word} => {count}\n"
