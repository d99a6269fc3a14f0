"""What decoders and computations are given, and what becomes of what they give."""

import collections
import enum

import pytest
from small_steps import (
    Seen,
    computation,
    gives_items,
    multi,
)

import wallaroo


def by_getitem():
    class Old:
        def __getitem__(self, index):
            return ["x", None, "y"][index]

    return Old()


@pytest.mark.parametrize(
    "make",
    [
        lambda: ["x", None, "y"],
        lambda: ("x", None, "y"),
        lambda: iter(["x", None, "y"]),
        lambda: (item for item in ["x", None, "y"]),
        lambda: collections.deque(["x", None, "y"]),
        lambda: dict.fromkeys("ab", "x").values(),
        lambda: range(2),
        lambda: map(str, [1, 2]),
        lambda: memoryview(b"ab"),
        lambda: type("Listed", (list,), {})("xy"),
        lambda: [[], 0, "", False],
        by_getitem,
    ],
)
def test_compute_2_any_iterable_gives_its_items(app, run, make):
    application = app(("to", wallaroo.computation_multi(name="m")(lambda message: make())))
    expected = [f"{item!r};".encode() for item in make() if item is not None]
    assert run(application, [b"a"]).output == expected


class Letters(enum.Enum):
    A = 1


WITHOUT_ITEMS = [1, 0, True, False, 1.5, object(), len, Letters.A, Seen]
WITHOUT_ORDER = [{"a": 1}, {}, collections.OrderedDict(), {1}, set(), frozenset([1])]
BAD_ITEMS = ["text", "", b"bytes", b"", bytearray(b"a"), *WITHOUT_ORDER, *WITHOUT_ITEMS]


@pytest.mark.parametrize("result", BAD_ITEMS, ids=lambda value: type(value).__name__)
def test_compute_2_what_has_no_order_or_no_items_is_a_bad_result(app, run, letters, result):
    if result is Seen:
        result = Seen()
    found = run(app(("to", gives_items(result))), [b"a"])
    assert found.output == []
    assert letters(found) == [((0,), "gives", None, None, "bad-result")]
    assert found.dead_letters[0].error_type is None
    assert "a multi computation returns" in found.dead_letters[0].error


class BadIteration:
    def __iter__(self):
        raise LookupError("no items today")


class NoIterator:
    def __iter__(self):
        return 5


@pytest.mark.parametrize(
    ("result", "error_type"), [(BadIteration(), "LookupError"), (NoIterator(), "TypeError")]
)
def test_compute_2_an_iter_that_raises_has_raised(app, run, letters, result, error_type):
    found = run(app(("to", gives_items(result))), [b"a"])
    assert letters(found) == [((0,), "gives", None, None, "raised")]
    assert found.dead_letters[0].error_type == error_type


def test_compute_2_it_is_consumed_before_anything_goes_on(app, run):
    order = []

    @multi
    def items(text):
        for character in text:
            order.append(f"yields {character}")
            yield character
        order.append("end")

    @computation
    def next_step(character):
        order.append(f"takes {character}")
        return character

    run(app(("to", items), ("to", next_step)), [b"ab"])
    assert order == ["yields a", "yields b", "end", "takes a", "takes b"]
