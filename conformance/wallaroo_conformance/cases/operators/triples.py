"""Operators for messages of three parts: a letter, a number and a text.

The letter is a key, the number an event time. Letters in the text are marks that make a component
fail, or the message a tuple (`marks`). A step's component has the step's own name (graph-5), so
that an operator can stand in a graph several times.
"""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Any, Final

import wallaroo
from wallaroo.components import OwnState
from wallaroo.topology import Codec
from wallaroo_conformance.cases.operators.aggregations import Blank, Named, Unreadable
from wallaroo_conformance.cases.operators.common import chosen
from wallaroo_conformance.cases.operators.computing import COMPUTATIONS
from wallaroo_conformance.cases.operators.computing_multi import MULTI_COMPUTATIONS
from wallaroo_conformance.cases.operators.decoding import DECODERS
from wallaroo_conformance.cases.operators.encoding import ENCODERS
from wallaroo_conformance.cases.operators.marks import CODED, fail, no_key
from wallaroo_conformance.cases.operators.routing import Name, Suit
from wallaroo_conformance.cases.operators.stateful import STATE_COMPUTATIONS
from wallaroo_conformance.cases.operators.stateful_multi import STATE_MULTI_COMPUTATIONS
from wallaroo_conformance.cases.operators.table import Table, Trait

EVENT_TIMES, KEYS = Table(), Table()
"""Functions of event times, and key extractors."""

_OF_STEP: Final = (Trait.OF_STEP, Trait.OF_TRIPLES)
_LONGEST = 100  # characters: a text that comes to one entity twice would double each time
_PARTS: Final = 3
_READS: Final = "v"
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
    if "g" in text:
        return Unreadable(given)
    return Blank(given) if "z" in text else given


@DECODERS.add(Trait.OF_TRIPLES, Trait.OF_VALUES)
@wallaroo.decoder(header_length=4, length_fmt=">I")
def triple(payload: bytes) -> Any:
    """Three parts with spaces between them; anything else raises."""
    return decoded(payload)


@ENCODERS.add(Trait.OF_TRIPLES)
@wallaroo.encoder
def triple_line(message: Any) -> Any:
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


class Summer(tzinfo):
    """A time zone that has summer time from a moment near on."""

    def utcoffset(self, moment: datetime | None) -> timedelta:
        """Return an hour more from the moment on."""
        late = moment is not None and moment.replace(tzinfo=None) >= _SUMMER
        return timedelta(hours=2 if late else 1)

    def dst(self, moment: datetime | None) -> timedelta:
        """Return how much of the offset is summer time."""
        return self.utcoffset(moment) - timedelta(hours=1)

    def tzname(self, moment: datetime | None) -> str:
        """Return a name."""
        return "summer" if self.dst(moment) else "winter"


_SUMMER: Final = datetime(2026, 3, 29, 2)
_ZONES: Final = (
    *(UTC, timezone(timedelta(hours=5, minutes=30)), timezone(-timedelta(seconds=1))),
    Summer(),
)
_NO_TIMES: Final = (
    _MOMENT.replace(tzinfo=None),
    *(datetime.min.replace(tzinfo=_ZONES[1]), datetime.max.replace(tzinfo=_ZONES[2])),
)
"""A naive moment, and two that are in no year of UTC that a `datetime` can have."""


