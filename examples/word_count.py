"""Word count: text comes in, and for every word goes out how often it has been seen.

In a shell pipe, without a network::

    wallaroo run examples/word_count.py --stdin --stdout < LICENSE

Over TCP, each command in a terminal of its own::

    wallaroo receive --listen 127.0.0.1:7002
    wallaroo run examples/word_count.py --in 127.0.0.1:7010 --out 127.0.0.1:7002
    wallaroo send LICENSE --to 127.0.0.1:7010

`word_count_classes.py` is the same application written with classes, `word_count_u64.py` the same
with integer keys.
"""

from __future__ import annotations

import string
from collections.abc import Sequence

import wallaroo

OTHER = "!"
"""The partition of the words that begin with no letter from a to z."""

PARTITIONS = [*string.ascii_lowercase, OTHER]


def application_setup(args: Sequence[str]) -> wallaroo.Application:
    """Describe the application: text to words, words to counts, counts to lines."""
    in_host, in_port = wallaroo.tcp_parse_input_addrs(args)[0]
    out_host, out_port = wallaroo.tcp_parse_output_addrs(args)[0]

    return (
        wallaroo.ApplicationBuilder("Word Count")
        .new_pipeline("Split and Count", wallaroo.TCPSourceConfig(in_host, in_port, decode_text))
        .to_parallel(split_into_words)
        .to_state_partition(count_word, WordTotals, "word totals", first_letter, PARTITIONS)
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
def first_letter(word: str) -> str:
    """Return the partition that counts `word`: its first letter if it is a to z, else ``!``."""
    letter = word[0]
    return letter if "a" <= letter <= "z" else OTHER


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
