"""States and their builders. The first builder is the plainest."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import permutations
from typing import Any, NamedTuple

from wallaroo.keys import BadKeyError
from wallaroo_conformance.cases.operators.table import Table, Trait

BUILDERS = Table()


@BUILDERS.add(Trait.COMMON)
class Notebook:
    """What every state computation of the catalogue knows how to use."""

    def __init__(self) -> None:
        self.pages = 0
        self.notes: list[Any] = []
        self.last: Any = "nothing yet"

    def __repr__(self) -> str:
        return f"Notebook({self.pages}, {self.notes}, {self.last})"


@BUILDERS.add(Trait.COMMON)
class Slotted:
    """The same without a ``__dict__``."""

    __slots__ = ("last", "notes", "pages")

    def __init__(self) -> None:
        self.pages = 0
        self.notes: list[Any] = []
        self.last: Any = "nothing yet"

    def __repr__(self) -> str:
        return f"Slotted({self.pages}, {self.notes}, {self.last})"


@BUILDERS.add()
class Deceptive(Notebook):
    """Equal to everything, and lies when it is copied by any way but pickling."""

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        return True

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, memo: Any) -> Any:
        return self


@BUILDERS.add(Trait.FALSY_STATE)
class Thin(Notebook):
    """Is false as long as nothing is noted in it."""

    def __len__(self) -> int:
        return len(self.notes)


@BUILDERS.add(Trait.FALSY_STATE)
class Wavering(Notebook):
    """Can be neither compared nor tested for truth, as an array of several numbers."""

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        raise ValueError("equal to what?")

    def __bool__(self) -> bool:
        raise ValueError("true of what?")


@BUILDERS.add()
class Linked(Notebook):
    """Holds one list twice."""

    def __init__(self) -> None:
        super().__init__()
        self.last = self.notes


@BUILDERS.add(Trait.FINDING, Trait.PICKLES_ANEW)
class Abridged(Notebook):
    """Says what of it is pickled."""

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "last": "abridged"}


@BUILDERS.add(Trait.FINDING, Trait.PICKLES_ANEW)
class Restored(Notebook):
    """Says what it is when it was pickled."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, last="restored")


@BUILDERS.add(Trait.FINDING, Trait.PICKLES_ANEW)
class Rewritten(Notebook):
    """Says how it is made again."""

    def __reduce__(self) -> Any:
        return Rewritten, (), {"pages": self.pages}


class Heading(NamedTuple):
    """A tuple with names: it cannot be altered, and what it holds can."""

    notes: Any


@dataclass(frozen=True, eq=False)
class Footnote:
    """It cannot be altered, and can be in a set; what it holds can be altered."""

    notes: Any


class Sheet:
    """A plain class, as many applications have for their messages."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.notes = {Footnote(["inside"]): len(text)}

    def __repr__(self) -> str:
        return f"Sheet({self.text}, {self.notes})"


HIDING: Mapping[str, Callable[[Any], Any]] = {
    "tuple": lambda notes: (7, notes),
    "named tuple": Heading,
    "frozen dataclass": Footnote,
    "frozenset": lambda notes: frozenset({Footnote(notes)}),
    "key": lambda notes: {Footnote(notes): 1},
    "value": lambda notes: {"page": notes},
    "list": lambda notes: [notes],
}
"""What something that can be altered may be inside of."""


class Hiding:
    """A builder of a notebook with a list inside of something, which may be inside of another."""

    def __init__(self, *where: str) -> None:
        self.where = where

    def build(self) -> Any:
        """Return a notebook with a list of its own."""
        notebook = Notebook()
        notes: Any = ["old"]
        for one in self.where:
            notes = HIDING[one](notes)
        notebook.last = notes
        return notebook


for _where in (*permutations(HIDING, 1), *permutations(HIDING, 2)):
    _deep = (Trait.DEEP,) * (len(_where) - 1)
    BUILDERS.add(*_deep, made=_where, name=" in ".join(["List", *_where]))(Hiding)


@BUILDERS.add(made=(bytearray(b"old"),), name="Buffered")
@BUILDERS.add(made=({"page": 1},), name="Indexed")
@BUILDERS.add(made=({"page": 1, "lines": ["old"]},), name="Shelved")
class Holding:
    """A builder of a notebook that holds something which can be altered."""

    def __init__(self, last: Any) -> None:
        self.last = last

    def build(self) -> Any:
        """Return a notebook with a copy of its own."""
        notebook = Notebook()
        notebook.last = pickle.loads(pickle.dumps(self.last))  # noqa: S301 - our own bytes
        return notebook


@BUILDERS.add(made=(1,), name="Thinly")
@BUILDERS.add(Trait.COMMON, made=(2,))
class Stocked:
    """A builder with an attribute, so that instances may agree or not (state-8)."""

    def __init__(self, notes: int) -> None:
        self.notes = notes

    def build(self) -> Any:
        """Return a notebook that is not empty."""
        notebook = Notebook()
        notebook.notes.extend(["old"] * self.notes)
        return notebook


@BUILDERS.add(Trait.FINDING, Trait.REMEMBERS, made=())
class Shared:
    """A builder that hands out one object again and again."""

    def __init__(self) -> None:
        self.only = Notebook()

    def build(self) -> Any:
        """Return the object all entities would share."""
        return self.only


@BUILDERS.add(Trait.ENDS_THE_RUN, made=("KeyboardInterrupt",), name="Interrupted")
@BUILDERS.add(Trait.ENDS_THE_RUN, made=("SystemExit",), name="Leaving")
@BUILDERS.add(made=("BadKeyError",), name="Refusing")
@BUILDERS.add(made=("StopIteration",), name="Exhausted")
@BUILDERS.add(made=("OSError",), name="Broken")
class Raising:
    """A builder that raises, also what engines raise and catch around their own calls."""

    def __init__(self, error: str) -> None:
        self.error = error

    def build(self) -> Any:
        """Raise."""
        errors = (OSError, StopIteration, BadKeyError, SystemExit, KeyboardInterrupt)
        [error] = [error for error in errors if error.__name__ == self.error]
        raise error("no paper")


@BUILDERS.add(Trait.FINDING, made=())
class Portless:
    """A builder of a state that cannot be pickled."""

    def build(self) -> Any:
        """Return a notebook with a function in it."""
        notebook = Notebook()
        notebook.last = lambda: notebook
        return notebook


@BUILDERS.add(Trait.FINDING, made=(), name="Number")
class Numeric:
    """A builder of a state that no computation can change."""

    def build(self) -> Any:
        """Return a number."""
        return 0


@BUILDERS.add(Trait.FINDING, made=())
class Nothing:
    """A builder that returns `None` as state."""

    def build(self) -> Any:
        """Return `None`."""
