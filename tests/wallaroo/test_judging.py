"""What a computation may return, and the hint where it is the usual slip."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wallaroo.judging import BadResultError, TooManyItemsError, items_of, pair_of, written_of
from wallaroo.trace import Reason

anything = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.text(), st.binary(), st.floats()),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(st.text(), inner, max_size=2),
    ),
    max_leaves=4,
)


@given(anything, st.booleans())
def test_state_2_a_pair_is_taken_apart(output, changed):
    assert pair_of((output, changed)) == (output, changed) or output != output


@given(anything)
def test_state_2_all_else_is_refused_in_words(result):
    if type(result) is tuple and len(result) == 2 and type(result[1]) is bool:
        return
    with pytest.raises(BadResultError) as caught:
        pair_of(result)
    assert caught.value.reason is Reason.BAD_RESULT
    assert str(caught.value).startswith("a state computation returns a pair, (output, changed)")


@given(st.lists(anything, max_size=4))
def test_compute_2_items_come_in_their_order(items):
    for made in (list(items), tuple(items), iter(items), (item for item in items)):
        found = items_of(made)
        assert repr(found) == repr(items)
        assert type(found) is list
        assert found is not made


@given(anything)
def test_compute_2_only_iterables_with_an_order(result):
    if result is None or isinstance(result, (list, tuple)):
        assert items_of(result) == list(result or [])
        return
    with pytest.raises(BadResultError, match="a multi computation returns"):
        items_of(result)


class Misjudged:
    """Says that it is far longer than it is."""

    def __init__(self, hint):
        self.hint = hint
        self.items = iter("ab")

    def __iter__(self):
        return self

    def __next__(self):
        return next(self.items)

    def __length_hint__(self):
        return self.hint()


@pytest.mark.parametrize("hint", [lambda: 1 << 60, lambda: 1 // 0], ids=["too long", "raises"])
def test_compute_2_a_length_hint_is_not_asked_for(hint):
    assert items_of(Misjudged(hint)) == ["a", "b"]


@pytest.mark.parametrize("count", [0, 1, 63, 64, 65, 128, 1000])
def test_compute_2_an_iterator_is_consumed_to_its_end_and_no_further(count):
    asked = []

    def given():
        for number in range(count):
            asked.append(number)
            yield number
        asked.append("end")

    assert items_of(given(), most=1 << 30) == list(range(count))
    assert asked == [*range(count), "end"]


@pytest.mark.parametrize("item", [b"x" * 1000, "x" * 1000, bytearray(1000), [0] * 100, None, 7])
def test_an_iterator_without_end_is_given_up(item):
    with pytest.raises(TooManyItemsError):
        items_of(itertools.repeat(item), most=1 << 20)


def test_an_iterator_is_not_given_up_for_its_few_large_items():
    few = [b"x" * 100_000 if number % 65 == 0 else b"" for number in range(500)]
    assert items_of(iter(few), most=1 << 20) == few


def test_compute_2_a_list_is_copied():
    items = [1]
    assert items_of(items) is not items


class ByGetItem:
    def __getitem__(self, index):
        if index == 2:
            raise IndexError
        return index


class NotIterable:
    __iter__ = None

    def __getitem__(self, index):
        return index


def test_compute_2_the_old_protocol_is_iterable_unless_it_says_no():
    assert items_of(ByGetItem()) == [0, 1]
    with pytest.raises(BadResultError):
        items_of(NotIterable())


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
    assert written_of(Text("a")) == b"a"
    assert written_of(Bytes(b"a")) == b"a"


def test_state_2_a_pair_is_what_the_tuple_holds():
    assert pair_of(Pair(("a", False))) == ("a", False)
    with pytest.raises(BadResultError):
        pair_of(Pair(("a", False, 1)))
