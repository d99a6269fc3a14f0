"""State computations, one output or several. The first of each kind is the plainest.

Marks in a message as in `computing`; states are those of `states`, or not even that.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

import wallaroo
from wallaroo_conformance.operators.table import Table, Trait

STATE_COMPUTATIONS = Table()
STATE_MULTI_COMPUTATIONS = Table()


class Answer(NamedTuple):
    """A pair with names: a `tuple` of length 2 like any other."""

    output: Any
    changed: Any


@STATE_COMPUTATIONS.add()
@wallaroo.state_computation(name="count")
def count(message: Any, state: Any) -> Any:
    """Count what comes."""
    state.pages += 1
    return (f"{str(message)[:12]}={state.pages}", True)


@STATE_COMPUTATIONS.add()
@wallaroo.state_computation(name="note")
def note(message: Any, state: Any) -> Any:
    """Write the message down, and send nothing."""
    state.notes.append(str(message)[:8])
    del state.notes[:-6]
    return (None, True)


@STATE_COMPUTATIONS.add()
@wallaroo.state_computation(name="read")
def read(message: Any, state: Any) -> Any:
    """Send what is written, and change nothing."""
    return (f"{str(message)[:4]}:{state.pages}{state.notes[-3:]}", False)


@STATE_COMPUTATIONS.add(Trait.FINDING, Trait.ALTERS_SILENTLY)
@wallaroo.state_computation(name="note in secret")
def note_in_secret(message: Any, state: Any) -> Any:
    """Alter the state, and say it has not changed."""
    state.pages += 1
    state.notes.append(str(message)[:8])
    return (len(state.notes), False)


@STATE_COMPUTATIONS.add(Trait.FINDING, Trait.ALIASES)
@wallaroo.state_computation(name="give notes")
def give_notes(message: Any, state: Any) -> Any:
    """Send a list that stays part of the state."""
    state.notes.append(str(message)[:8])
    del state.notes[:-4]
    return (state.notes, True)


@STATE_COMPUTATIONS.add(Trait.FINDING, Trait.ALIASES)
@wallaroo.state_computation(name="give state")
def give_state(message: Any, state: Any) -> Any:
    """Send the state itself."""
    state.pages += 1
    state.last = str(message)[:4]
    return (state, True)


@STATE_COMPUTATIONS.add(Trait.FINDING, Trait.ALIASES)
@wallaroo.state_computation(name="keep message")
def keep_message(message: Any, state: Any) -> Any:
    """Keep the message, and give the same object on."""
    state.last = message if isinstance(message, (str, int, list, bytes)) else str(message)[:8]
    return (message, True)


@STATE_COMPUTATIONS.add(Trait.FINDING, Trait.ALIASES)
@wallaroo.state_computation(name="exchange")
def exchange(message: Any, state: Any) -> Any:
    """Send what was kept last, and keep the message."""
    output = state.last
    state.last = message if isinstance(message, (str, int, list, bytes)) else str(message)[:8]
    return (output, True)


@STATE_COMPUTATIONS.add(Trait.FINDING, Trait.ALIASES)
@wallaroo.state_computation(name="mark kept")
def mark_kept(message: Any, state: Any) -> Any:
    """Alter the message that was kept, and the one that has come."""
    for kept in (state.last, message):
        if isinstance(kept, list):
            kept.append("kept")
            del kept[:-3]
    return (str(state.last)[:20], True)


@STATE_COMPUTATIONS.add()
@wallaroo.state_computation(name="refuse, then count")
def refuse_then_count(message: Any, state: Any) -> Any:
    """Raise on a message with an x, before anything is altered."""
    if "x" in str(message):
        raise ValueError("refused")
    state.pages += 1
    return (state.pages, True)


@STATE_COMPUTATIONS.add(Trait.FINDING, Trait.RAISES_LATE)
@wallaroo.state_computation(name="count, then refuse")
def count_then_refuse(message: Any, state: Any) -> Any:
    """Raise on a message with an x, when the state is altered already."""
    state.pages += 1
    state.notes.append("counted")
    del state.notes[:-4]
    if "x" in str(message):
        raise ValueError("refused late")
    return (state.pages, True)


@STATE_COMPUTATIONS.add(Trait.FINDING)
@wallaroo.state_computation(name="wrong pair")
def wrong_pair(message: Any, state: Any) -> Any:
    """Alter the state, then return what is no pair of output and flag, on a message with a y."""
    state.pages += 1
    written = str(message)[:6]
    if "y" not in written:
        return Answer(written, True)
    shapes = (None, written, [written, True], (written,), (written, 1), (True, written), (1, None))
    return shapes[len(written) % 7]


@STATE_COMPUTATIONS.add()
@wallaroo.state_computation(name="wrong pair, then count")
def wrong_pair_then_count(message: Any, state: Any) -> Any:
    """Return what is no pair of output and flag, on a message with a y, before it counts."""
    written = str(message)[:6]
    if "y" in written:
        shapes = (None, written, [written, True], (written,), (written, 1), (True, written))
        return shapes[len(written) % 6]
    state.pages += 1
    return Answer(written, True)


@STATE_COMPUTATIONS.add(Trait.FINDING)
@wallaroo.state_computation(name="keep closure")
def keep_closure(message: Any, state: Any) -> Any:
    """Put what cannot be pickled into the state, or the output, for a message with a z."""
    state.pages += 1
    if "z" in str(message):
        if len(str(message)) % 2:
            state.last = lambda: message
        else:
            return ((lambda: message), True)
    return (state.pages, True)


@STATE_COMPUTATIONS.add(made=())
class Every:
    """Sends every second message's number: falsy outputs, filtered ones, unchanged states."""

    def name(self) -> str:
        """Return the computation's name."""
        return "every"

    def compute(self, message: Any, state: Any) -> Any:
        """Change the state for some messages only."""
        if len(str(message)) % 2:
            return (0, False)
        state.pages += 1
        return (None if state.pages % 2 else "", True)


