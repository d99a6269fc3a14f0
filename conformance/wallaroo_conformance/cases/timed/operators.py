"""The components of timed cases; a step's component has the step's own name (graph-5).

A message is a list: a letter, which is a key; a number, which is an event time; and a text. Letters
in the text are marks that make a component fail, or the message a tuple (`marks`). Aggregations
have a module of their own. An operator is declared once, by the decorator of its table, with its
traits.
"""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from functools import cache
from typing import Any, Final

import wallaroo
from wallaroo.components import OwnState
from wallaroo.topology import Codec
from wallaroo_conformance.cases.operators.table import Table, Trait
from wallaroo_conformance.cases.timed.aggregations import AGGREGATIONS, Blank, Named
from wallaroo_conformance.cases.timed.marks import CODED, fail, no_key

EVENT_TIMES, KEYS, STATELESS = Table(), Table(), Table()
STATEFUL, PAIRS = Table(), Table()
"""State computations, and the same in the builder's form."""

_PARTS = 3
_NUMBERS: dict[str, Any] = {"yes": True, "one": 1.0, "half": 0.5, "below": -1}
"""Values that are not event times, although they can be compared with numbers."""


def decoded(payload: bytes) -> Any:
    """Return the message of a payload: ``a 5 text``; of an empty text `None`.

    Marks in the text make the message false, or a tuple.
    """
    letter, number, text = payload.decode().split(" ")
    if not text:
        return None
    given = [letter, int(number) if number.isdigit() else _NUMBERS.get(number, number), text]
    if CODED in text:
        return tuple(given)
    return Blank(given) if "z" in text else given


@wallaroo.decoder(header_length=4, length_fmt=">I")
def message(payload: bytes) -> Any:
    """Three parts with spaces between them; anything else raises."""
    return decoded(payload)


@wallaroo.encoder
def line(message: Any) -> Any:
    """Return a message as a line; of a pair, the second item too."""
    if len(message) < _PARTS:
        return f"{message[0][2]} and {message[1]}\n"
    if "w" in message[2]:
        fail(message[2])
    written = f"{message[0]} {message[1]} {message[2]}"
    return f"({written})\n" if isinstance(message, tuple) else f"{written}\n"


class Values:
    """A generator whose values are the records that a case has; by itself it gives none."""

    def initial_value(self) -> Any:
        """Give nothing."""
        return

    def apply(self, last: Any) -> Any:
        """Give nothing."""
        return


@EVENT_TIMES.add(Trait.COMMON)
def own_time(message: Any) -> Any:
    """Return the message's number."""
    if "e" in message[2]:
        fail(message[2])
    return message[1]


_MOMENT: Final = datetime(2026, 3, 29, 0, 59, 59, 999_990, tzinfo=UTC)
_ZONES: Final = (UTC, timezone(timedelta(hours=5, minutes=30)), timezone(-timedelta(seconds=1)))


