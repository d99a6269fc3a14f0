"""Shapes of results, judged by the exact types' own methods."""

from __future__ import annotations

import pytest
from wallaroo_spark.worker.results import BadResultError, encoded, split_pair


class Text(str):
    def encode(self, *_args, **_options):
        return b"?"


class Bytes(bytes):
    def __bytes__(self):
        return b"?"


class Pair(tuple):
    def __len__(self):
        return 2

    def __iter__(self):
        return iter(("other", True))


def test_sink_1_what_a_subclass_says_of_itself_does_not_count():
    assert encoded(Text("a")) == b"a"
    assert encoded(Bytes(b"a")) == b"a"


def test_state_2_a_pair_is_what_the_tuple_holds():
    assert split_pair(Pair(("a", False))) == ("a", False)
    with pytest.raises(BadResultError):
        split_pair(Pair(("a", False, 1)))
