"""Aggregations: what windows make of messages of three parts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from wallaroo_conformance.cases.operators.marks import fail
from wallaroo_conformance.cases.operators.table import Table, Trait

AGGREGATIONS = Table()


@dataclass(frozen=True)
class Named:
    """A component with the name of its step (graph-5)."""

    step: str

    def name(self) -> str:
        """Return the step's name."""
        return self.step


def _letter(key: Any) -> str:
    return key if isinstance(key, str) else "-" if key == () else ascii(key).replace(" ", "")


@AGGREGATIONS.add(Trait.OF_STEP, Trait.COMMON, name="texts")
class Texts(Named):
    """An aggregation that tells all texts, in their order, and the window's bounds."""

    def initial_accumulator(self) -> Any:
        """Return no texts."""
        return []

    def update(self, message: Any, accumulator: Any) -> None:
        """Add the text, in place."""
        if "u" in message[2]:
            fail(message[2])
        accumulator.append(message[2])

    def combine(self, earlier: Any, later: Any) -> None:
        """Add the later texts, in place."""
        for text in later:
            if "c" in text:
                fail(text)
        earlier += later

    def output(self, key: Any, accumulator: Any, window: Any) -> Any:
        """Return all texts; marks fail or give nothing."""
        text = "+".join(accumulator)
        if "o" in text:
            fail(text)
        if "n" in text:
            return None
        given = [_letter(key), window.end, f"{text}@{window.start}-{window.end}"]
        return Unreadable(given) if "i" in text else given


@AGGREGATIONS.add(Trait.OF_STEP, name="begun_texts")
class BegunTexts(Texts):
    """The same, and its first accumulator is not empty: one too many that is combined shows."""

    def initial_accumulator(self) -> Any:
        """Return a text that no message has."""
        return ["^"]

    def output(self, key: Any, accumulator: Any, window: Any) -> Any:
        """Return all texts, each with what its pane began with before it."""
        return super().output(key, ["".join(accumulator)], window)


@AGGREGATIONS.add(
    Trait.OF_STEP, Trait.FINDING, Trait.ALTERS_MESSAGE, Trait.ALTERS_PANES, name="altered_texts"
)
class AlteredTexts(Texts):
    """The same, and it alters all that it is given, also where it raises."""

    def update(self, message: Any, accumulator: Any) -> None:
        """Add the text, and alter the message, before a mark fails."""
        accumulator.append(message[2])
        text, message[2] = message[2], "altered"
        if "u" in text:
            fail(text)

    def combine(self, earlier: Any, later: Any) -> None:
        """Add the later texts, and more to both, before a mark fails."""
        earlier.append("altered")
        super().combine(earlier, later)
        later.append("altered")

    def output(self, key: Any, accumulator: Any, window: Any) -> Any:
        """Return all texts, and add to them."""
        given = super().output(key, accumulator, window)
        accumulator.append("altered")
        return given


@AGGREGATIONS.add(*(Trait.OF_STEP, Trait.FINDING, Trait.REMEMBERS), name="handed_texts")
@dataclass(frozen=True)
class HandedTexts(Texts):
    """The same, and it hands out one list as the first accumulator again and again."""

    handed: list[str] = field(default_factory=list, compare=False)

    def initial_accumulator(self) -> Any:
        """Return the list that all windows would share."""
        return self.handed


@AGGREGATIONS.add(Trait.OF_STEP, name="greatest")
class Greatest(Texts):
    """An aggregation that keeps the accumulator whose first text is greater, perhaps the later."""

    def combine(self, earlier: Any, later: Any) -> Any:
        """Return the later texts if they are greater; else add the first of them to the others."""
        if later[0] > earlier[0]:
            return later
        earlier.append(later[0])
        return None


@AGGREGATIONS.add(Trait.OF_STEP, Trait.ALTERS_PANES, name="prepended")
class Prepended(Texts):
    """An aggregation that puts what is earlier before the later, and gives that; it adds in output.

    Accumulators, which are lists in a list, are isolated: what it does to them shows in no other
    window.
    """

    def initial_accumulator(self) -> Any:
        """Return no texts."""
        return [[]]

    def update(self, message: Any, accumulator: Any) -> None:
        """Add the text, in place."""
        super().update(message, accumulator[0])

    def combine(self, earlier: Any, later: Any) -> Any:
        """Return the later texts, with the earlier before them."""
        later[0][:0] = earlier[0]
        return later

    def output(self, key: Any, accumulator: Any, window: Any) -> Any:
        """Return all texts, and add to them."""
        given = super().output(key, accumulator[0], window)
        accumulator[0].append("added")
        return given