@EVENT_TIMES.add()
def own_moment(message: Any) -> Any:
    """Return the message's number as a `datetime`, of one zone or another; else a naive one."""
    number = message[1]
    if type(number) is not int:
        return _MOMENT.replace(tzinfo=None)
    moment = _MOMENT + timedelta(microseconds=number // 10 % 10**6)
    return moment.astimezone(_ZONES[number % len(_ZONES)])


@EVENT_TIMES.add(Trait.FINDING, Trait.ALTERS_MESSAGE)
def time_that_alters(message: Any) -> Any:
    """Return the message's number, and alter the message."""
    message[2] += "!"
    return message[1]


@KEYS.add(Trait.COMMON, name="by_letter")
@dataclass(frozen=True)
class ByLetter:
    """A key extractor: the message's letter."""

    __name__: str

    def extract_key(self, message: Any) -> Any:
        """Return the letter; two marks in the text go wrong."""
        if "k" in message[2]:
            fail(message[2])
        return no_key(message[2]) if "f" in message[2] else message[0]


@KEYS.add(Trait.FINDING, Trait.ALTERS_MESSAGE, name="by_number")
@dataclass(frozen=True)
class ByNumber:
    """A key extractor: whether the number is odd; it alters the message."""

    __name__: str

    def extract_key(self, message: Any) -> Any:
        """Return 0 or 1."""
        number = message[1]
        message[2] += "?"
        return number % 2 if isinstance(number, int) else -1


@KEYS.add(Trait.LATE_AS_ANY, name="by_shown")
@dataclass(frozen=True)
class ByShown:
    """A key extractor: the number as it is shown, which differs for equal numbers."""

    __name__: str

    def extract_key(self, message: Any) -> Any:
        """Return a text."""
        return repr(message[1])


@KEYS.add(name="by_pair")
@dataclass(frozen=True)
class ByPair:
    """A key extractor: a tuple, of the letter and a number."""

    __name__: str

    def extract_key(self, message: Any) -> Any:
        """Return the letter and 1."""
        return message[0], 1


@KEYS.add(Trait.LATE_AS_ANY, name="by_any")
@dataclass(frozen=True)
class ByAny:
    """A key extractor: keys of every type, whose order is not that of their texts."""

    __name__: str

    def extract_key(self, message: Any) -> Any:
        """Return one of them, by the letter and the number."""
        number = message[1] if type(message[1]) is int else 0
        keys: dict[str, tuple[Any, ...]] = {
            "a": (10, "-1", 2**40, -256),
            "b": (9, "b", ("b", 10), b"b"),
            "c": (-1, "\u00e9", (), ("b", 9, (b"",))),
        }
        return keys.get(message[0], ("",) * 4)[number % 4]


@STATELESS.add(name="same")
class Same(Named):
    """A computation that changes nothing."""

    def compute(self, message: Any) -> Any:
        """Return the message."""
        return message


@STATELESS.add(name="drop")
class Drop(Named):
    """A computation that filters by a mark, and else lengthens the text."""

    def compute(self, message: Any) -> Any:
        """Return the message unless it has the mark."""
        return None if "d" in message[2] else [message[0], message[1], message[2] + "'"]


@STATELESS.add(name="twice")
class Twice(Named):
    """A multi computation: two messages, with a gap between them."""

    def compute_multi(self, message: Any) -> Any:
        """Return the message, nothing, and the message with another letter."""
        return [message, None, ["b", message[1], message[2] + '"']]


class Tally:
    """A state: the texts it has seen."""

    def __init__(self) -> None:
        self.seen: list[str] = []


@STATEFUL.add(Trait.COMMON, name="remember")
class Remember(Named):
    """A state computation that remembers texts, and sends nothing for every second one."""

    own_state: OwnState[Any]

    def compute(self, message: Any, tally: Any) -> Any:
        """Return the message with all texts so far."""
        if "b" in message[2]:
            fail(message[2])
        tally.seen.append(message[2])
        if "s" in message[2]:
            fail(message[2])
        if len(tally.seen) % 2 == 0:
            return None
        return [message[0], message[1], "+".join(tally.seen)]


@STATEFUL.add(name="remember_each")
class RememberEach(Named):
    """The same as a multi state computation: one message for each text."""

    own_state: OwnState[Any]

    def compute_multi(self, message: Any, tally: Any) -> Any:
        """Return messages with each text so far."""
        if "b" in message[2]:
            fail(message[2])
        tally.seen.append(message[2])
        if "s" in message[2]:
            fail(message[2])
        return [[message[0], message[1], text] for text in tally.seen[-2:]]


@STATEFUL.add(name="remember_and_tell")
class RememberAndTell(Named):
    """A state computation whose message looks like a pair of output and flag (key-3)."""

    own_state: OwnState[Any]

    def compute(self, message: Any, tally: Any) -> Any:
        """Return a tuple of the message with all texts so far, and `False`."""
        tally.seen.append(message[2])
        return [message[0], message[1], "+".join(tally.seen)], False


@PAIRS.add(name="remember")
class RememberPair(Remember):
    """`Remember` in the builder's form."""

    def compute(self, message: Any, tally: Any) -> Any:
        """Return the same, and that the state has changed."""
        return super().compute(message, tally), True


@PAIRS.add(name="remember_each")
class RememberEachPair(RememberEach):
    """`RememberEach` in the builder's form."""

    def compute_multi(self, message: Any, tally: Any) -> Any:
        """Return the same, and that the state has changed."""
        return super().compute_multi(message, tally), True


@PAIRS.add(name="remember_and_tell")
class RememberAndTellPair(RememberAndTell):
    """`RememberAndTell` in the builder's form."""

    def compute(self, message: Any, tally: Any) -> Any:
        """Return the same, and that the state has changed."""
        return super().compute(message, tally), True


GRAPH = ("collect", "merge")
COMPONENTS = Table(STATELESS, KEYS, AGGREGATIONS)
"""Operators without state."""
ALTERING = frozenset(Table(COMPONENTS, EVENT_TIMES).having(Trait.FINDING))
"""Operators that alter what they are only to read: `trusting` mode is not promised to them."""
OPERATORS = (*STATELESS, *STATEFUL, *KEYS, *AGGREGATIONS, *GRAPH)


@cache
def component(operator: str, name: str) -> Any:
    """Return a component without state of its own, for the step of that name."""
    return COMPONENTS[operator](name)


@cache
def state_computation(
    operator: str, name: str, state_name: str | None, expire_after: int | None
) -> Any:
    """Return a state computation; without `state_name` in the builder's form."""
    if state_name is None:
        return PAIRS[operator](name)
    made = STATEFUL[operator](name)
    # As the decorator does; a decorated function could not have its name at run time.
    object.__setattr__(made, "own_state", OwnState(Tally, state_name, expire_after))
    return made


def serialize(value: Any) -> bytes:
    """Return a value as bytes; marks in it, and the number 2, are refused (key-5)."""
    if isinstance(value, list) and len(value) == _PARTS and "p" in str(value[2]):
        fail(str(value[2]))
    if type(value) is int and value == 2:  # an accumulator
        fail(str(value))
    # A state, or an accumulator: a list of texts; a message has a number in it.
    texts = value.seen if isinstance(value, Tally) else value
    if isinstance(texts, list) and all(isinstance(text, str) for text in texts):
        refused = [text for text in texts if "r" in text]
        if refused:
            fail(refused[0])
    return b"own" + pickle.dumps(value)


def deserialize(data: bytes) -> Any:
    """Return what `serialize` was given, but a list for a message that is a tuple, as JSON does."""
    if not data.startswith(b"own"):
        raise ValueError("not written by serialize")
    value = pickle.loads(data[3:])  # noqa: S301 - our own bytes
    return list(value) if isinstance(value, tuple) and len(value) == _PARTS else value


CODEC = Codec(serialize, deserialize)
