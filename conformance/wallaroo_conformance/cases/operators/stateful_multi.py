"""State computations with several outputs. The first is the plainest."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import wallaroo
from wallaroo_conformance.cases.operators.common import chosen, complain, unportable
from wallaroo_conformance.cases.operators.table import Table, Trait
from wallaroo_conformance.cases.operators.values import Agreeable, uncommon

STATE_MULTI_COMPUTATIONS = Table()


@STATE_MULTI_COMPUTATIONS.add()
@wallaroo.state_computation_multi(name="history")
def history(message: Any, state: Any) -> Any:
    """Send all that is written."""
    state.notes.append(str(message)[:6])
    del state.notes[:-3]
    return (list(state.notes), True)


@STATE_MULTI_COMPUTATIONS.add(Trait.NARROW)
@wallaroo.state_computation_multi(name="numbered")
def numbered(message: Any, state: Any) -> Any:
    """Send the message's number, behind a gap."""
    state.pages += 1
    return ([None, f"{state.pages}{str(message)[:6]}"], True)


@STATE_MULTI_COMPUTATIONS.add()
@wallaroo.state_computation_multi(name="items of any shape")
def items_of_any_shape(message: Any, state: Any) -> Any:
    """Send what is false and still a message, out of what looks like no list."""
    state.pages += 1
    pages = {"page": state.pages, "none": 0}
    few = range(min(state.pages, 3))  # else a state visited several times would grow without end
    return (chosen(message, (pages.values(), iter(["", 0]), few, ("", False))), True)


@STATE_MULTI_COMPUTATIONS.add()
@wallaroo.state_computation_multi(name="lazy")
def lazy(message: Any, state: Any) -> Any:
    """Alter the state while what it gives is consumed."""

    def pages() -> Iterator[Any]:
        for _ in range(200 if "many" in str(message) else 2):
            state.pages += 1
            yield state.pages

    return (pages(), True)


@STATE_MULTI_COMPUTATIONS.add(Trait.FINDING, Trait.ALTERS_SILENTLY)
@wallaroo.state_computation_multi(name="lazy secret")
def lazy_secret(message: Any, state: Any) -> Any:
    """Alter the state while what it gives is consumed, and say it has not changed."""

    def pages() -> Iterator[Any]:
        state.pages += 1
        yield state.pages
        state.notes.append("secret")

    return (pages(), False)


@STATE_MULTI_COMPUTATIONS.add(Trait.FINDING, Trait.ALIASES)
@wallaroo.state_computation_multi(name="same notes")
def same_notes(message: Any, state: Any) -> Any:
    """Send a list of the state's twice."""
    state.notes.append(str(message)[:6])
    del state.notes[:-3]
    return ([state.notes, None, state.notes], True)


@STATE_MULTI_COMPUTATIONS.add()
@wallaroo.state_computation_multi(name="notes themselves")
def notes_themselves(message: Any, state: Any) -> Any:
    """Send what is in a list of the state's, which a later step may visit and alter."""
    state.notes.append(str(message)[:6])
    del state.notes[:-3]
    return (state.notes, True)


@STATE_MULTI_COMPUTATIONS.add(Trait.FINDING, Trait.RAISES_LATE, Trait.RAISES_CONSUMED)
@wallaroo.state_computation_multi(name="lazy stumble")
def lazy_stumble(message: Any, state: Any) -> Any:
    """Alter the state, give a message, then raise on one with an x."""

    def pages() -> Iterator[Any]:
        state.pages += 1
        yield state.pages
        complain(message)
        state.pages += 1
        yield state.pages

    return (pages(), True)


@STATE_MULTI_COMPUTATIONS.add(Trait.FINDING, Trait.WRONG_ITEMS)
@wallaroo.state_computation_multi(name="wrong items")
def wrong_items(message: Any, state: Any) -> Any:
    """Alter the state, then return items of a wrong shape, on a message with a y."""
    state.pages += 1
    written = str(message)
    if "y" not in written:
        return ((), True)
    pairs: list[Any] = [(written, True), ({}, True), (5, True), ([written], 1)]
    return chosen(written, [*pairs, [[written], True], [written], ({}.keys(), True)])


@STATE_MULTI_COMPUTATIONS.add(Trait.WRONG_ITEMS)
@wallaroo.state_computation_multi(name="wrong items, then count")
def wrong_items_then_count(message: Any, state: Any) -> Any:
    """Return items of a wrong shape, on a message with a y, before anything is altered."""
    written = str(message)
    if "y" in written:
        pairs: list[Any] = [(written, True), ({}, True), (5, True), ([written], 1)]
        pairs += [[[written], True], [written], ({}.keys(), True), (set(), True), (b"", False)]
        pairs += [(frozenset({1}), True), (0, True), (bytearray(b"a"), True), ([1], Agreeable())]
        return chosen(written, [*pairs, ([1], None), ([1, 2], True, True), (True, [1]), None])
    state.pages += 1
    return ([written[:6], state.pages], True)


@STATE_MULTI_COMPUTATIONS.add()
@wallaroo.state_computation_multi(name="odd items of state")
def odd_items_of_state(message: Any, state: Any) -> Any:
    """Send messages that are easily taken for none, behind a gap."""
    state.pages += 1
    return ([None, uncommon(message), state.pages], True)


@STATE_MULTI_COMPUTATIONS.add(Trait.RAISES_CONSUMED)
@wallaroo.state_computation_multi(name="lazy complaint")
def lazy_complaint(message: Any, state: Any) -> Any:
    """Raise, or end the process, while what it gives is consumed, before anything is altered."""

    def pages() -> Iterator[Any]:
        complain(message)
        state.pages += 1
        yield state.pages

    return (pages(), True)


@STATE_MULTI_COMPUTATIONS.add(Trait.FINDING)
@wallaroo.state_computation_multi(name="closure at the end")
def closure_at_the_end(message: Any, state: Any) -> Any:
    """Send the state's number, and what does not survive pickling for a message with a z."""
    state.pages += 1
    return ([state.pages, unportable(message) if "z" in str(message) else "last"], True)
