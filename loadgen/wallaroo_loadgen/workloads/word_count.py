"""`word_count`: lines of Zipf-distributed words in, `WORD => COUNT` out for each word.

The application counts, and the count identifies an output: `the => 17` is the answer to the 17th
`the`. Each connection has words of its own (a suffix that names run and connection), so that the
17th is the same one however the application interleaves its connections; and a run's words begin at
zero, whatever was counted before. Options: `words` a line (5), `vocabulary` (1000), `zipf`, the
exponent in percent (110).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from wallaroo.frames import frame
from wallaroo.overriding import override
from wallaroo_loadgen.common.schedule import Int64s
from wallaroo_loadgen.workloads.cycle import CycleStream, matched
from wallaroo_loadgen.workloads.protocol import IGNORED, Framing, Matched, Options, Workload

_CYCLE = 4096  # lines until the text repeats
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_ARROW = b" => "


def vocabulary(size: int, seed: int) -> list[str]:
    """Return `size` different made-up words, short ones first, from every letter."""
    random = np.random.default_rng([seed, 2])
    words: dict[str, None] = {}
    while len(words) < size:
        length = 2 + int(random.poisson(1 + np.log2(2 + len(words)) / 3))
        letters = random.integers(26, size=length)
        words["".join([_LETTERS[letter] for letter in letters])] = None
    return list(words)


class WordCount(Workload):
    """One output for each word; its count says for which."""

    sources: Sequence[str] = ("text",)
    framing: Framing = "lines"

    def __init__(self, options: Options) -> None:
        options.known("words", "vocabulary", "zipf")
        per_line = options.integer("words", 5, high=1000)
        size = options.integer("vocabulary", 1000, high=100_000)
        exponent = options.integer("zipf", 110, low=0, high=1000) / 100
        words = vocabulary(size, options.seed)
        weights = 1 / np.arange(1, size + 1) ** exponent
        weights /= weights.sum()
        self._probe = f"probe{options.tag}".encode()
        self._word: dict[bytes, int] = {}
        self.streams: list[CycleStream] = []
        stream_of: list[int] = []
        positions: list[Int64s] = []
        for stream in range(options.connections):
            random = np.random.default_rng([options.seed, 3, stream])
            picked = random.choice(size, size=_CYCLE * per_line, p=weights)
            tokens = [f"{word}{options.tag}{stream}".encode() for word in words]
            lines = [
                b" ".join([tokens[word] for word in picked[start : start + per_line]])
                for start in range(0, len(picked), per_line)
            ]
            self.streams.append(CycleStream(lines, [per_line] * _CYCLE, 0, 1 / options.connections))
            order = np.argsort(picked, kind="stable")
            used, starts = np.unique(picked[order], return_index=True)
            for word, where in zip(used, np.split(order, starts[1:]), strict=True):
                self._word[tokens[word]] = len(stream_of)
                stream_of.append(stream)
                positions.append(where)
        # Word w occurs at _position[_start[w] : _start[w] + _often[w]] of its stream's cycle.
        self._stream = np.array(stream_of)
        self._often = np.array([len(where) for where in positions])
        self._start = np.concatenate([[0], np.cumsum(self._often)[:-1]])
        self._position = np.concatenate(positions)
        self._cycle = _CYCLE * per_line

    @override
    def match(self, outputs: list[bytes]) -> Matched:
        # For each `WORD => COUNT` the place of the COUNT-th WORD in its stream.
        result = matched(len(outputs))
        parts = [output.rpartition(_ARROW) for output in outputs]
        words = np.array([self._word.get(word, -1) for word, _, _ in parts], dtype=np.int64)
        counts = np.array([_count(count) for _, _, count in parts], dtype=np.int64)
        which = np.flatnonzero((words >= 0) & (counts > 0))
        if len(which) < len(outputs):
            for index in np.flatnonzero(words < 0):
                if parts[index][0] == self._probe:
                    result.streams[index] = IGNORED
        words = words[which]
        rounds, rest = np.divmod(counts[which] - 1, self._often[words])
        result.streams[which] = self._stream[words]
        result.numbers[which] = rounds * self._cycle + self._position[self._start[words] + rest]
        return result

    @override
    def probe(self, attempt: int) -> dict[int, bytes]:
        # A word that no run has.
        return {0: frame(self._probe)}

    @override
    def answers(self, outputs: list[bytes]) -> bool:
        return any(output.startswith(self._probe + _ARROW) for output in outputs)


def _count(text: bytes) -> int:
    """Return the count an output claims, or 0 if it is not a valid count."""
    return int(text) if text.isdigit() and len(text) < 19 else 0