@AGGREGATIONS.add(Trait.OF_STEP, Trait.ALTERS_PANES, name="bound")
class Bound(Prepended):
    """The same, and its accumulators are tuples, which cannot be altered, of a list, which can."""

    def initial_accumulator(self) -> Any:
        """Return no texts."""
        return ([],)


@AGGREGATIONS.add(Trait.OF_STEP, Trait.PASSES_ON, name="passed")
class Passed(Named):
    """An aggregation in which no mark fails: a window behind its windows meets all of them."""

    def initial_accumulator(self) -> Any:
        """Return no text."""
        return ""

    def update(self, message: Any, accumulator: Any) -> Any:
        """Return the texts so far with one more."""
        return f"{accumulator}{message[2]}"

    def combine(self, earlier: Any, later: Any) -> Any:
        """Return both texts."""
        return earlier + later

    def output(self, key: Any, accumulator: Any, window: Any) -> Any:
        """Return the texts, with the window's end."""
        return [_letter(key), window.end, accumulator]


class Unreadable(list[Any]):
    """A message that can be pickled, and whose pickle cannot be read back."""

    def __reduce__(self) -> Any:
        """Return what raises when it is called: one error or another, by the text."""
        return fail, (str(self[2:3]).strip("[]'"),)


class Blank(list[Any]):
    """A message that is false, and a message all the same."""

    def __bool__(self) -> bool:
        return False

    def __repr__(self) -> str:
        return f"Blank({super().__repr__()})"


@AGGREGATIONS.add(Trait.OF_STEP, Trait.ALTERS_PANES, name="sparse")
class Sparse(Named):
    """An aggregation whose accumulator is None until a list of messages begins.

    Every second message begins none. What is combined with None is given as it is. The output can
    do without bounds.
    """

    def initial_accumulator(self) -> Any:
        """Return nothing so far."""
        return

    def update(self, message: Any, accumulator: Any) -> Any:
        """Return the messages so far with one more, in place."""
        if "u" in message[2]:
            fail(message[2])
        if accumulator is None:
            return [message] if ord(message[2][-1]) % 2 else None
        accumulator.append(message)
        return accumulator

    def combine(self, earlier: Any, later: Any) -> Any:
        """Return one of them where the other is None; else add the later messages, in place."""
        if earlier is None or later is None:
            return later if earlier is None else earlier
        earlier += later
        return earlier

    def output(self, key: Any, accumulator: Any, window: Any = None) -> Any:
        """Return the texts, and whether there are bounds."""
        texts = [message[2] for message in accumulator or ()]
        return [_letter(key), window and window.end, "+".join(texts) or "-"]


@AGGREGATIONS.add(Trait.OF_STEP, name="parity")
class Parity(Named):
    """An aggregation whose accumulators, results and messages are false as often as not.

    Accumulators are of several types, and are equal across these.
    """

    def initial_accumulator(self) -> Any:
        """Return 1."""
        return 1

    def update(self, message: Any, accumulator: Any) -> Any:
        """Return 1 or 0 of some type, by the text's last character."""
        last = ord(message[2][-1])
        return (int, bool, float)[last // 2 % 3]((accumulator + last) % 2)

    def combine(self, earlier: Any, later: Any) -> Any:
        """Return 0 where the two are alike."""
        return abs(earlier - later)

    def output(self, key: Any, accumulator: Any) -> Any:
        """Return a message that is as true as the accumulator."""
        given = [_letter(key), 0, str(accumulator)]
        return given if accumulator else Blank(given)


@AGGREGATIONS.add(Trait.OF_STEP, name="halves")
class Halves(Named):
    """An aggregation in which order and grouping show to the last bit; without bounds."""

    def initial_accumulator(self) -> Any:
        """Return nothing so far."""
        return 0.0

    def update(self, message: Any, accumulator: Any) -> Any:
        """Return a number made of the last one."""
        return accumulator / 3 + len(message[2])

    def combine(self, earlier: Any, later: Any) -> Any:
        """Return a number made of both."""
        return earlier / 7 + later

    def output(self, key: Any, accumulator: Any) -> Any:
        """Return the number as text."""
        return [_letter(key), 0, repr(accumulator)]


@AGGREGATIONS.add(Trait.OF_STEP, name="number")
class Number(Named):
    """An aggregation without combine: how many messages there are."""

    def initial_accumulator(self) -> Any:
        """Return none so far."""
        return 0

    def update(self, message: Any, accumulator: Any) -> Any:
        """Count one more."""
        if "u" in message[2]:
            fail(message[2])
        return accumulator + 1

    def output(self, key: Any, accumulator: Any, window: Any) -> Any:
        """Return the number as text."""
        return [_letter(key), window.end, f"{accumulator}@{window.start}-{window.end}"]


COMBINING = tuple(name for name, kind in AGGREGATIONS.items() if hasattr(kind, "combine"))
"""Aggregations that sliding windows and sessions can have."""