@STATE_COMPUTATIONS.add()
@wallaroo.state_computation(name="start over")
def start_over(message: Any, state: Any) -> Any:
    """Replace what the state is made of."""
    pages = state.pages
    state.notes = [pages]
    state.last = f"over {str(message)[:4]}"
    state.pages = 0
    return (pages, True)


@STATE_COMPUTATIONS.add(Trait.FINDING)
@wallaroo.state_computation(name="leave late")
def leave_late(message: Any, state: Any) -> Any:
    """End the process on the message quit, when the state is altered already."""
    state.pages += 1
    if message in ("quit", b"quit"):
        sys.exit(3)
    return (state.pages, True)


@STATE_MULTI_COMPUTATIONS.add()
@wallaroo.state_computation_multi(name="history")
def history(message: Any, state: Any) -> Any:
    """Send all that is written."""
    state.notes.append(str(message)[:6])
    del state.notes[:-3]
    return (list(state.notes), True)


@STATE_MULTI_COMPUTATIONS.add()
@wallaroo.state_computation_multi(name="lazy")
def lazy(message: Any, state: Any) -> Any:
    """Alter the state while what it gives is consumed."""

    def pages() -> Iterator[Any]:
        for _ in range(2):
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


@STATE_MULTI_COMPUTATIONS.add(Trait.OWN_LIST)
@wallaroo.state_computation_multi(name="notes themselves")
def notes_themselves(message: Any, state: Any) -> Any:
    """Send what is in a list of the state's, which a later step may visit and alter."""
    state.notes.append(str(message)[:6])
    del state.notes[:-3]
    return (state.notes, True)


@STATE_MULTI_COMPUTATIONS.add(Trait.FINDING)
@wallaroo.state_computation_multi(name="window")
def window(message: Any, state: Any) -> Any:
    """Send two messages together, then start over."""
    state.notes.append(str(message)[:6])
    if len(state.notes) < 2:
        return (None, True)
    notes, state.notes = state.notes, []
    return (notes, True)


@STATE_MULTI_COMPUTATIONS.add(Trait.FINDING, Trait.RAISES_LATE, Trait.RAISES_CONSUMED)
@wallaroo.state_computation_multi(name="lazy stumble")
def lazy_stumble(message: Any, state: Any) -> Any:
    """Alter the state, give a message, then raise on one with an x."""

    def pages() -> Iterator[Any]:
        state.pages += 1
        yield state.pages
        if "x" in str(message):
            raise RuntimeError("stumbled")
        state.pages += 1
        yield state.pages

    return (pages(), True)


@STATE_MULTI_COMPUTATIONS.add(Trait.FINDING, Trait.WRONG_ITEMS)
@wallaroo.state_computation_multi(name="wrong items")
def wrong_items(message: Any, state: Any) -> Any:
    """Alter the state, then return items of a wrong shape, on a message with a y."""
    state.pages += 1
    written = str(message)[:6]
    if "y" not in written:
        return ((), True)
    pairs: list[Any] = [(written, True), ({}, True), (5, True), ([written], 1)]
    return [*pairs, [[written], True], [written]][len(written) % 6]


@STATE_MULTI_COMPUTATIONS.add(Trait.WRONG_ITEMS)
@wallaroo.state_computation_multi(name="wrong items, then count")
def wrong_items_then_count(message: Any, state: Any) -> Any:
    """Return items of a wrong shape, on a message with a y, before anything is altered."""
    written = str(message)[:6]
    if "y" in written:
        pairs: list[Any] = [(written, True), ({}, True), (5, True), ([written], 1)]
        return [*pairs, [[written], True], [written]][len(written) % 6]
    state.pages += 1
    return ([written, state.pages], True)
