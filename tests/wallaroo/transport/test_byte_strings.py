import pickle

import pytest

from wallaroo.transport.byte_strings import ByteStrings

SOME = [b"", b"abc", b"", b"d", b"efghi"]
STRINGS = ByteStrings.of(SOME)


def test_they_are_a_sequence_of_bytes():
    assert [*STRINGS] == SOME
    assert (len(STRINGS), STRINGS.size) == (5, 9)
    for at in range(-5, 5):
        assert STRINGS[at] == SOME[at]
        assert [*STRINGS[at:]] == SOME[at:]
        assert [*STRINGS[1:at]] == SOME[1:at]
    assert [*STRINGS[7:9]] == []
    with pytest.raises(IndexError):
        STRINGS[5]


def test_they_are_joined_and_travel():
    assert [*ByteStrings.joined([STRINGS, STRINGS[3:]])] == SOME + SOME[3:]
    assert pickle.loads(pickle.dumps(STRINGS[1:4])) == ByteStrings.of(SOME[1:4])
    assert ByteStrings.of(STRINGS) is STRINGS
    assert ByteStrings.of([b"ab", b"c"]) != ByteStrings.of([b"a", b"bc"])
    assert STRINGS != SOME


def test_lengths_may_come_from_a_table():
    assert [*ByteStrings.from_table(bytes([0, 0, 0, 1, 0, 0, 1, 0]), b"a" * 257)] == [
        b"a",
        b"a" * 256,
    ]


@pytest.mark.parametrize(("size", "expected"), [(0, 1), (2, 1), (3, 3), (4, 4), (8, 4), (9, 5)])
def test_it_says_how_many_lie_in_the_first_bytes(size, expected):
    assert STRINGS.within(size) == expected
