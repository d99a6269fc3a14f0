"""What a computation may return, and the hint where it is the usual slip."""

import itertools

import pytest

from wallaroo.judging import TooManyItemsError, items_of, pair_of


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


def test_compute_2_and_state_2_a_list_is_copied_and_a_pair_is_not():
    items, pair = [1], ("a", True)
    assert items_of(items) == items
    assert items_of(items) is not items
    assert pair_of(pair) is pair
