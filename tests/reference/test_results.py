"""What a computation may return, and the hint where it is the usual slip."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from wallaroo_reference.results import BadResultError, items_of, pair_of

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
