"""Word count in the later form of the API: `word_count.py`, written as an immutable pipeline.

Here the key is a step of its own, `key_by`, and a state computation says what its state is and
returns its output alone. The outputs are those of `word_count.py`, to the byte.

In a shell pipe, without a network::

    wallaroo run examples/word_count_pipeline.py --stdin --stdout < LICENSE

Over TCP, each command in a terminal of its own::

    wallaroo receive --listen 127.0.0.1:7002
    wallaroo run examples/word_count_pipeline.py --in 127.0.0.1:7010 --out 127.0.0.1:7002
    wallaroo send LICENSE --to 127.0.0.1:7010
"""

from __future__ import annotations

import string
from collections.abc import Sequence

import wallaroo

OTHER = "!"
"""The key of the words that begin with no letter from a to z."""


def application_setup(args: Sequence[str]) -> wallaroo.Application:
    """Describe the application: text to words, words to counts, counts to lines."""
    in_host, in_port = wallaroo.tcp_parse_input_addrs(args)[0]
    out_host, out_port = wallaroo.tcp_parse_output_addrs(args)[0]

    lines = wallaroo.source(
        "Split and Count", wallaroo.TCPSourceConfig(in_host, in_port, decode_text)
    )
    counts = (
        lines.to_parallel(split_into_words)
        .key_by(first_letter)
        .to(count_word)
        .to_sink(wallaroo.TCPSinkConfig(out_host, out_port, encode_count))
    )
    return wallaroo.build_application("Word Count", counts)


@wallaroo.decoder(header_length=4, length_fmt=">I")
def decode_text(payload: bytes) -> str:
    """Turn a frame's payload into text; what is not UTF-8 raises, and is a dead letter."""
    return payload.decode("utf-8")


@wallaroo.computation_multi(name="split into words")
def split_into_words(text: str) -> list[str]:
    """Split at lines and spaces, strip punctuation, and leave out what is empty then."""
    words = [word.strip(string.punctuation) for word in text.lower().split()]
    return [word for word in words if word]


@wallaroo.key_extractor
def first_letter(word: str) -> str:
    """Return the key of `word`: its first letter if it is a to z, else ``!``."""
    letter = word[0]
    return letter if "a" <= letter <= "z" else OTHER


class WordTotals:
    """The state of one key: how often each of its words has been seen."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}


@wallaroo.state_computation(name="count word", state=WordTotals)
def count_word(word: str, totals: WordTotals) -> tuple[str, int]:
    """Count `word`; return it with its new count."""
    count = totals.counts.get(word, 0) + 1
    totals.counts[word] = count
    return word, count


@wallaroo.encoder
def encode_count(word_and_count: tuple[str, int]) -> str:
    """Write a word's new count as a line; text goes out as UTF-8."""
    word, count = word_and_count
    return f"{word} => {count}\n"
