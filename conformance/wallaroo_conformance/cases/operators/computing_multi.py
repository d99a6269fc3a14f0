"""Computations without state, several messages out. The first is the plainest."""

from __future__ import annotations

from array import array
from collections import ChainMap, Counter, OrderedDict, UserDict, defaultdict, deque
from collections.abc import Iterator
from typing import Any

import wallaroo
from wallaroo_conformance.cases.operators.common import chosen, complain, unportable
from wallaroo_conformance.cases.operators.table import Table, Trait
from wallaroo_conformance.cases.operators.values import uncommon

MULTI_COMPUTATIONS = Table()


@MULTI_COMPUTATIONS.add(Trait.NARROW)
@wallaroo.computation_multi(name="one")
def one(message: Any) -> Any:
    """Give the message alone."""
    return [message]


@MULTI_COMPUTATIONS.add(Trait.NARROW)
@wallaroo.computation_multi(name="second")
def second(message: Any) -> Any:
    """Give the message behind a gap."""
    return [None, message]


@MULTI_COMPUTATIONS.add(Trait.NARROW)
@wallaroo.computation_multi(name="fork")
def fork(message: Any) -> Any:
    """Give the message and one other, which does not fork again."""
    return (message,) if message == "fork" else (message, "fork")


@MULTI_COMPUTATIONS.add()
@wallaroo.computation_multi(name="split")
def split(message: Any) -> Any:
    """Give the message's words: none, one or several."""
    return str(message).split()[:5]


@MULTI_COMPUTATIONS.add()
@wallaroo.computation_multi(name="characters")
def characters(message: Any) -> Iterator[Any]:
    """Give the first characters one by one, as a generator."""
    yield from str(message)[:4]


@MULTI_COMPUTATIONS.add(Trait.FINDING)
@wallaroo.computation_multi(name="twice")
def twice(message: Any) -> Any:
    """Give the same object twice."""
    return [message, message]


@MULTI_COMPUTATIONS.add()
class Items:
    """Gives none in both ways, items that are false, and gaps between items. Written as a class."""

    def name(self) -> str:
        """Return the computation's name."""
        return "items"

    def compute_multi(self, message: Any) -> Any:
        """Give one of several lists."""
        written = str(message)[:6]
        lists: tuple[Any, ...] = (
            *(None, [], (None, written, None, 0), iter(["", 0, False, [], written])),
            *((message, True), [None, uncommon(message), written]),
        )
        return chosen(message, lists)


@MULTI_COMPUTATIONS.add(Trait.FINDING)
@wallaroo.computation_multi(name="one buffer")
def one_buffer(message: Any) -> Iterator[Any]:
    """Give one list again and again, altering it in between."""
    buffer: list[str] = []
    for character in str(message)[:3]:
        buffer.append(character)
        yield buffer


@MULTI_COMPUTATIONS.add(Trait.RAISES_CONSUMED)
@wallaroo.computation_multi(name="stumble")
def stumble(message: Any) -> Iterator[Any]:
    """Give a message, then raise what engines themselves catch, or end the process."""
    yield str(message)[:5]
    complain(message, None)
    yield "end"


class Line(str):
    """Text of a type of its own."""

    __slots__ = ()


class Page(dict[str, int]):
    """A mapping of a type of its own, with nothing in it."""


@MULTI_COMPUTATIONS.add()
@wallaroo.computation_multi(name="wrong shape")
def wrong_shape(message: Any) -> Any:
    """Give what is no list of messages, on a message with a y."""
    written = str(message)
    if "y" not in written:
        return [message]
    pages = {written: 1}
    shapes: tuple[Any, ...] = (
        *(bytearray(b"y"), written, written.encode(), pages, {1, 2}, 7, frozenset({1})),
        *(pages.keys(), pages.items(), True, 0.5, "", Line("ab"), Counter("ab"), UserDict(pages)),
        *(defaultdict(int, pages), OrderedDict(pages), pages.keys().mapping, ChainMap(pages)),
        *(Page(), list, object(), {}, (), b"", False),
    )
    return chosen(written, shapes)


class Counted:
    """Can be iterated, by its indices alone."""

    def __getitem__(self, index: int) -> Any:
        return ("first", "second")[index]


class Drawer(list[Any]):
    """A list that is gone through from its end."""

    def __iter__(self) -> Iterator[Any]:
        return reversed(self)


class Misjudged:
    """Gives two items, and cannot say how many are left."""

    def __init__(self) -> None:
        self.left = iter(("first", "last"))

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        return next(self.left)

    def __length_hint__(self) -> int:
        raise LookupError("not counted")


@MULTI_COMPUTATIONS.add()
@wallaroo.computation_multi(name="odd shape")
def odd_shape(message: Any) -> Any:
    """Give a list of messages that does not look like one."""
    written = str(message)[:6]
    shapes = (
        *(range(2), deque([written, 0]), {"a": written, "b": 0}.values(), memoryview(b"ab")),
        *(zip("ab", (1, 2), strict=True), Counted(), Drawer(["a", 0, written]), array("b", [1])),
        *(iter(()), iter([written, None]), (), (written, True), map(str, (1, 2)), reversed("ab")),
        *(Misjudged(), ([written, 0],), [(written, 0)]),
    )
    return chosen(message, shapes)


class Reluctant:
    """Says that it can be iterated, and cannot."""

    def __init__(self, written: str) -> None:
        self.written = written

    def __iter__(self) -> Any:
        if len(self.written) % 2:
            raise TypeError("not now")
        return 7


@MULTI_COMPUTATIONS.add()
@wallaroo.computation_multi(name="reluctant")
def reluctant(message: Any) -> Any:
    """Give what raises when it is to be iterated, on a message with an x."""
    return Reluctant(str(message)) if "x" in str(message) else [message]


class Lazy(list[Any]):
    """A list that is made while it is gone through, and may fail then."""

    def __iter__(self) -> Iterator[Any]:
        for item in super().__iter__():
            complain(item, None)
            yield item


@MULTI_COMPUTATIONS.add(Trait.RAISES_CONSUMED)
@wallaroo.computation_multi(name="lazy list")
def lazy_list(message: Any) -> Any:
    """Give a list that fails while it is consumed, on a message with an x."""
    return Lazy(["first", str(message)[:5]])


@MULTI_COMPUTATIONS.add(Trait.FINDING)
@wallaroo.computation_multi(name="closure last")
def closure_last(message: Any) -> Any:
    """Give two messages, and what does not survive pickling for a message with a z."""
    return ["first", message, unportable(message) if "z" in str(message) else "last"]


@MULTI_COMPUTATIONS.add()
@wallaroo.computation_multi(name="burst")
def burst(message: Any) -> Any:
    """Give a dozen messages."""
    return [f"{str(message)[:3]}{number}" for number in range(12)]


@MULTI_COMPUTATIONS.add()
@wallaroo.computation_multi(name="thousands")
def thousands(message: Any) -> Any:
    """Give hundreds of messages for the message many, and for a long text, one by one."""
    if message in ("many", b"many"):
        return [f"m{number}" for number in range(700)]
    written = str(message)
    return map("{}{}".format, written, range(700)) if len(written) > 200 else [message]