@EVENT_TIMES.add()
def own_moment(message: Any) -> Any:
    """Return the message's number as a `datetime`, of one zone or another; else one of no time."""
    number = message[1]
    if type(number) is not int:
        return chosen(message, _NO_TIMES)
    moment = _MOMENT + timedelta(microseconds=number // 10 % 10**6)
    return moment.astimezone(_ZONES[number % len(_ZONES)])


@EVENT_TIMES.add(Trait.FINDING, Trait.ALTERS_MESSAGE)
def time_that_alters(message: Any) -> Any:
    """Return the message's number, and alter the message."""
    message[2] += "!"
    return message[1]


@dataclass(frozen=True)
class Extractor:
    """A key extractor with the name of its step."""

    __name__: str


@KEYS.add(*_OF_STEP, Trait.COMMON, name="by_letter")
class ByLetter(Extractor):
    """A key extractor: the message's letter."""

    def extract_key(self, message: Any) -> Any:
        """Return the letter; two marks in the text go wrong."""
        if "k" in message[2]:
            fail(message[2])
        return no_key(message[2]) if "f" in message[2] else message[0]


@KEYS.add(*_OF_STEP, Trait.FINDING, Trait.ALTERS_MESSAGE, name="by_number")
class ByNumber(Extractor):
    """A key extractor: whether the number is odd; it alters the message."""

    def extract_key(self, message: Any) -> Any:
        """Return 0 or 1."""
        number = message[1]
        message[2] += "?"
        return number % 2 if isinstance(number, int) else -1


@KEYS.add(*_OF_STEP, name="by_shown")
class ByShown(Extractor):
    """A key extractor: the number as it is shown, which differs for equal numbers."""

    def extract_key(self, message: Any) -> Any:
        """Return a text."""
        return repr(message[1])


@KEYS.add(*_OF_STEP, name="by_pair")
class ByPair(Extractor):
    """A key extractor: a tuple, of the letter and a number."""

    def extract_key(self, message: Any) -> Any:
        """Return the letter and 1."""
        return message[0], 1


_LONG: Final = tuple(
    [
        one
        for more in (0, 1)
        for one in ("x" * (65_531 + more), ("x" * 8_186,) * 7 + ("x" * (8_189 + more),))
    ]
)
"""Keys whose encodings are as long as one may be, and those with one byte more (route-2)."""
_LONG_BYTES: Final = (b"c", b"c" * 65_531, b"c" * 65_532)


@KEYS.add(*_OF_STEP, name="by_any")
class ByAny(Extractor):
    """A key extractor: keys of every type, whose order is not that of their texts."""

    def extract_key(self, message: Any) -> Any:
        """Return one of them, by the letter and the number."""
        number = message[1] if type(message[1]) is int else 0
        keys: dict[str, tuple[Any, ...]] = {
            "a": (10, "-1", 2**40, -256),
            "b": (9, "b", ("b", 10), b"b", "\u00e9", (), ("b", 9, (b"",))),
            "c": (-1, *_LONG),
        }
        listed = keys.get(message[0], ("",))
        return listed[number % len(listed)]


@KEYS.add(*_OF_STEP, name="by_bytes")
class ByBytes(Extractor):
    """A key extractor: bytes, now and then as long as a key may be, or with one byte more."""

    def extract_key(self, message: Any) -> Any:
        """Return the letter, for the letter c one of several, by the number."""
        number = message[1] if type(message[1]) is int else 0
        return _LONG_BYTES[number % 3] if message[0] == "c" else message[0].encode()


@KEYS.add(*_OF_STEP, name="by_alike")
class ByAlike(Extractor):
    """A key extractor: keys that look alike, and values that equal one of them and are no keys."""

    def extract_key(self, message: Any) -> Any:
        """Return one of them, by the number; for the letter b one that is no key."""
        number = message[1] if type(message[1]) is int else 0
        if message[0] == "b":
            return (True, 1.0, Suit.HEARTS, Name("1"))[number % 4]
        return (1, "1", b"1", (1,), ((1,),), ("1",))[number % 6]


@COMPUTATIONS.add(*_OF_STEP, name="same")
class Same(Named):
    """A computation that changes nothing."""

    def compute(self, message: Any) -> Any:
        """Return the message."""
        return message


@COMPUTATIONS.add(*_OF_STEP, Trait.FILTERS, name="drop")
class Drop(Named):
    """A computation that filters by a mark, and else lengthens the text."""

    def compute(self, message: Any) -> Any:
        """Return the message unless it has the mark."""
        return None if "d" in message[2] else [message[0], message[1], message[2] + "'"]


@MULTI_COMPUTATIONS.add(*_OF_STEP, name="doubled")
class Doubled(Named):
    """A multi computation: two messages, with a gap between them."""

    def compute_multi(self, message: Any) -> Any:
        """Return the message, nothing, and the message with another letter."""
        return [message, None, ["b", message[1], message[2] + '"']]


@dataclass(frozen=True)
class Remembering(Named):
    """A state computation that remembers texts.

    Args:
        own_state: in the pipelines' form its state; `None`: it is of the builder's form (key-3).
    """

    own_state: OwnState[Any] | None = None

    def given(self, output: Any, *, changed: bool = True) -> Any:
        """Return an output, in the builder's form with the flag whether the state has changed."""
        return (output, changed) if self.own_state is None else output

    def noted(self, message: Any, state: Any) -> list[str]:
        """Return the texts so far, the message's the last; three marks raise or note nothing."""
        if "b" in message[2]:
            fail(message[2])
        if _READS not in message[2]:
            state.notes.append(message[2][:_LONGEST])
        if "s" in message[2]:
            fail(message[2])
        notes: list[str] = state.notes
        return notes


@STATE_COMPUTATIONS.add(*_OF_STEP, Trait.COMMON, name="remember")
class Remember(Remembering):
    """Sends all texts so far, and nothing for every second message."""

    def compute(self, message: Any, state: Any) -> Any:
        """Return the message with all texts so far."""
        notes = self.noted(message, state)
        output = [message[0], message[1], "+".join(notes)] if len(notes) % 2 else None
        return self.given(output, changed=_READS not in message[2])


@STATE_MULTI_COMPUTATIONS.add(*_OF_STEP, name="remember_each")
class RememberEach(Remembering):
    """Sends a message for each text so far, two at most."""

    def compute_multi(self, message: Any, state: Any) -> Any:
        """Return messages with each text."""
        notes = self.noted(message, state)
        items = [[message[0], message[1], text] for text in notes[-2:]]
        return self.given(items, changed=_READS not in message[2])


@STATE_COMPUTATIONS.add(*_OF_STEP, name="remember_and_tell")
class RememberAndTell(Remembering):
    """Sends what looks like a pair of output and flag (key-3)."""

    def compute(self, message: Any, state: Any) -> Any:
        """Return a tuple of the message with all texts so far, and `False`."""
        state.notes.append(message[2][:_LONGEST])
        return self.given(([message[0], message[1], "+".join(state.notes)], False))


def serialize(value: Any) -> Any:
    """Return a value as bytes; marks in it, a number and a text are refused (key-5)."""
    if isinstance(value, list) and len(value) == _PARTS and "p" in str(value[2]):
        return _refused(str(value[2]))
    if type(value) in (int, str) and value in (2, "dd"):  # accumulators, and plain messages
        fail(str(value))
    # A state, or an accumulator: a list of texts; a message has a number in it.
    texts = getattr(value, "notes", value)
    if isinstance(texts, list) and all(isinstance(text, str) for text in texts):
        refused = [text for text in texts if "r" in text]
        if refused:
            return _refused(refused[0])
    return b"own" + pickle.dumps(value)


def _refused(text: str) -> str:
    """Raise, or return what is not bytes."""
    return text if "1" in text else fail(text)


def deserialize(data: bytes) -> Any:
    """Return what `serialize` was given, but a list for a message that is a tuple, as JSON does."""
    if not data.startswith(b"own"):
        raise ValueError("not written by serialize")
    value = pickle.loads(data[3:])  # noqa: S301 - our own bytes
    return list(value) if isinstance(value, tuple) and len(value) == _PARTS else value


CODEC = Codec(serialize, deserialize)
