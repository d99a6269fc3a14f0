"""Text made up from a seed, and what counting its words must give.

Word frequencies follow Zipf's law, as in any language: the word of rank r comes in proportion 1/r.
"""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Sequence

_VOCABULARY = 5_000
_NOT_A_TO_Z = ("1984", "élan", "42", "ñandú")  # these are counted in the partition `!`


def generate_lines(words: int, seed: int) -> list[str]:
    """Return `words` words in lines of prose, with capitals and punctuation; alike for one seed."""
    random_ = random.Random(seed)  # noqa: S311 - text, not secrets
    vocabulary = _vocabulary(random_)
    weights = [1 / rank for rank in range(1, len(vocabulary) + 1)]
    drawn = random_.choices(vocabulary, cum_weights=list(itertools.accumulate(weights)), k=words)
    lines = []
    start = 0
    while start < words:
        stop = min(start + random_.randrange(6, 13), words)
        sentence = drawn[start:stop]
        middle = len(sentence) // 2
        sentence[middle] += random_.choice([",", ";", ""])
        lines.append(" ".join(sentence).capitalize() + random_.choice([".", ".", "!", "?"]))
        start = stop
    return lines


def expected_counts(lines: Sequence[str]) -> tuple[bytes, dict[str, int]]:
    """Return what word count must send for `lines`, to the byte, and the last counts.

    This uses no code of the application or the engine, so that it can check them.
    """
    counts: dict[str, int] = {}
    updates = []
    for line in lines:
        for word in re.findall(r"\w+", line.lower()):
            counts[word] = count = counts.get(word, 0) + 1
            updates.append(f"{word} => {count}\n")
    return "".join(updates).encode(), counts


def _vocabulary(random_: random.Random) -> list[str]:
    """Return different words, short ones first, as frequent words are."""
    words: dict[str, None] = {}
    while len(words) < _VOCABULARY:
        syllables = 1 + min(3, len(words) // 60)
        word = "".join(
            [random_.choice("lmnrstv") + random_.choice("aeio") for _ in range(syllables)]
        )
        words[word + random_.choice(["", "n", "r", "s"])] = None
    vocabulary = list(words)
    for number, word in enumerate(_NOT_A_TO_Z, 1):
        vocabulary.insert(20 * number, word)
    return vocabulary
