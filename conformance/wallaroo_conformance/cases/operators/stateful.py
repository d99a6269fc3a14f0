"""State computations with one output. The first is the plainest.

Marks in a message as in `computing`; states are those of `states`, or other objects.
"""

from __future__ import annotations

import threading
from typing import Any, NamedTuple

import wallaroo
from wallaroo_conformance.cases.operators.common import alter, chosen, complain, unportable
from wallaroo_conformance.cases.operators.table import Table, Trait
from wallaroo_conformance.cases.operators.values import (
    Agreeable,
    Disguised,
    Undecided,
    uncommon,
)

STATE_COMPUTATIONS = Table()


class Answer(NamedTuple):
    """A pair with names: a `tuple` of length 2 like any other."""

    output: Any
    changed: Any


class Strange(tuple[Any, ...]):
    """A `tuple` of a type of its own, which lies about its length and its truth."""

    __slots__ = ()

    def __len__(self) -> int:
        return 3 if tuple.__len__(self) == 2 else 2

    def __bool__(self) -> bool:
        return False


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
@wallaroo.state_computation(name="# read\n'it' {twice} \u00b2")
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


@STATE_COMPUTATIONS.add(Trait.FINDING, Trait.ALTERS_SILENTLY)
@wallaroo.state_computation(name="lock in secret")
def lock_in_secret(message: Any, state: Any) -> Any:
    """Put what cannot be pickled in the state, and say it has not changed."""
    state.last = threading.Lock() if "y" in str(message) else str(message)[:4]
    return (state.pages, False)


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
    plain = isinstance(message, (str, int, list, bytes, tuple))
    state.last = message if plain else str(message)[:8]
    return (message, True)


@STATE_COMPUTATIONS.add(Trait.FINDING, Trait.ALIASES)
@wallaroo.state_computation(name="mark kept")
def mark_kept(message: Any, state: Any) -> Any:
    """Alter the message that was kept, and the one that has come."""
    alter(state.last, "kept")
    alter(message, "kept")
    return (str(state.last)[:20], True)


@STATE_COMPUTATIONS.add()
@wallaroo.state_computation(name="refuse, then count")
def refuse_then_count(message: Any, state: Any) -> Any:
    """Raise what engines themselves catch, or end the process, before anything is altered."""
    complain(message)
    state.pages += 1
    return (state.pages, True)


@STATE_COMPUTATIONS.add(Trait.FINDING, Trait.RAISES_LATE)
@wallaroo.state_computation(name="count, then refuse")
def count_then_refuse(message: Any, state: Any) -> Any:
    """Raise, or end the process, when the state is altered already."""
    state.pages += 1
    state.notes.append("counted")
    del state.notes[:-4]
    complain(message)
    return (state.pages, True)


def _wrong(written: str) -> Any:
    """Return what is no pair of output and flag."""
    shapes = (
        *(None, written, [written, True], (written,), (written, 1), (True, written)),
        *((written, None), {written: 1, True: 2}, (written, "True"), (written, True, True)),
        *(iter((written, True)), (written, Agreeable()), (written, Undecided()), Agreeable()),
        *((written, Disguised()), Answer(written, 1), Answer(written, None), (), True, False),
        *((None, 1), (None, 0), (written, 1.0), ((written, True),), Strange((written,))),
    )
    return chosen(written, shapes)


@STATE_COMPUTATIONS.add(Trait.FINDING)
@wallaroo.state_computation(name="wrong pair")
def wrong_pair(message: Any, state: Any) -> Any:
    """Alter the state, then return what is no pair of output and flag, on a message with a y."""
    state.pages += 1
    written = str(message)
    return _wrong(written) if "y" in written else Answer(written[:6], True)


@STATE_COMPUTATIONS.add()
@wallaroo.state_computation(name="wrong pair, then count")
def wrong_pair_then_count(message: Any, state: Any) -> Any:
    """Return what is no pair of output and flag, on a message with a y, before it counts."""
    written = str(message)
    if "y" in written:
        return _wrong(written)
    state.pages += 1
    pair: tuple[Any, ...] = (written[:6], True)
    return chosen(written, (Answer(*pair), Strange(pair), pair))


@STATE_COMPUTATIONS.add()
@wallaroo.state_computation(name="odd value of state")
def odd_value_of_state(message: Any, state: Any) -> Any:
    """Send a message that is easily taken for none."""
    state.pages += 1
    return (uncommon(message), True)


@STATE_COMPUTATIONS.add()
@wallaroo.state_computation(name="equal value")
def equal_value(message: Any, state: Any) -> Any:
    """Put an equal value of another type in place of what is kept."""
    state.last = True if type(state.last) is int else 1.0 if type(state.last) is bool else 1
    return (f"{state.last!r}{str(message)[:4]}", True)


@STATE_COMPUTATIONS.add(Trait.FINDING)
@wallaroo.state_computation(name="keep closure")
def keep_closure(message: Any, state: Any) -> Any:
    """Put what does not survive pickling into state or output, for a message with a z."""
    state.pages += 1
    if "z" in str(message):
        if len(str(message)) % 2:
            state.last = unportable(message)
        else:
            return (unportable(message), True)
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


@STATE_COMPUTATIONS.add(Trait.FINDING, Trait.ALTERS_SILENTLY)
@wallaroo.state_computation(name="mark in secret")
def mark_in_secret(message: Any, state: Any) -> Any:
    """Alter what the state keeps, however deep, and say it has not changed."""
    alter(state.last, "secret")
    return (str(state.last)[:20], False)
